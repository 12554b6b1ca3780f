"""Tables as a sink: staged in tables aside, published by one transaction each."""
