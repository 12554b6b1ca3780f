"""What a worker asks of whatever runs its resources."""

from typing import Protocol

from ...events.model import Resource, Resources
from ...projections.launches import Launch


class Runs(Protocol):
    """What runs resources: with Spark, or with nothing at all."""

    def start(self, launch: Launch) -> None:
        """Run a launch."""
        ...

    def stop(self, resource: Resource) -> None:
        """Let a resource come to its end."""
        ...

    def abandon(self) -> None:
        """Cut everything short."""
        ...

    def running(self) -> Resources:
        """Return what runs."""
        ...

    def close(self, seconds: float) -> Resources:
        """Stop everything, and return what still runs."""
        ...
