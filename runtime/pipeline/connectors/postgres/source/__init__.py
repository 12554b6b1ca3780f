"""Tables as a source: a snapshot in chunks that tasks share, and then what commits after it."""
