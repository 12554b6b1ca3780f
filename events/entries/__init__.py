"""Records as entries of a log, and a group rebuilt from them."""
