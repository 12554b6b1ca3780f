"""The log files of a node's processes, and the entries in them."""
