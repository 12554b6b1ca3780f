"""Work that weighs unequally, or that may not run everywhere: it is put in order bit by bit.

What nobody has is dealt first, the heaviest first, each to the worker that it makes least
full. Then whoever is ahead of another by more than the heaviest that it could give gives: the
heaviest that does not turn the tables, or else the lightest. Such a gift leaves both less full
than the giver was, so there is an end to it; and one giant among the work does not make
hundreds move. That this moves the least is not promised: to find that out is bin packing.
"""

from operator import mul

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
            while (sort := _gift(hands, index, emptiest)) is not None:
                hands.deal(hands.give_up(index, sort), sort)
                has_given, is_at_rest = True, False
    return has_given


def _gift(hands: Hands, index: int, emptiest: int) -> Sort | None:
    """Return what a taker is to give next, or None if it is ahead of nobody far enough.

    Of several classes it gives of that by which it makes another least full. `emptiest` is how
    full the least full was a while ago: most takers need not look any further.
    """
    scale = hands.roster.scales[index]
    fullness = hands.loads[index] * scale
    heaviest = hands.heaviest(index)
    if not heaviest or emptiest + min(heaviest)[0] >= fullness:
        return None
    least, number = min((hands.least(sort), sort[1]) for sort in heaviest)
    if least >= fullness:
        return None
    sorts = sorted((sort for sort in hands.amounts(index) if sort[1] == number), reverse=True)
    fitting = (sort for sort in sorts if hands.least(sort) <= fullness - sort[0] * scale)
    return next(fitting, sorts[-1])
