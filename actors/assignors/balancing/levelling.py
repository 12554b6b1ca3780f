"""Work that weighs the same everywhere and may run anywhere: counting decides.

Only who has more than its quota, or less, is looked at: where one of ten thousand workers
comes or goes, the shares of the others are not even read.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from ....events.model import Resource
from .changes import Changes
from .dealer import Dealer
from .give_queue import GiveQueue, by_connector
from .quotas import quotas
from .spread import Spread
from .stock import Stock
from .workers import Workers


def level(workers: Workers, stock: Stock) -> Changes:
    """Return what changes hands, for level shares with the fewest moves there can be."""
    counts = stock.counts()
    changes = Changes()
    if not stock.free and _are_level(counts, workers):
        return changes
    quota = quotas(counts, len(stock.free), workers.scales)
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


def _deal_in_turns(takers: int, free: Sequence[Resource], changes: Changes) -> None:
    """Deal to takers who have nothing yet, and are all alike, one after the other."""
    listed = [*chain.from_iterable(by_connector(free).values())]
    for index in range(min(takers, len(listed))):
        changes.get_first(index, listed[index::takers])


def _left(
    stock: Stock, counts: Sequence[int], keeps: Sequence[int], spread: Spread, changes: Changes
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
