"""Follows the logs and the processes of a node for its page."""
