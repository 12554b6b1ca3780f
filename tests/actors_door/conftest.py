"""The fixtures of these tests."""

from fairlead_tests.actor_system import actor_system, in_process

__all__ = ["actor_system", "in_process"]
