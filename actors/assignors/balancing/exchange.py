"""The exchange: levels work of unequal weight, or with demands on its workers, by few moves.

Theory of operation
-------------------

A *taker* is a member that may be given work. If work weighs unequally, only step 1 below is taken:
it ends with shares that no transfer makes more level, and one heavy resource does not make hundreds
of others move. It does not promise the fewest moves: to find these is bin packing. The rest of this
page is about work of equal weight.

Resources that the same takers may run are one *class*; within a class any resource will do. So only
the amounts count: how many resources of each class each taker has. That is a flow from the classes
to the takers, along the arcs "this taker may run that class". Which resource goes where is decided
last.

**What is optimal.** A taker's k-th resource costs k times its scale, which is its load per capacity
with that resource. The shares are *level* when the sum of all costs is minimal: then no taker can
give a resource, directly or through others, to a taker that would be less full with it than the
giver was. Among level shares those with the fewest *moves* are best: each resource that a taker has
of a class beyond what it had is one move. Balance comes first, moves second.

**Three steps lead there.**

1. *Transfers* (here): unassigned work is dealt, the heaviest first, to the takers that it makes
   least full. Then each taker that is ahead of another by more than the heaviest resource that it
   could give gives one: the heaviest that leaves it no less full than the other, or else the
   lightest. Each transfer leaves both less full than the giver was.
2. *Augmenting paths* (`amounts`): a taker whose work only other full takers may run cannot give to
   the emptiest one directly, but to one that gives something else to a third. A path leads from a
   giver through others, each of which has as much after as before, to a receiver; the search is
   breadth-first, from the fullest taker down.
3. *Negative cycles* (`amounts`): at the minimal cost, work moves round a cycle of takers, each of
   which gives one and gets one. No load changes, or two takers swap an odd resource, whose cost is
   the same for both. A cycle that undoes more moves than it makes has a negative cost, and saves as
   many moves.

Then the work is dealt a second time, by the resulting amounts. Each taker keeps as many of its own
resources as they say; the spread decides which ones leave, and which taker gets which. If no taker
had to give anything, the first dealing is the result.

**Why it ends.** The sum of costs is a whole number. Each resource that is given in steps 1 and 2
takes a cost from it and adds a smaller one. Step 3 leaves the sum as it is, and lowers the number
of moves, which is a whole number as well.

**Why it is optimal.** The loads that the demands allow are the bases of a polymatroid,
and the sum is convex in each load: there a solution that no single exchange improves is a least one
(Federgruen and Groenevelt 1986), and an exchange of two loads is what a path makes. A flow costs
the least when its residual graph has no cycle of negative cost (Klein 1967); of those cycles only
such as leave the sum of costs alone are left after step 2.

**What it costs.** With n takers, c classes and a arcs, one round of paths relieves takers the
fullest first, and looks at each taker and each class once: O(n log n + a). A search for a cycle is
that of Bellman and Ford: O((n + c) a) at worst, and it ends with the first cycle. Both are rare: of
3,000 random groups of up to 12 workers, with 7 of 10 resources pinned, 8 needed a path, none more
than two rounds, and 124 a cycle, none more than two. Neither depends on the number of resources.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import mul

from .allocation import Allocation, Sort
from .amounts import Amounts, level_amounts
from .holdings import Transfers
from .workers import ANYWHERE


def level_under_demands(start: Callable[[], Allocation]) -> Transfers:
    """Return the transfers to level shares; `start` returns the shares as they are.

    It is called a second time if the first dealing is not the result.
    """
    transfers, amounts, has_given = _deal_by_transfers(start())
    has_improved = level_amounts(amounts)
    if not has_given and not has_improved:
        return transfers
    del transfers  # the first dealing takes as much memory as the second
    again = start()
    _deal_by_amounts(again, amounts)
    return again.transfers


def _deal_by_transfers(allocation: Allocation) -> tuple[Transfers, Amounts, bool]:
    """Return the transfers of step 1, the amounts after them, and whether any taker had to give."""
    had = [*_count_amounts(allocation, range(len(allocation.loads)))]
    has_given = level_by_transfers(allocation)
    has = [*had]
    changed_takers = allocation.transfers.changed_takers
    for index, some in zip(changed_takers, _count_amounts(allocation, changed_takers), strict=True):
        has[index] = some
    amounts = Amounts(
        allocation.classes.eligible, allocation.workers.scales, had, has, [*allocation.loads]
    )
    return allocation.transfers, amounts, has_given


def _deal_by_amounts(allocation: Allocation, wanted: Amounts) -> None:
    """Deal so that each taker has exactly the wanted amounts."""
    rooms: dict[int, dict[int, int]] = {}
    for index, (had, wants) in enumerate(zip(wanted.had, wanted.has, strict=True)):
        if had is wants:
            continue
        for number, amount in sorted(had.items()):
            for _ in range(amount - wants.get(number, 0)):
                allocation.put_aside(index, (1, number))
        for number, amount in wants.items():
            if (more := amount - had.get(number, 0)) > 0:
                rooms.setdefault(number, {})[index] = more
    allocation.deal_unassigned(rooms)


def _count_amounts(allocation: Allocation, indices: Iterable[int]) -> Iterator[dict[int, int]]:
    """Yield how much of each class these takers have, if all weighs 1.

    Takers with equal amounts share one mapping: of thousands of takers most do.
    """
    found: dict[tuple[tuple[int, int], ...], dict[int, int]] = {}
    for index in indices:
        has = tuple([(number, amount) for (_, number), amount in allocation.amounts(index).items()])
        if has not in found:
            found[has] = dict(has)
        yield found[has]


def level_by_transfers(allocation: Allocation) -> bool:
    """Deal unassigned resources, then relieve the fullest takers; False if none was relieved."""
    allocation.deal_unassigned()
    has_given, is_level = False, False
    while not is_level:
        is_level = True
        fullness = [*map(mul, allocation.loads, allocation.workers.scales)]
        emptiest = min(fullness)
        for index in sorted(range(len(fullness)), key=fullness.__getitem__, reverse=True):
            if _is_ahead(allocation, index, emptiest):
                _relieve(allocation, index)
                has_given, is_level = True, False
    return has_given


def _is_ahead(allocation: Allocation, index: int, emptiest: int) -> bool:
    """Return whether a taker has so much more than another that it has to give.

    `emptiest` is how full the least full taker was at the beginning of the round: that is enough to
    exclude most takers.
    """
    fullness = allocation.loads[index] * allocation.workers.scales[index]
    heaviest = allocation.heaviest(index)
    if not heaviest or emptiest + min(heaviest)[0] >= fullness:
        return False
    return min(map(allocation.least, heaviest)) < fullness


def _relieve(allocation: Allocation, index: int) -> None:
    """Move resources away from a taker until it is not too far ahead of any other."""
    giver = _Giver(allocation, index)
    while giver.give():
        pass
    allocation.requeue(index)


class _Giver:
    """A taker that gives: its classes wait in a heap, by how full their heaviest makes another.

    While it gives, the others only fill up, so that no class is due earlier than it was queued:
    each is checked again when its turn comes.
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
        """Move the next resource; False if this taker is no longer too far ahead of any other."""
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
            queued, number = queue[0]
            if not self._weights[number]:
                heapq.heappop(queue)
            elif (now := self._least(number)) != queued:
                heapq.heapreplace(queue, (now, number))
            else:
                return queued, number
        return None, ANYWHERE

    def _least(self, number: int) -> int:
        """Return how full another would be, at the least, with the heaviest of a class."""
        return self._allocation.least((self._weights[number][-1], number))
