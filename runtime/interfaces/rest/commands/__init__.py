"""Commands to the groups of a node, and questions to its actors."""
