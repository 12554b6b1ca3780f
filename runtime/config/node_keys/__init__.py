"""The settings of a node, by subject."""
