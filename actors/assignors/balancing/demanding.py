"""Work that weighs the same and may not run everywhere: level, with the fewest moves there can be.

First it is dealt and levelled transfer by transfer, as weighed work is. What that leaves
unlevel, or moved for nothing, is put right on the amounts alone. Then the work is dealt anew
by these amounts, each taker keeping of its own what they say. Where nobody had to give
anything all is well as it is.
"""

from collections.abc import Callable

from .allocation import Allocation
from .amounts import Amounts, count_amounts
from .augmenting_paths import exchange
from .changes import Changes
from .negative_cycles import save_moves
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
