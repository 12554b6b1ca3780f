"""The exchange: work that weighs the same and may not run everywhere, levelled with few moves.

Theory of operation
-------------------

Resources whose demands the same takers meet are one class; within a class any will do. So all
that counts is how many of each class each taker has: a flow from the classes to the takers, along
the arcs "this taker may run that class". Which resource goes where is settled last.

**What is optimal.** A taker's k-th resource costs k times its scale, which is its load per capacity
with that resource. The shares are *level* when the sum of all costs is the least: then no taker can
pass one on, directly or through others, to a taker that would be less full with it than the giver
was. Of all level shares those are wanted that *move* the least: each resource that a taker has of
a class beyond what it had is one move. Balance comes first, moves second.

**Three steps lead there.**

1. *Transfers* (`weighing`): unassigned work is dealt to the takers that it makes least full. Then a
   taker gives one resource to another as long as that leaves both less full than the giver was.
2. *Augmenting paths* (here): a taker that is full of work which only its like may run cannot give
   to the emptiest, but to one that gives something else to a third. A path leads from a giver
   through others, each of which has as much after as before, to a receiver; the search is
   breadth-first, from the fullest taker down.
3. *Negative cycles* (`negative_cycles`): with the costs at their least, work goes round in a
   cycle of takers, each of which gives one and gets one. No load changes, or two takers swap the
   odd one, whose cost is the same for both. A cycle that undoes more moves than it makes has a
   negative cost, and saves as many.

The work is then dealt anew by the amounts that result. Each taker keeps of its own as many as they
say; which ones leave, and who gets which, the spread decides. Where nobody had to give anything
the first dealing stands.

**Why it ends.** The sum of costs is a whole number. Each resource that is passed on in steps 1 and
2 takes a cost from it and adds a smaller one. Step 3 leaves the sum as it is, and lowers the number
of moves, a whole number as well.

**Why it is the best there is.** The loads that the demands allow are the bases of a polymatroid,
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

from collections.abc import Callable

from .allocation import Allocation
from .amounts import Amounts, count_amounts
from .negative_cycles import save_moves
from .stock import Transfers
from .weighing import weigh

Step = tuple[int, int]
"""The last step of a path to a taker: who gives to it, and of which class."""


def level_under_demands(start: Callable[[], Allocation]) -> Transfers:
    """Return what changes hands until the shares are level; `start` returns them as they are.

    It is called a second time where the first dealing does not stand.
    """
    transfers, amounts, has_given = _deal_by_transfers(start())
    is_levelled, is_cheaper = _augment(amounts), save_moves(amounts)
    if not has_given and not is_levelled and not is_cheaper:
        return transfers
    del transfers  # what was dealt in vain takes as much room as what is dealt now
    again = start()
    _deal_by_amounts(again, amounts)
    return again.transfers


def _deal_by_transfers(allocation: Allocation) -> tuple[Transfers, Amounts, bool]:
    """Return what transfers change, the amounts after them, and whether anybody had to give."""
    had = [*count_amounts(allocation, range(len(allocation.loads)))]
    has_given = weigh(allocation)
    has = [*had]
    touched = allocation.transfers.touched
    for index, some in zip(touched, count_amounts(allocation, touched), strict=True):
        has[index] = some
    amounts = Amounts(
        allocation.classes.eligible, allocation.workers.scales, had, has, [*allocation.loads]
    )
    return allocation.transfers, amounts, has_given


def _deal_by_amounts(allocation: Allocation, wanted: Amounts) -> None:
    """Deal so that each taker has just the amounts that are wanted."""
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


def _augment(amounts: Amounts) -> bool:
    """Follow all augmenting paths, until the shares are level; tell whether there was any."""
    has_changed = False
    while _relieve_some(amounts):
        has_changed = True
    return has_changed


def _relieve_some(amounts: Amounts) -> bool:
    """Relieve the takers that can be, the fullest first; tell whether there was any.

    A taker that one search has reached the next ones pass over, so that the whole round costs no
    more than one search. If no taker was relieved none can be: a taker that can be reached at all
    is reached by the fullest that can reach it.
    """
    has_changed = False
    search = _PathSearch(amounts)
    takers = range(len(amounts.loads))
    for start in sorted(takers, key=lambda each: (-amounts.fullness(each), each)):
        if start not in search.steps:
            end = search.reach(start)
            if end is not None:
                _pass_on(amounts, search.steps, start, end)
                has_changed = True
    return has_changed


class _PathSearch:
    """Finds which takers augmenting paths reach, by a search in breadth."""

    def __init__(self, amounts: Amounts) -> None:
        self._amounts = amounts
        self._passed: set[int] = set()
        """The classes whose takers are all reached."""
        self.steps: dict[int, Step] = {}
        """The last step to each taker that is reached; one that a search began with: -1."""

    def reach(self, start: int) -> int | None:
        """Return a taker that can relieve this one: less full with one more than this one is."""
        amounts, steps = self._amounts, self.steps
        steps[start] = start, -1
        queue = [start]
        for giver in queue:  # it grows
            for number, amount in amounts.has[giver].items():
                if not amount or number in self._passed:
                    continue
                self._passed.add(number)
                reached = [each for each in amounts.eligible[number] if each not in steps]
                steps.update(dict.fromkeys(reached, (giver, number)))
                queue += reached
                end = min(reached, key=amounts.with_one_more, default=start)
                if amounts.with_one_more(end) < amounts.fullness(start):
                    return end
        return None


def _pass_on(amounts: Amounts, steps: dict[int, Step], start: int, end: int) -> None:
    """Pass along the path as much as every giver has, and as lowers the sum of costs."""
    path: list[tuple[int, int, int]] = []
    receiver = end
    while receiver != start:
        giver, number = steps[receiver]
        path.append((giver, number, receiver))
        receiver = giver
    scales = amounts.scales
    ahead = amounts.fullness(start) + scales[start] - amounts.fullness(end) - 1
    amount = min(
        ahead // (scales[start] + scales[end]),
        *(amounts.has[giver][number] for giver, number, _ in path),
    )
    for giver, number, receiver in path:
        amounts.shift(giver, number, receiver, amount)
