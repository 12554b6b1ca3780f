"""What the tests of classic groups share."""

from fairlead_tests.actor_system import actor_system

__all__ = ["actor_system"]
