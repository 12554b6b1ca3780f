"""Change data capture from the WAL: peeks at a replication slot, and advances it after a commit."""
