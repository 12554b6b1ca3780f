"""Classic members of a group of the connect type, and live conversion between the two types."""
