"""What is read of the logs of a node: followers of its groups, and of its shards."""
