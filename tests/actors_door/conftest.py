"""The fixtures of these tests."""

from actor_system import actor_system, in_process

__all__ = ["actor_system", "in_process"]
