"""Decides which resources a worker starts and stops, from its membership and the log.

The membership says which resources may run, the log with which config and token. A resource is
started only when it does not run: if its launch has changed, it is stopped first and restarted once
it has ended. A resource that ends by itself is restarted after a pause. Only a few resources are
starting at a time: hundreds at once would keep the worker from hearing its group, and its session
would expire.
"""

from dataclasses import replace
from heapq import nsmallest

from .....actors.timing import earliest
from .....events.model import NOTHING, Resource, Resources, RunState
from .....projections.launches import Launch, launches
from ....pipeline.spi.keys.common import OF_TASKS
from ....pipeline.tasks.reports import StatusChanged
from .contract import MemberLog, StartResource, StopResource, TurnResource

REST_MS = 1_000
"""The pause before a resource that ended by itself is restarted."""
MOST_SILENT = 8
"""How many of the starting resources may not have reported a state yet: they share one GIL."""
MOST_STARTING = 32
"""How many resources may be starting: they run, and the log does not show a state of them yet.

So a worker that is slow to be heard starts the next ones later.
"""
STARTING_MS = 1_000
"""How long a resource counts as starting at most: its plugin may wait for something, or hang."""

Order = StartResource | StopResource | TurnResource


class Starts:
    """The running resources of one member; all times are milliseconds of one clock."""

    def __init__(self, log: MemberLog) -> None:
        self._log = log
        self._allowed: Resources = NOTHING
        self._running: dict[Resource, Launch] = {}
        """Resources from their start until the report that they have ended."""
        self._stopping: set[Resource] = set()
        """Those in `_running` that are being stopped."""
        self._rests: dict[Resource, int] = {}
        """When to restart each resource that ended by itself."""
        self._fresh: Resources = NOTHING
        """Resources that may run, but whose grant or config the log has not shown yet."""
        self._starting: dict[Resource, int] = {}
        """The resources that are starting, oldest first, and when each no longer counts as such."""
        self._reported: set[Resource] = set()
        """Those in `_starting` that have reported a state."""
        self._waiting: set[Resource] = set()
        """Resources that wait until fewer are starting."""

    def allow(self, resources: Resources) -> None:
        """Start these resources as soon as the log grants them."""
        self._allowed |= resources
        self._fresh |= resources

    def stop(self, resources: Resources) -> tuple[list[StopResource], Resources]:
        """Stop resources; return the effects, and the resources that do not run already."""
        self._allowed -= resources
        running = sorted(resources & self._running.keys())
        told = [StopResource(each) for each in running if each not in self._stopping]
        self._stopping.update(running)
        return told, resources - self._running.keys()

    def abandon(self) -> Resources:
        """Revoke all permissions to run; return the running resources, to be cancelled."""
        self._allowed = NOTHING
        self._stopping.update(self._running)
        return frozenset(self._running)

    def align(self, now_ms: int, awaited: Resources) -> list[Order]:
        """Return the starts and stops that make the running resources match the log.

        `awaited` are the resources with reports that the log does not show yet.
        """
        for resource in self._reported - awaited:
            self._forget_start(resource)
        while self._starting and now_ms >= self._first_started_ms():
            self._forget_start(next(iter(self._starting)))
        self._fresh |= self._take_waiting()
        todo = self._log.take_changed() | self._fresh
        if self._rests:
            todo |= self._take_rested(now_ms)
        todo = (todo & self._allowed) - self._waiting
        if not todo:
            return []
        found = launches(self._log.group, self._log.member_id, todo)
        self._fresh = (self._fresh & self._allowed) - found.keys()
        return [order for each in sorted(found) if (order := self._turn_to(found[each], now_ms))]

    def _take_waiting(self) -> Resources:
        """Return as many waiting resources as may start now; bounds the cost of a call."""
        self._waiting &= self._allowed
        taken = frozenset(nsmallest(self._room(), self._waiting))
        self._waiting -= taken
        return taken

    def _take_rested(self, now_ms: int) -> Resources:
        rested = frozenset(each for each, until_ms in self._rests.items() if now_ms >= until_ms)
        for resource in rested:
            del self._rests[resource]
        return rested

    def note_report(self, report: object) -> None:
        """Record that a resource has reported a state; reports of other types are ignored."""
        if isinstance(report, StatusChanged) and report.resource in self._starting:
            self._reported.add(report.resource)

    def is_current(self, launch: Launch) -> bool:
        """Return whether a resource runs as a launch wants, and is to go on."""
        running = self._running.get(launch.resource)
        if running is None or launch.resource in self._stopping:
            return False
        return core_of(running) == core_of(launch)

    def begins_again(self, resource: Resource) -> bool:
        """Return whether a resource was stopped only to be restarted with a changed launch."""
        return resource in self._stopping and resource in self._allowed

    def take_end(self, resource: Resource, now_ms: int) -> bool:
        """Record the end of a resource; return whether it may not run any more (else: restart)."""
        self._running.pop(resource, None)
        self._forget_start(resource)
        was_told = resource in self._stopping
        self._stopping.discard(resource)
        if resource not in self._allowed:
            self._rests.pop(resource, None)
            return True
        if was_told:
            self._fresh |= {resource}
        else:
            self._rests[resource] = now_ms + REST_MS
        return False

    def next_tick_ms(self) -> int | None:
        """Return when the next resource may start, None if none waits for a time."""
        return earliest(*self._rests.values(), self._first_started_ms() if self._waiting else None)

    def _room(self) -> int:
        """Return how many resources may start now."""
        silent = len(self._starting) - len(self._reported)
        return min(MOST_SILENT - silent, MOST_STARTING - len(self._starting))

    def _forget_start(self, resource: Resource) -> None:
        self._starting.pop(resource, None)
        self._reported.discard(resource)

    def _first_started_ms(self) -> int:
        """Return when the oldest of the starting resources no longer counts as such."""
        return next(iter(self._starting.values()))

    def _turn_to(self, launch: Launch, now_ms: int) -> Order | None:
        resource = launch.resource
        running = self._running.get(resource)
        if running is not None:
            if resource in self._stopping:
                return None
            if core_of(running) == core_of(launch):
                self._running[resource] = launch
                is_same = running.target_state is launch.target_state
                return None if is_same else TurnResource(resource, launch.target_state)
            self._stopping.add(resource)
            return StopResource(resource)
        if resource in self._rests:
            return None
        if not self._room():
            self._waiting.add(resource)
            return None
        self._starting[resource] = now_ms + STARTING_MS
        self._running[resource] = launch
        return StartResource(launch)


def core_of(launch: Launch) -> Launch:
    """Return the part of a launch whose change requires a restart.

    A task has a few keys of its connector's config; one of Kafka Connect's class has all of them,
    such as converters and transforms, and pauses in its place. Keys that its own config repeats are
    left out: they change again when the connector has updated its task configs, which would be a
    second restart.
    """
    if not launch.resource.is_task:
        return launch
    whole = {**launch.connector_config, **launch.config}
    if launch.is_of_connect:
        paused = launch.target_state is RunState.PAUSED  # it pauses in its place
        state = RunState.RUNNING if paused else launch.target_state
        return replace(launch, connector_config=whole, target_state=state)
    return replace(launch, connector_config={key: whole.get(key, "") for key in OF_TASKS})
