"""The client of a node for Python programs: requests as values, and those who send them."""
