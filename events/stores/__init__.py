"""Stores: engines outside of the host in which the commits of a log count (LOG.md §13)."""
