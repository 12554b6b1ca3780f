"""Assignors: from a group as it is to who runs what."""
