"""The fixture of these tests."""

from fairlead_tests.cluster.remains import start_node

__all__ = ["start_node"]
