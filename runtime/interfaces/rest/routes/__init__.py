"""The routes of the REST interface, one module for each resource type."""
