"""Work that weighs unequally, or that may not run everywhere: it is put in order bit by bit.

What nobody has is dealt first, the heaviest first, each to the worker that it makes least
full. Then whoever is ahead of another by more than the heaviest that it could give gives: the
heaviest that does not turn the tables, or else the lightest. Such a gift leaves both less full
than the giver was, so there is an end to it; and one giant among the work does not make
hundreds move. That this moves the least is not promised: to find that out is bin packing.
"""

import heapq
from bisect import bisect_right
from operator import mul

from .classes import ANYWHERE
from .hands import Hands, Sort


def weigh(hands: Hands) -> bool:
    """Deal what is in nobody's hands, then let give who is too far ahead; tell if any was."""
    hands.deal_homeless()
    has_given, is_at_rest = False, False
    while not is_at_rest:
        is_at_rest = True
        fullness = [*map(mul, hands.loads, hands.roster.scales)]
        emptiest = min(fullness)
        for index in sorted(range(len(fullness)), key=fullness.__getitem__, reverse=True):
            if _is_ahead(hands, index, emptiest):
                _relieve(hands, index)
                has_given, is_at_rest = True, False
    return has_given


def _is_ahead(hands: Hands, index: int, emptiest: int) -> bool:
    """Tell whether a taker has to give.

    `emptiest` is how full the least full was a while ago: most takers need not look any further.
    """
    fullness = hands.loads[index] * hands.roster.scales[index]
    heaviest = hands.heaviest(index)
    if not heaviest or emptiest + min(heaviest)[0] >= fullness:
        return False
    return min(map(hands.least, heaviest)) < fullness


def _relieve(hands: Hands, index: int) -> None:
    """Let a taker give until it is ahead of nobody far enough."""
    giver = _Giver(hands, index)
    while giver.give():
        pass
    hands.reseat(index)


class _Giver:
    """One who gives: its classes wait in a heap, by how full it makes another to get the heaviest.

    While one gives the others only fill up, so that no class is to come earlier than it waits
    for: it is looked at anew when its turn comes. The one that gave is the first all the same.
    """

    def __init__(self, hands: Hands, index: int) -> None:
        self._hands, self._index = hands, index
        self._weights: dict[int, list[int]] = {}
        for weight, number in sorted(hands.amounts(index)):
            self._weights.setdefault(number, []).append(weight)
        self._queue = [(self._least(number), number) for number in self._weights]
        heapq.heapify(self._queue)

    def give(self) -> bool:
        """Give what is to be given next, or tell that this is ahead of nobody far enough."""
        hands, sort = self._hands, self._gift()
        if sort is None:
            return False
        hands.deal(hands.give_up(self._index, sort), sort)
        if sort not in hands.amounts(self._index):
            weight, number = sort
            self._weights[number].remove(weight)
        return True

    def _gift(self) -> Sort | None:
        """Return what is to be given next: of the class by which another is made least full."""
        hands, scale = self._hands, self._hands.roster.scales[self._index]
        fullness = hands.loads[self._index] * scale
        least, number = self._first()
        if least is None or least >= fullness:
            return None
        weights = self._weights[number]
        fitting = bisect_right(
            weights,
            fullness,
            key=lambda weight: hands.least((weight, number)) + weight * scale,
        )
        return weights[max(fitting - 1, 0)], number

    def _first(self) -> tuple[int | None, int]:
        """Return how full another would be at the least, and the class by which it is that."""
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
        return self._hands.least((self._weights[number][-1], number))
