"""From what may run, and what the log grants, to what is started and stopped.

The membership says what may run at all, the log with which config and token. A resource is
started only while nothing of it runs: one whose launch has changed is stopped first, and started
anew once it has ended. One that ends by itself though it may run rests for a moment, and begins
again. Many are started a few at a time: a worker of a slow machine that began forty at once would
hear no answer of its group meanwhile, and its session would end.
"""

from dataclasses import replace
from heapq import nsmallest

from .....actors.backoff import earliest
from .....events.model import NOTHING, Resource, Resources
from .....projections.launches import Launch, launches
from ....pipeline.connectors.common_keys import OF_TASKS
from .contract import MemberLog, StartResource, StopResource

REST_MS = 1_000
"""How long a resource rests that ended though it may run."""
STARTS_AT_ONCE = 8
START_PAUSE_MS = 10
"""From the first of so many starts to the next; what has come meanwhile is heard before that."""


class Starts:
    """What one member has running; times in milliseconds on any one clock."""

    def __init__(self, log: MemberLog) -> None:
        self._log = log
        self._allowed: Resources = NOTHING
        self._running: dict[Resource, Launch] = {}
        """From the order to start until the report that it has ended."""
        self._stopping: set[Resource] = set()
        """Those of them that were told to stop."""
        self._rests: dict[Resource, int] = {}
        """Until when each resource rests that ended though it may run."""
        self._fresh: Resources = NOTHING
        """What may run, and the log has not granted or shown the config of since it may."""
        self._room, self._has_room_ms = 0, 0
        """How many may start now, and when there is room for as many as ever."""
        self._waiting: set[Resource] = set()
        """What could start, and waits for room."""

    def allow(self, resources: Resources) -> None:
        """Let these run as soon as the log grants them."""
        self._allowed |= resources
        self._fresh |= resources

    def stop(self, resources: Resources) -> tuple[list[StopResource], Resources]:
        """Bring resources to an end; return also those of which nothing runs already."""
        self._allowed -= resources
        running = sorted(resources & self._running.keys())
        told = [StopResource(each) for each in running if each not in self._stopping]
        self._stopping.update(running)
        return told, resources - self._running.keys()

    def abandon(self) -> Resources:
        """Let nothing run any more; return what is running, all of which is to be cut short."""
        self._allowed = NOTHING
        self._stopping.update(self._running)
        return frozenset(self._running)

    def align(self, now_ms: int) -> list[StartResource | StopResource]:
        """Return what to do so that what runs is what the log grants."""
        if now_ms >= self._has_room_ms:
            self._room, self._has_room_ms = STARTS_AT_ONCE, now_ms + START_PAUSE_MS
        self._fresh |= self._take_waiting()
        todo = self._log.take_changed() | self._fresh
        if self._rests:
            todo |= self._take_rested(now_ms)
        todo = (todo & self._allowed) - self._waiting
        if not todo:
            return []
        found = launches(self._log.group, self._log.member_id, todo)
        self._fresh = (self._fresh & self._allowed) - found.keys()
        return [order for each in sorted(found) if (order := self._turn_to(found[each]))]

    def _take_waiting(self) -> Resources:
        """Return as much of what waits as there is room for, so that no look costs all of it."""
        self._waiting &= self._allowed
        taken = frozenset(nsmallest(self._room, self._waiting))
        self._waiting -= taken
        return taken

    def _take_rested(self, now_ms: int) -> Resources:
        rested = frozenset(each for each, until_ms in self._rests.items() if now_ms >= until_ms)
        for resource in rested:
            del self._rests[resource]
        return rested

    def begins_again(self, resource: Resource) -> bool:
        """Tell whether a resource that ends was only told to so that it begins otherwise."""
        return resource in self._stopping and resource in self._allowed

    def take_end(self, resource: Resource, now_ms: int) -> bool:
        """Tell whether a resource that ended may not run any more; one that may begins again."""
        self._running.pop(resource, None)
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
        """Return when something has rested or may start, None if nothing waits for a time."""
        return earliest(*self._rests.values(), self._has_room_ms if self._waiting else None)

    def _turn_to(self, launch: Launch) -> StartResource | StopResource | None:
        resource = launch.resource
        running = self._running.get(resource)
        if running is not None:
            if core_of(running) == core_of(launch) or resource in self._stopping:
                return None
            self._stopping.add(resource)
            return StopResource(resource)
        if resource in self._rests:
            return None
        if not self._room:
            self._waiting.add(resource)
            return None
        self._room -= 1
        self._running[resource] = launch
        return StartResource(launch)


def core_of(launch: Launch) -> Launch:
    """Return a launch with what must be stopped if it changes.

    Of its connector's config a task has a few keys. Those that its own config repeats change with
    that, once its connector has split its work anew: it would be stopped a second time then.
    """
    if not launch.resource.is_task:
        return launch
    whole = {**launch.connector_config, **launch.config}
    return replace(launch, connector_config={key: whole.get(key, "") for key in OF_TASKS})
