"""Folds of a group for its page: the last records, the shapes and the rates of connectors."""
