"""Tables of PostgreSQL, as a source and as a sink; needs the extra `fairlead-connect[postgres]`."""
