"""How the tasks of each connector are spread: how many run in each zone, and on each worker."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from operator import itemgetter

from ....events.model import Resource, Resources
from .workers import Workers

connector_of = itemgetter(0)
"""The connector of a resource, as fast as it can be had."""


class TasksOnWorkers(dict[int, dict[str, int]]):
    """How many tasks of each connector are on a worker, which is counted once it is asked for."""

    __slots__ = ("_share_of",)

    def __init__(self, share_of: Callable[[int], Resources]) -> None:
        super().__init__()
        self._share_of = share_of

    def __missing__(self, index: int) -> dict[str, int]:
        """Count what a worker has that was not asked for yet."""
        found = self[index] = {}
        for connector, _ in self._share_of(index):
            found[connector] = found.get(connector, 0) + 1
        return found


class Spread:
    """Counts tasks by connector: all in the zones, and those of a worker once it is asked for.

    `share_of` returns what a worker has by then. What is on workers may be cleared at any time:
    it takes room, and can be counted again.
    """

    __slots__ = ("_workers", "on_workers", "totals", "zones")

    def __init__(self, workers: Workers, share_of: Callable[[int], Resources]) -> None:
        self._workers = workers
        self.on_workers = TasksOnWorkers(share_of)
        self.zones: dict[str, Counter[str]] = {zone: Counter() for zone in workers.zone_names}
        self.totals: Counter[str] = Counter()

    def count_in(self, zone: str, tasks: Iterable[Resources]) -> None:
        """Count these tasks in a zone; where no worker of the zone takes work it is none."""
        if zone in self.zones:
            found = Counter(map(connector_of, chain.from_iterable(tasks)))
            self.zones[zone].update(found)
            self.totals.update(found)

    def uncount_in(self, zone: str, tasks: Iterable[Resource]) -> None:
        """Take back what was counted in a zone and is no task."""
        for connector, _ in tasks:
            self.zones[zone][connector] -= 1
            self.totals[connector] -= 1

    def move(self, connector: str, index: int, by: int) -> None:
        """Note that a worker has so many more, or less, of a connector."""
        self.zones[self._workers.zones[index]][connector] += by
        self.totals[connector] += by
        on = self.on_workers[index]
        on[connector] = on.get(connector, 0) + by

    def room(self, index: int, connector: str) -> tuple[int, int]:
        """Return how far a connector is below its even part in the worker's zone, and on it.

        In units of its own; the less, the more the spread gains if one of its tasks leaves.
        """
        in_zone = self.zones[self._workers.zones[index]][connector]
        on = self.on_workers[index].get(connector, 0)
        return self.totals[connector] - in_zone * len(self.zones), -on
