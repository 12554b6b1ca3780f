"""Builds replies from the state of a group, which readers of replies do not load."""
