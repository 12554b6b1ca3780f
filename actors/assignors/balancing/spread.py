"""How the tasks of each connector are spread, and which task leaves a worker for the spread's sake.

Tasks are counted by connector in each zone, and on each worker. Where a worker has to give up
any of several resources, the first to leave is the one by whose leaving the spread gains most.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from operator import itemgetter

from ....events.model import Resource, Resources
from .workers import Workers

connector_of = itemgetter(0)
"""Returns the connector of a resource, quicker than the attribute does."""


class TasksOnWorkers(dict[int, dict[str, int]]):
    """The number of tasks of each connector on a worker, by worker; counted on first access."""

    __slots__ = ("_share_of",)

    def __init__(self, share_of: Callable[[int], Resources]) -> None:
        super().__init__()
        self._share_of = share_of

    def __missing__(self, index: int) -> dict[str, int]:
        """Count the tasks of a worker that was not counted yet."""
        found = self[index] = {}
        for connector, _ in self._share_of(index):
            found[connector] = found.get(connector, 0) + 1
        return found


class Spread:
    """Counts tasks by connector, in each zone and on each worker.

    `share_of` returns what a worker has by now: its tasks are counted when they are asked for.
    `on_workers` may be cleared at any time: it takes memory, and can be counted again.
    """

    __slots__ = ("_workers", "on_workers", "totals", "zones")

    def __init__(self, workers: Workers, share_of: Callable[[int], Resources]) -> None:
        self._workers = workers
        self.on_workers = TasksOnWorkers(share_of)
        self.zones: dict[str, Counter[str]] = {zone: Counter() for zone in workers.zone_names}
        """How many tasks of each connector run in a zone, by zone."""
        self.totals: Counter[str] = Counter()
        """How many tasks of each connector run at all."""

    def count_in(self, zone: str, tasks: Iterable[Resources]) -> None:
        """Count these tasks in a zone; a zone without workers that take work is ignored."""
        if zone in self.zones:
            found = Counter(map(connector_of, chain.from_iterable(tasks)))
            self.zones[zone].update(found)
            self.totals.update(found)

    def uncount_in(self, zone: str, tasks: Iterable[Resource]) -> None:
        """Subtract resources that `count_in` counted in a zone and that are no tasks."""
        for connector, _ in tasks:
            self.zones[zone][connector] -= 1
            self.totals[connector] -= 1

    def move(self, connector: str, index: int, by: int) -> None:
        """Record that a worker has `by` more tasks of a connector."""
        self.zones[self._workers.zones[index]][connector] += by
        self.totals[connector] += by
        on = self.on_workers[index]
        on[connector] = on.get(connector, 0) + by

    def room(self, index: int, connector: str) -> tuple[int, int]:
        """Return how many tasks a zone, then a worker, may take before they exceed an even spread.

        The numbers only compare: the less, the more the spread gains if one of its tasks leaves.
        """
        in_zone = self.zones[self._workers.zones[index]][connector]
        on = self.on_workers[index].get(connector, 0)
        return self.totals[connector] - in_zone * len(self.zones), -on


Shortfall = Callable[[str], tuple[int, int]]
"""Returns how far below its even part a connector is; the one least far below leaves first."""


def by_connector(resources: Iterable[Resource]) -> dict[str, list[Resource]]:
    """Return resources by connector, in the order of their names and tasks.

    It is much faster than to sort them all: most of what there is to compare is numbers.
    """
    found: dict[str, list[Resource]] = {}
    for resource in resources:
        found.setdefault(resource[0], []).append(resource)
    for tasks in found.values():
        tasks.sort(key=_task)
    return {connector: found[connector] for connector in sorted(found)}


def _task(resource: Resource) -> int:
    return resource[1]


class RemovalQueue:
    """The resources of a worker in the order in which they leave it.

    The one by whose leaving the spread gains most is first; among equals the last by name. The
    connectors wait in a heap; what the spread gains by each is computed anew when its turn comes.
    """

    __slots__ = ("_loose", "_sorted")

    def __init__(self, resources: list[Resource]) -> None:
        self._loose = resources
        """What was added since the others were sorted."""
        self._sorted: _Sorted | None = None
        """The other resources, sorted; None before the first removal."""

    def add(self, resource: Resource) -> None:
        """Add a resource."""
        self._loose.append(resource)

    def take(self, shortfall: Shortfall) -> Resource:
        """Remove the resource that leaves first, and return it."""
        if self._loose or self._sorted is None:
            before = self._sorted.remaining() if self._sorted else ()
            self._sorted = _Sorted([*self._loose, *before], shortfall)
            self._loose = []
        return self._sorted.take(shortfall)


class _Sorted:
    """Resources by connector, and the connectors in a heap, the first to leave at its head."""

    __slots__ = ("_connectors", "_heap", "_tasks")

    def __init__(self, resources: Iterable[Resource], shortfall: Shortfall) -> None:
        self._tasks = by_connector(resources)
        self._connectors = [*reversed(self._tasks)]
        self._heap = [(shortfall(each), place) for place, each in enumerate(self._connectors)]
        heapq.heapify(self._heap)

    def remaining(self) -> Iterable[Resource]:
        return chain.from_iterable(self._tasks.values())

    def take(self, shortfall: Shortfall) -> Resource:
        heap = self._heap
        while (now := (shortfall(self._connectors[heap[0][1]]), heap[0][1])) != heap[0]:
            heapq.heapreplace(heap, now)
        tasks = self._tasks[self._connectors[now[1]]]
        leaver = tasks.pop()
        if not tasks:
            heapq.heappop(heap)
        return leaver
