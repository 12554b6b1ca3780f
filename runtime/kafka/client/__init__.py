"""The connection of one client: its buffered bytes, its timeout, and its pending calls."""
