"""How the tasks of each connector are spread: how many run in each zone, and on each worker."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter

from ....events.model import Resource, Resources
from .roster import Roster

connector_of = itemgetter(0)
"""The connector of a resource, as fast as it can be had."""


class Tally:
    """Counts tasks by connector; what is not counted on workers is not known there."""

    __slots__ = ("_roster", "totals", "workers", "zones")

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self.zones: dict[str, Counter[str]] = {zone: Counter() for zone in roster.zone_names}
        self.totals: Counter[str] = Counter()
        self.workers: dict[str, dict[int, int]] = {}

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

    def count_on(self, index: int, tasks: Iterable[Resource]) -> None:
        """Count these tasks on a worker; its zone has them already."""
        workers = self.workers
        for connector, _ in tasks:
            on = workers.get(connector)
            if on is None:
                on = workers[connector] = {}
            on[index] = on.get(index, 0) + 1

    def move(self, connector: str, index: int, by: int) -> None:
        """Note that a worker has so many more, or less, of a connector."""
        self.zones[self._roster.zones[index]][connector] += by
        self.totals[connector] += by
        on = self.workers.setdefault(connector, {})
        on[index] = on.get(index, 0) + by

    def room(self, index: int, connector: str) -> tuple[int, int]:
        """Return how far a connector is below its even part in the worker's zone, and on it.

        In units of its own; the less, the more the spread gains if one of its tasks leaves.
        """
        in_zone = self.zones[self._roster.zones[index]][connector]
        on = self.workers.get(connector, {}).get(index, 0)
        return self.totals[connector] - in_zone * len(self.zones), -on
