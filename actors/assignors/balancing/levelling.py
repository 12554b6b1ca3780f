"""Work that weighs the same everywhere and may run anywhere: counting decides.

Only who has more than its quota, or less, is looked at: where one of ten thousand workers
comes or goes, the shares of the others are not even read.

Quotas are shared out as seats are in a parliament (the method of D'Hondt): a worker's next
resource costs what its load per capacity would be with it, and the cheapest are filled first.
Then nobody could give one resource to another and leave both better. Where several of the
same cost are left at the end, those who hold them already keep them: anybody else's turn
would be one more move.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ....events.model import Resource
from .dealer import Dealer
from .spread import GiveQueue, Spread, by_connector
from .stock import Stock, Transfers
from .workers import Workers


def level(workers: Workers, stock: Stock) -> Transfers:
    """Return what changes hands, for level shares with the fewest moves there can be."""
    counts = stock.counts()
    changes = Transfers()
    if not stock.free and _are_level(counts, workers):
        return changes
    quota = find_quotas(counts, len(stock.free), workers.scales)
    if quota.keeps == counts and not stock.free:
        return changes
    is_new = not any(counts) and not any(share for _, share in stock.kept)
    if is_new and len(set(workers.scales)) == 1:
        _deal_in_turns(len(counts), stock.free, changes)
        return changes
    spread = stock.spread(workers, stock.of)
    runs = by_connector([*stock.free, *_left(stock, counts, quota.keeps, spread, changes)])
    dealer = Dealer(workers, [*quota.keeps], spread, quota.receivers)
    for connector, run in runs.items():
        for resource, index in zip(run, dealer.deal(connector, 1, len(run)), strict=True):
            changes.get(index, resource)
    return changes


def _are_level(counts: Sequence[int], workers: Workers) -> bool:
    """Tell whether takers who are all alike have as much as each other, give or take one."""
    return len(set(workers.scales)) == 1 and max(counts) - min(counts) <= 1


def _deal_in_turns(takers: int, free: Sequence[Resource], changes: Transfers) -> None:
    """Deal to takers who have nothing yet, and are all alike, one after the other."""
    listed = [*chain.from_iterable(by_connector(free).values())]
    for index in range(min(takers, len(listed))):
        changes.get_first(index, listed[index::takers])


def _left(
    stock: Stock, counts: Sequence[int], keeps: Sequence[int], spread: Spread, changes: Transfers
) -> Iterator[Resource]:
    """Yield what those give up who have more than they keep: what the spread gains most by."""
    for index, (count, keep) in enumerate(zip(counts, keeps, strict=True)):
        if keep == count:
            continue
        queue = GiveQueue([*stock.of(index)])
        for _ in range(count - keep):
            resource = queue.take(partial(spread.room, index))
            spread.move(resource.connector, index, -1)
            changes.give_up(index, resource)
            yield resource


@dataclass(frozen=True, slots=True)
class Quotas:
    """How much each taker keeps, and who is to be given more."""

    keeps: Sequence[int]
    receivers: Sequence[int]


def find_quotas(counts: Sequence[int], free: int, scales: Sequence[int]) -> Quotas:
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
