"""What is configured, told by each connector's number of tasks."""

from collections.abc import Mapping

from fairlead.events.model import CONNECTOR, Resource, Resources


def resources_of(task_counts: Mapping[str, int]) -> Resources:
    """Return every connector, and every task of it from 0 on."""
    counts = task_counts.items()
    return frozenset(Resource(name, task) for name, n in counts for task in range(CONNECTOR, n))
