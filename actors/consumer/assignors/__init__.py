"""The server assignors of consumer groups."""
