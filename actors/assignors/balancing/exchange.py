"""Work that weighs the same and may not run everywhere: level, with the fewest moves there can be.

First it is dealt and levelled transfer by transfer, as weighed work is. What that leaves
unlevel, or moved for nothing, is put right on the amounts alone. Then the work is dealt anew
by these amounts, each taker keeping of its own what they say. Where nobody had to give
anything all is well as it is.

A worker that is full of work which only its like may run can still be relieved: it gives to
one who gives something else to a third. While such an augmenting path leads from a worker to
one that would be less full even with one more, the shares are not level; when there is none,
they are as level as the demands allow, from the fullest worker down. (The loads are the base
of a polymatroid: what no path improves is the best there is.)
"""

from collections.abc import Callable

from .allocation import Allocation
from .amounts import Amounts, count_amounts
from .negative_cycles import save_moves
from .stock import Changes
from .weighing import weigh


def level_under_demands(start: Callable[[], Allocation]) -> Changes:
    """Return what changes hands, given what returns the allocation as it is at the start."""
    changes, amounts, has_given = _deal_by_transfers(start())
    is_levelled, is_cheaper = exchange(amounts), save_moves(amounts)
    if not has_given and not is_levelled and not is_cheaper:
        return changes
    del changes  # what was dealt in vain takes as much room as what is dealt now
    again = start()
    _follow(again, amounts)
    return again.changes


def _deal_by_transfers(allocation: Allocation) -> tuple[Changes, Amounts, bool]:
    """Return what changes hands so, how all stands then, and whether anybody had to give."""
    had = [*count_amounts(allocation, range(len(allocation.loads)))]
    has_given = weigh(allocation)
    has = [*had]
    touched = allocation.changes.touched
    for index, some in zip(touched, count_amounts(allocation, touched), strict=True):
        has[index] = some
    amounts = Amounts(
        allocation.classes.eligible, allocation.workers.scales, had, has, [*allocation.loads]
    )
    return allocation.changes, amounts, has_given


def _follow(allocation: Allocation, wanted: Amounts) -> None:
    """Let everybody have just the amounts that are wanted."""
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


Step = tuple[int, int]
"""Who gave it, and of which class."""


def exchange(amounts: Amounts) -> bool:
    """Follow all augmenting paths, until the shares are level; tell whether there was any."""
    has_changed = False
    while _relieve_some(amounts):
        has_changed = True
    return has_changed


def _relieve_some(amounts: Amounts) -> bool:
    """Relieve who can be, the fullest first; tell whether there was anybody.

    Whom one has reached the next ones leave alone, so that all of it costs no more than one
    search. If nobody was relieved nobody can be: whoever is reached at all is reached by the
    fullest that can reach it.
    """
    has_changed = False
    search = _Search(amounts)
    takers = range(len(amounts.loads))
    for start in sorted(takers, key=lambda each: (-amounts.fullness(each), each)):
        if start not in search.steps:
            end = search.reach(start)
            if end is not None:
                _pass_on(amounts, search.steps, start, end)
                has_changed = True
    return has_changed


class _Search:
    """Finds whom augmenting paths reach; keeps for each of those the last step."""

    def __init__(self, amounts: Amounts) -> None:
        self._amounts = amounts
        self._passed: set[int] = set()
        self.steps: dict[int, Step] = {}

    def reach(self, start: int) -> int | None:
        """Return one whom that relieves this taker to reach, or None if there is nobody."""
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
    """Pass along the path as much as every giver has, and as does not turn the tables."""
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
