"""Assignors: compute from a snapshot of a group which member runs what."""
