"""The supervisor of the actors of a node: group, shards of groups, assignors, workers."""
