"""Work that weighs the same and may not run everywhere: level, with the fewest moves there can be.

First it is dealt and levelled gift by gift, as weighed work is. What that leaves unlevel, or
moved for nothing, is put right on the amounts alone. Then the work is dealt anew by these
amounts, each taker keeping of its own what they say. Where nobody had to give anything all
is well as it is.
"""

from collections.abc import Callable

from .changes import Changes
from .cycles import save_moves
from .exchanges import exchange
from .hands import Hands
from .standing import Standing, amounts
from .weighing import weigh


def level_under_demands(deal_hands: Callable[[], Hands]) -> Changes:
    """Return what changes hands, given what returns the hands as they are at the start."""
    changes, standing, has_given = _dealt_gift_by_gift(deal_hands())
    is_levelled, is_cheaper = exchange(standing), save_moves(standing)
    if not has_given and not is_levelled and not is_cheaper:
        return changes
    del changes  # what was dealt in vain takes as much room as what is dealt now
    again = deal_hands()
    _follow(again, standing)
    return again.changes


def _dealt_gift_by_gift(hands: Hands) -> tuple[Changes, Standing, bool]:
    """Return what changes hands so, how all stands then, and whether anybody had to give."""
    had = [*amounts(hands, range(len(hands.loads)))]
    has_given = weigh(hands)
    has = [*had]
    touched = hands.changes.touched
    for index, some in zip(touched, amounts(hands, touched), strict=True):
        has[index] = some
    standing = Standing(hands.classes.seated, hands.roster.scales, had, has, [*hands.loads])
    return hands.changes, standing, has_given


def _follow(hands: Hands, wanted: Standing) -> None:
    """Let everybody have just the amounts that are wanted."""
    rooms: dict[int, dict[int, int]] = {}
    for index, (had, wants) in enumerate(zip(wanted.had, wanted.has, strict=True)):
        if had is wants:
            continue
        for number, amount in sorted(had.items()):
            for _ in range(amount - wants.get(number, 0)):
                hands.put_aside(index, (1, number))
        for number, amount in wants.items():
            if (more := amount - had.get(number, 0)) > 0:
                rooms.setdefault(number, {})[index] = more
    hands.deal_homeless(rooms)
