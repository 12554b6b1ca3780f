"""The translation of requests of groups into calls of groups, and of their replies."""
