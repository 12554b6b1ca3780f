"""What the routes work with: the node's logs, its actors and its plugins."""
