"""Work that weighs unequally, or that may not run everywhere: it is put in order bit by bit.

Unassigned work is dealt first, the heaviest first, each to the worker that it makes least full.
Then a worker that is ahead of another by more than the heaviest that it could give gives: the
heaviest that leaves it no less full than the other, or else the lightest. Each transfer leaves both
workers less full than the giver was, so it comes to an end; and one giant among the work does not
make hundreds move. That this moves the least is not promised: to find that out is bin packing.
"""

import heapq
from bisect import bisect_right
from operator import mul

from .allocation import Allocation, Sort
from .workers import ANYWHERE


def weigh(allocation: Allocation) -> bool:
    """Deal what is unassigned, then have takers give that are too far ahead; tell if any was."""
    allocation.deal_unassigned()
    has_given, is_at_rest = False, False
    while not is_at_rest:
        is_at_rest = True
        fullness = [*map(mul, allocation.loads, allocation.workers.scales)]
        emptiest = min(fullness)
        for index in sorted(range(len(fullness)), key=fullness.__getitem__, reverse=True):
            if _is_ahead(allocation, index, emptiest):
                _relieve(allocation, index)
                has_given, is_at_rest = True, False
    return has_given


def _is_ahead(allocation: Allocation, index: int, emptiest: int) -> bool:
    """Tell whether a taker has to give.

    `emptiest` is how full the least full taker was a while ago: most need not look any further.
    """
    fullness = allocation.loads[index] * allocation.workers.scales[index]
    heaviest = allocation.heaviest(index)
    if not heaviest or emptiest + min(heaviest)[0] >= fullness:
        return False
    return min(map(allocation.least, heaviest)) < fullness


def _relieve(allocation: Allocation, index: int) -> None:
    """Have a taker give until it is ahead of no other far enough."""
    giver = _Giver(allocation, index)
    while giver.give():
        pass
    allocation.requeue(index)


class _Giver:
    """A taker that gives: its classes wait in a heap, by how full their heaviest makes another.

    While it gives the others only fill up, so that no class is due earlier than it was queued:
    each is looked at anew when its turn comes.
    """

    def __init__(self, allocation: Allocation, index: int) -> None:
        self._allocation, self._index = allocation, index
        self._weights: dict[int, list[int]] = {}
        """The weights of what it has of each class, ascending, by class."""
        for weight, number in sorted(allocation.amounts(index)):
            self._weights.setdefault(number, []).append(weight)
        self._queue = [(self._least(number), number) for number in self._weights]
        """A heap of its classes, by how full their heaviest makes another at the least."""
        heapq.heapify(self._queue)

    def give(self) -> bool:
        """Give the next resource; return False if this taker is ahead of no other far enough."""
        allocation, sort = self._allocation, self._next_transfer()
        if sort is None:
            return False
        allocation.deal(allocation.give_up(self._index, sort), sort)
        if sort not in allocation.amounts(self._index):
            weight, number = sort
            self._weights[number].remove(weight)
        return True

    def _next_transfer(self) -> Sort | None:
        """Return the sort to give next: of the class by which another is made least full."""
        allocation, scale = self._allocation, self._allocation.workers.scales[self._index]
        fullness = allocation.loads[self._index] * scale
        least, number = self._first()
        if least is None or least >= fullness:
            return None
        weights = self._weights[number]
        fitting = bisect_right(
            weights,
            fullness,
            key=lambda weight: allocation.least((weight, number)) + weight * scale,
        )
        return weights[max(fitting - 1, 0)], number

    def _first(self) -> tuple[int | None, int]:
        """Return how full another would be at the least, and by which class."""
        queue = self._queue
        while queue:
            known, number = queue[0]
            if not self._weights[number]:
                heapq.heappop(queue)
            elif (now := self._least(number)) != known:
                heapq.heapreplace(queue, (now, number))
            else:
                return known, number
        return None, ANYWHERE

    def _least(self, number: int) -> int:
        """Return how full another would be, at the least, with the heaviest of a class."""
        return self._allocation.least((self._weights[number][-1], number))
