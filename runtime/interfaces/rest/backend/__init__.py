"""What the routes work with: HTTP, and the node's logs, actors and plugins."""
