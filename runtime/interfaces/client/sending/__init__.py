"""Requests to a node as values, and their two ways to it: blocking, and to be awaited."""
