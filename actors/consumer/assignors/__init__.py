"""The assignors by which a group of consumers shares out partitions by itself."""
