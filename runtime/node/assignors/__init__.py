"""Assignor plugins: their discovery, and the sandboxed process that runs them for a node."""
