"""How much each taker keeps of what it has, when all work weighs the same.

Work is shared out as seats are in a parliament (the method of D'Hondt): a worker's next
resource costs what its load per capacity would be with it, and the cheapest are filled first.
Then nobody could give one resource to another and leave both better. Where several of the
same cost are left at the end, those who hold them already keep them: anybody else's turn
would be one more move.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quotas:
    """How much each taker keeps, and who is to be given more."""

    keeps: Sequence[int]
    receivers: Sequence[int]


def quotas(counts: Sequence[int], free: int, scales: Sequence[int]) -> Quotas:
    """Return the quotas of takers that have so much, when so much more is to be given out."""
    total = sum(counts) + free
    groups = Counter(scales)
    last = _cost_of_the_last(total, groups)
    floors = {scale: (last - 1) // scale for scale in groups}
    odd = total - sum(floors[scale] * size for scale, size in groups.items())
    keeps = [*counts]
    for index, (count, scale) in enumerate(zip(counts, scales, strict=True)):
        floor = floors[scale]
        if count > floor:
            keeps_odd = odd > 0 and not last % scale
            odd -= keeps_odd
            keeps[index] = floor + keeps_odd
    # Who is to be filled up: to the floor, or by one of the odd that are left.
    ends = {scale: floor + (odd > 0 and not last % scale) for scale, floor in floors.items()}
    receivers = [
        index
        for index, (keep, scale) in enumerate(zip(keeps, scales, strict=True))
        if keep < ends[scale]
    ]
    return Quotas(keeps, receivers)


def _cost_of_the_last(total: int, groups: Counter[int]) -> int:
    """Return the cost up to which so many resources are to be filled, at the least."""
    low, high = 1, max(1, total * max(groups))
    while low < high:
        middle = (low + high) // 2
        if sum(middle // scale * size for scale, size in groups.items()) < total:
            low = middle + 1
        else:
            high = middle
    return low
