"""Work that weighs the same everywhere and may run anywhere: counting decides.

Only takers that have more than their quota, or less, are looked at: where one of ten thousand
workers comes or goes, the shares of the others are not even read.

Quotas are allotted as seats are in a parliament (the method of D'Hondt): a taker's next resource
costs what its load per capacity would be with it, and the cheapest are filled first. Then no taker
could give a resource to another and leave both less full than it was. Where several of the same
cost are left at the end, the takers that have them keep them: to give them to others would be one
more move each.
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
    """Return what changes hands for level shares, with the fewest moves there can be."""
    counts = stock.counts()
    transfers = Transfers()
    if not stock.free and _are_level(counts, workers):
        return transfers
    quota = find_quotas(counts, len(stock.free), workers.scales)
    if quota.keeps == counts and not stock.free:
        return transfers
    is_new = not any(counts) and not any(share for _, share in stock.kept)
    if is_new and len(set(workers.scales)) == 1:
        _deal_in_turns(len(counts), stock.free, transfers)
        return transfers
    spread = stock.count_spread(workers, stock.of)
    runs = by_connector(
        [*stock.free, *_give_up_surplus(stock, counts, quota.keeps, spread, transfers)]
    )
    dealer = Dealer(workers, [*quota.keeps], spread, quota.receivers)
    for connector, run in runs.items():
        for resource, index in zip(run, dealer.deal(connector, 1, len(run)), strict=True):
            transfers.get(index, resource)
    return transfers


def _are_level(counts: Sequence[int], workers: Workers) -> bool:
    """Tell whether all takers are of one capacity, and their counts within one of each other."""
    return len(set(workers.scales)) == 1 and max(counts) - min(counts) <= 1


def _deal_in_turns(takers: int, free: Sequence[Resource], transfers: Transfers) -> None:
    """Deal to takers of one capacity that have nothing yet, one after the other."""
    listed = [*chain.from_iterable(by_connector(free).values())]
    for index in range(min(takers, len(listed))):
        transfers.get_first(index, listed[index::takers])


def _give_up_surplus(
    stock: Stock, counts: Sequence[int], keeps: Sequence[int], spread: Spread, transfers: Transfers
) -> Iterator[Resource]:
    """Yield what takers above their quota give up: that by whose leaving the spread gains most."""
    for index, (count, keep) in enumerate(zip(counts, keeps, strict=True)):
        if keep == count:
            continue
        queue = GiveQueue([*stock.of(index)])
        for _ in range(count - keep):
            resource = queue.take(partial(spread.room, index))
            spread.move(resource.connector, index, -1)
            transfers.give_up(index, resource)
            yield resource


@dataclass(frozen=True, slots=True)
class Quotas:
    """How many each taker keeps, and which takers are to be given more."""

    keeps: Sequence[int]
    """By taker; never more than it has."""
    receivers: Sequence[int]
    """The takers that keep less than their share of all."""


def find_quotas(counts: Sequence[int], free: int, scales: Sequence[int]) -> Quotas:
    """Return the quotas of takers that have these counts, when `free` more are to be dealt."""
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
    # Receivers are filled up to the floor, or by one of the odd that are left.
    ends = {scale: floor + (odd > 0 and not last % scale) for scale, floor in floors.items()}
    receivers = [
        index
        for index, (keep, scale) in enumerate(zip(keeps, scales, strict=True))
        if keep < ends[scale]
    ]
    return Quotas(keeps, receivers)


def _cost_of_the_last(total: int, groups: Counter[int]) -> int:
    """Return the least cost up to which there is room for `total`; `groups` counts the scales."""
    low, high = 1, max(1, total * max(groups))
    while low < high:
        middle = (low + high) // 2
        if sum(middle // scale * size for scale, size in groups.items()) < total:
            low = middle + 1
        else:
            high = middle
    return low
