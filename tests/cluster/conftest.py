"""The fixture of these tests."""

from cluster.remains import start_node

__all__ = ["start_node"]
