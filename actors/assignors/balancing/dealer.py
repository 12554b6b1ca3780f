"""Dealing work out: to the least loaded taker, among equals to the best for the spread."""

import heapq
from collections.abc import Iterable

from .spread import Spread, TasksOnWorkers
from .workers import Workers

Head = tuple[int, int, int, int, int]
"""The next taker of a pool, in the order in which they compare.

Its load per capacity with one more, tasks of the connector in its zone, then on it, itself, the
pool.
"""


class Pool:
    """The takers of one zone and one capacity, the least loaded first.

    While a connector is dealt, takers that have tasks of it wait apart, by how many. Loads also
    change elsewhere: an entry that is out of date is corrected when its turn comes.
    """

    __slots__ = ("holders", "scale", "waiting", "zone")

    def __init__(self, scale: int, zone: str) -> None:
        self.scale = scale
        self.zone = zone
        self.waiting: list[tuple[int, int]] = []
        """A heap of takers without a task of the connector: load, taker."""
        self.holders: list[tuple[int, int, int]] = []
        """A heap of takers with tasks of it: load, number of its tasks, taker."""

    def first(
        self, loads: list[int], on_workers: TasksOnWorkers, connector: str
    ) -> tuple[int, int, int] | None:
        """Return the load of the next taker, how many of the connector it has, and the taker."""
        waiting, holders = self.waiting, self.holders
        self._correct(loads)
        while waiting and (on := on_workers[waiting[0][1]].get(connector)):
            load, index = heapq.heappop(waiting)
            heapq.heappush(holders, (load, on, index))
            self._correct(loads)
        while holders:
            load, on, index = holders[0]
            now = loads[index], on_workers[index].get(connector, 0)
            if (load, on) == now:
                break
            heapq.heapreplace(holders, (*now, index))
        if waiting and not (holders and holders[0] < (waiting[0][0], 0, waiting[0][1])):
            return waiting[0][0], 0, waiting[0][1]
        return holders[0] if holders else None

    def least_load(self, loads: list[int]) -> int | None:
        """Return the load of the least loaded, while no connector is dealt."""
        self._correct(loads)
        return self.waiting[0][0] if self.waiting else None

    def _correct(self, loads: list[int]) -> None:
        waiting = self.waiting
        while waiting:
            load, index = waiting[0]
            if load == loads[index]:
                break
            heapq.heapreplace(waiting, (loads[index], index))

    def pop(self, index: int) -> None:
        """Remove a taker that `first` returned."""
        if self.holders and self.holders[0][2] == index:
            heapq.heappop(self.holders)
        else:
            heapq.heappop(self.waiting)

    def rejoin(self, loads: list[int]) -> None:
        """Merge the takers set aside for this connector back into the main queue."""
        for _, _, index in self.holders:
            heapq.heappush(self.waiting, (loads[index], index))
        self.holders.clear()


class Dealer:
    """Deals work to some takers, and keeps loads and spread up to date.

    `rooms` says how many each taker may be dealt at most; without it there is no bound.
    """

    __slots__ = ("_loads", "_pools", "_rooms", "_spread")

    def __init__(
        self,
        workers: Workers,
        loads: list[int],
        spread: Spread,
        eligible: Iterable[int],
        rooms: dict[int, int] | None = None,
    ) -> None:
        pools: dict[tuple[int, str], Pool] = {}
        for index in eligible:
            kind = workers.scales[index], workers.zones[index]
            if kind not in pools:
                pools[kind] = Pool(*kind)
            pools[kind].waiting.append((loads[index], index))
        for pool in pools.values():
            heapq.heapify(pool.waiting)
        self._loads, self._spread, self._rooms = loads, spread, rooms
        self._pools = list(pools.values())

    def least(self, weight: int) -> int:
        """Return the least load per capacity that a taker would have with this weight added."""
        found = ((pool.least_load(self._loads), pool.scale) for pool in self._pools)
        return min((load + weight) * scale for load, scale in found if load is not None)

    def requeue(self, workers: Workers, index: int) -> None:
        """Queue a taker again by its present load, which fell."""
        kind = workers.scales[index], workers.zones[index]
        pool = next(each for each in self._pools if (each.scale, each.zone) == kind)
        heapq.heappush(pool.waiting, (self._loads[index], index))

    def deal(self, connector: str, weight: int, count: int) -> list[int]:
        """Deal `count` of a connector's resources of that weight; return the taker of each."""
        heads = [
            head
            for place in range(len(self._pools))
            if (head := self._head(place, connector, weight)) is not None
        ]
        heapq.heapify(heads)
        dealt = [self._deal_one(heads, connector, weight) for _ in range(count)]
        for pool in self._pools:
            pool.rejoin(self._loads)
        return dealt

    def _deal_one(self, heads: list[Head], connector: str, weight: int) -> int:
        while (now := self._head(heads[0][-1], connector, weight)) != heads[0]:
            _replace(heads, now)
        index, place = heads[0][-2:]
        pool = self._pools[place]
        pool.pop(index)
        self._loads[index] += weight
        self._spread.move(connector, index, 1)
        if self._has_room(index):
            on = self._spread.on_workers[index][connector]
            heapq.heappush(pool.holders, (self._loads[index], on, index))
        _replace(heads, self._head(place, connector, weight))
        return index

    def _has_room(self, index: int) -> bool:
        if self._rooms is None:
            return True
        self._rooms[index] -= 1
        return self._rooms[index] > 0

    def _head(self, place: int, connector: str, weight: int) -> Head | None:
        pool = self._pools[place]
        first = pool.first(self._loads, self._spread.on_workers, connector)
        if first is None:
            return None
        load, on, index = first
        in_zone = self._spread.zones[pool.zone][connector]
        return (load + weight) * pool.scale, in_zone, on, index, place


def _replace(heads: list[Head], head: Head | None) -> None:
    if head is None:
        heapq.heappop(heads)
    else:
        heapq.heapreplace(heads, head)
