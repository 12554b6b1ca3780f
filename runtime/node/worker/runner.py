"""The interface of runners, which run a worker's connectors and tasks, and a no-op runner.

The no-op runner (`engine = noop`) is for trying out the protocol without any work. It logs each
connector and task that it would run.
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
    """Runs connectors and tasks: with Spark, or as a no-op."""

    def start(self, launch: Launch) -> None:
        """Run a launch, whose resource is not running; exactly one `Stopped` reports its end."""
        ...

    def stop(self, resource: Resource) -> None:
        """Stop a resource gracefully."""
        ...

    def turn(self, resource: Resource, target_state: RunState) -> None:
        """Pause or resume a running task of Connect's own class, in its place."""
        ...

    def abandon(self) -> None:
        """Cancel everything at once."""
        ...

    def close(self, seconds: float) -> Resources:
        """Stop everything; return the resources that still run after so many seconds."""
        ...


class TaskRunner(ResourceRunner, Protocol):
    """A runner whose tasks use an engine."""

    def wake(self) -> None:
        """Wake all tasks: each checks at once whether its engine is there."""
        ...


class WorkerRunner(ResourceRunner, Protocol):
    """A runner with its own engine."""

    def look(self, now_ms: int) -> None:
        """Restart the engine if necessary; to be called once a second or more often."""
        ...

    def close_engine(self, seconds: float) -> None:
        """Close the engine, after `close`."""
        ...


LOGGER = logging.getLogger(__name__)
TASKS_MAX = "tasks.max"


class NoopRunner:
    """Reports each resource as in its target state; a connector has `tasks.max` tasks."""

    def __init__(self, report: Callable[[Report], None]) -> None:
        self._report = report
        self._launches: dict[Resource, Launch] = {}

    def start(self, launch: Launch) -> None:
        """Report a launch as running."""
        resource, token = launch.resource, launch.token
        self._launches[resource] = launch
        LOGGER.info("runs %s under %s", resource, token)
        self._report(Started(resource, token))
        if not resource.is_task and launch.target_state is RunState.RUNNING:
            self._split(launch)
        self._report(StatusChanged(resource, token, launch.target_state))

    def stop(self, resource: Resource) -> None:
        """Report a resource as stopped."""
        launch = self._launches.pop(resource, None)
        if launch is not None:
            LOGGER.info("ends %s under %s", resource, launch.token)
            self._report(Stopped(resource, launch.token, Ending.STOPPED))

    def turn(self, resource: Resource, target_state: RunState) -> None:
        """Report a resource as in another target state."""
        launch = self._launches[resource]
        self._report(StatusChanged(resource, launch.token, target_state))

    def abandon(self) -> None:
        """Report everything as stopped."""
        for resource in list(self._launches):
            self.stop(resource)

    def close(self, seconds: float) -> Resources:
        """Forget everything; nothing still runs."""
        del seconds
        self._launches.clear()
        return frozenset()

    def look(self, now_ms: int) -> None:
        """Do nothing: there is no engine."""

    def close_engine(self, seconds: float) -> None:
        """Do nothing: there is no engine."""

    def _split(self, launch: Launch) -> None:
        count = int(launch.config.get(TASKS_MAX, "1"))
        name = launch.resource.connector
        configs = tuple({"task": str(number)} for number in range(count))
        self._report(TaskConfigsChanged(name, launch.token, configs))
