"""Followers of the logs of a node: of its groups, and of its shards."""
