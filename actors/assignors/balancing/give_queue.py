"""Work of one worker of which any would do to leave, and which of it leaves first."""

import heapq
from collections.abc import Callable, Iterable
from itertools import chain

from ....events.model import Resource

Shortfall = Callable[[str], tuple[int, int]]
"""How far below its even part a connector is: who is least far below leaves first."""


def by_connector(resources: Iterable[Resource]) -> dict[str, list[Resource]]:
    """Return resources by connector, in the order of their names and tasks.

    Much faster than sorting them all: most of what there is to compare is numbers.
    """
    found: dict[str, list[Resource]] = {}
    for resource in resources:
        found.setdefault(resource[0], []).append(resource)
    for tasks in found.values():
        tasks.sort(key=_task)
    return {connector: found[connector] for connector in sorted(found)}


def _task(resource: Resource) -> int:
    return resource[1]


class GiveQueue:
    """Takes in resources, and gives first the one by whose leaving the spread gains most.

    Among equals the last by name goes. The connectors wait in a heap; what they gain is
    looked at anew when their turn comes.
    """

    __slots__ = ("_loose", "_sorted")

    def __init__(self, resources: list[Resource]) -> None:
        self._loose = resources
        self._sorted: _Sorted | None = None

    def add(self, resource: Resource) -> None:
        """Take in one more."""
        self._loose.append(resource)

    def take(self, shortfall: Shortfall) -> Resource:
        """Return the one that leaves first, which is on the queue no longer."""
        if self._loose or self._sorted is None:
            before = self._sorted.rest() if self._sorted else ()
            self._sorted = _Sorted([*self._loose, *before], shortfall)
            self._loose = []
        return self._sorted.take(shortfall)


class _Sorted:
    """The resources by connector, and the connectors in a heap, who leaves first at its head."""

    __slots__ = ("_connectors", "_heap", "_tasks")

    def __init__(self, resources: Iterable[Resource], shortfall: Shortfall) -> None:
        self._tasks = by_connector(resources)
        self._connectors = [*reversed(self._tasks)]
        self._heap = [(shortfall(each), place) for place, each in enumerate(self._connectors)]
        heapq.heapify(self._heap)

    def rest(self) -> Iterable[Resource]:
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
