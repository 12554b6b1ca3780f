"""Lays out the replies of a cluster as tables and lists of facts, one module for each subject."""
