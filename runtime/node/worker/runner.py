"""What a worker asks of whatever runs its resources, and a runner that runs nothing.

The latter is for groups whose protocol is to be seen without any work. The node's log has a line
for each resource that it counts as running.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from ....events.model import Resource, Resources, RunState
from ....projections.launches import Launch
from ...pipeline.tasks.reports import (
    Ending,
    Report,
    Started,
    StatusChanged,
    Stopped,
    TaskConfigsChanged,
)


class ResourceRunner(Protocol):
    """What runs resources: with Spark, or with nothing at all."""

    def start(self, launch: Launch) -> None:
        """Run a launch, of whose resource nothing runs; one `Stopped` tells when it has ended."""
        ...

    def stop(self, resource: Resource) -> None:
        """Let a resource come to its end."""
        ...

    def abandon(self) -> None:
        """Cut everything short."""
        ...

    def close(self, seconds: float) -> Resources:
        """Stop everything, and return what still runs."""
        ...


class WorkerRunner(ResourceRunner, Protocol):
    """A runner that has an engine of its own."""

    def look(self, now_ms: int) -> None:
        """See after the engine where that is due; to be called once a second or more often."""
        ...

    def close_engine(self, seconds: float) -> None:
        """End the engine, once nothing runs any more."""
        ...


LOGGER = logging.getLogger(__name__)
TASKS_MAX = "tasks.max"


class NoopRunner:
    """Says of every resource that it is as wanted; a connector splits into `tasks.max` tasks."""

    def __init__(self, report: Callable[[Report], None]) -> None:
        self._report = report
        self._launches: dict[Resource, Launch] = {}

    def start(self, launch: Launch) -> None:
        """Count a launch as running."""
        resource, token = launch.resource, launch.token
        self._launches[resource] = launch
        LOGGER.info("runs %s under %s", resource, token)
        self._report(Started(resource, token))
        if not resource.is_task and launch.target_state is RunState.RUNNING:
            self._split(launch)
        self._report(StatusChanged(resource, token, launch.target_state))

    def stop(self, resource: Resource) -> None:
        """Count a resource as stopped."""
        launch = self._launches.pop(resource, None)
        if launch is not None:
            LOGGER.info("ends %s under %s", resource, launch.token)
            self._report(Stopped(resource, launch.token, Ending.STOPPED))

    def abandon(self) -> None:
        """Count everything as stopped."""
        for resource in list(self._launches):
            self.stop(resource)

    def close(self, seconds: float) -> Resources:
        """Forget everything; nothing is left."""
        del seconds
        self._launches.clear()
        return frozenset()

    def look(self, now_ms: int) -> None:
        """There is nothing to see after."""

    def close_engine(self, seconds: float) -> None:
        """There is no engine."""

    def _split(self, launch: Launch) -> None:
        count = int(launch.config.get(TASKS_MAX, "1"))
        name = launch.resource.connector
        configs = tuple({"task": str(number)} for number in range(count))
        self._report(TaskConfigsChanged(name, launch.token, configs))
