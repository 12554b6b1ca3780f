"""Connectors: the built-in source and sink types, and the keys that all connectors share."""
