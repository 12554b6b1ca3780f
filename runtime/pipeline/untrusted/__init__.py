"""Files and patterns that a config names: whoever wrote it, reads and matches have bounds."""
