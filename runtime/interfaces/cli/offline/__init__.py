"""Verbs that need no node and no data folder."""
