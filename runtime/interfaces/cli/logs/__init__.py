"""Reads, copies and narrates the logs of groups on disk."""
