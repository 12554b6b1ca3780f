"""The connectors that come along, and how installed ones are found."""
