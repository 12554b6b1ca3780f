"""Work that all weighs 1 and may not run everywhere: level as can be, with the fewest moves.

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
from .standing import Amounts, Standing, amounts
from .weighing import weigh


def level_under_demands(deal_hands: Callable[[], Hands]) -> Changes:
    """Return what changes hands, given what returns the hands as they are at the start."""
    hands = deal_hands()
    had = amounts(hands)
    has_given = weigh(hands)
    standing = Standing(
        hands.classes.seated, hands.roster.scales, had, amounts(hands), [*hands.loads]
    )
    is_levelled, is_cheaper = exchange(standing), save_moves(standing)
    if not has_given and not is_levelled and not is_cheaper:
        return hands.changes
    again = deal_hands()
    _follow(again, standing.has)
    return again.changes


def _follow(hands: Hands, wanted: Amounts) -> None:
    """Let everybody have just the amounts that are wanted."""
    rooms: dict[int, dict[int, int]] = {}
    for index, (has, wants) in enumerate(zip(hands.amounts, wanted, strict=True)):
        for sort, amount in sorted(has.items()):
            for _ in range(amount - wants.get(sort[1], 0)):
                hands.put_aside(index, sort)
        for number, amount in wants.items():
            if (more := amount - has.get((1, number), 0)) > 0:
                rooms.setdefault(number, {})[index] = more
    hands.deal_homeless(rooms)
