"""The default assignor: level shares, few moves, and lost work parked for the worker that lost it.

Connectors and tasks are levelled separately. The goals, in the order of their priority:

1. demands of work and orders of operators are always met. A worker that is cordoned, or away for a
while, keeps what it has and may run, and gets nothing more; one that is drained gives up all; work
whose demand no taker meets is unplaceable; 2. balance, of weights against capacities: no worker
could give a resource to another and leave both less full than it was. With weights a worker gives
only while it is ahead of another by more than the heaviest that it could give; 3. few moves: the
fewest possible if all work weighs the same; 4. the tasks of a connector are spread over the zones,
and then 5. over the workers. The spread never moves running work by itself: it decides which task
leaves a worker that has to give one, and to which of equal workers free work goes; 6. the names: of
workers, not of members, whose ids are random.

Lost work waits, parked, until its deadline or until the worker that lost it returns, and all
other work is levelled meanwhile. A loss removes a member with its whole share, so the remaining
shares are as level as before. New resources are dealt at once, and a new member gets its share of
what runs, but none of what is parked.

Nothing is remembered between two assignments: the same snapshot, in whatever order, leads to the
same assignment, and an assignment does not change when it is computed again. See KIP-415, and
PROTOCOL sections 5 and 7.

Where work weighs unequally, or may not run everywhere, shares are levelled by an exchange; see
`balancing.exchange`. In most groups counting is enough, and only takers that have more or less than
their quota are looked at: when one of ten thousand workers joins or leaves, the shares of the
others are not even read. Quotas are allotted like seats in a parliament (the method of D'Hondt): a
taker's next resource costs what its load per capacity would be with it, and the cheapest are filled
first. Then no taker could give a resource to another and leave both less full than it was. If
several resources of the same cost are left at the end, the takers that have them keep them: to give
them to others would be one more move each.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ....events.model import CONNECTOR, Resource, Resources
from ...messages.computing import Assignment, Snapshot
from ..balancing.allocation import Allocation
from ..balancing.dealer import Dealer
from ..balancing.exchange import level_by_transfers, level_under_demands
from ..balancing.holdings import Holdings, Transfers, split_holdings
from ..balancing.spread import RemovalQueue, Spread, by_connector
from ..balancing.workers import Classes, Workers, classes_of, workers_of
from ..eligibility import find_holdings
from ..placing import OpenWork, place

NAME = "balanced"


def assign(snapshot: Snapshot) -> Assignment:
    """Return the assignment of all configured resources; see `place`."""
    return place(snapshot, _share_out)


def _share_out(work: OpenWork) -> tuple[Mapping[str, Resources], Mapping[Resource, str]]:
    """Return each taker's share, and the resources that no taker may run, with the reason."""
    snapshot, resources = work.snapshot, work.resources
    workers = workers_of(work.members.takers)
    classes = classes_of(snapshot, workers, resources)
    if classes.unplaceable:
        resources = resources.difference(classes.unplaceable)
    shares, free = find_holdings(work.members, work.back, resources)
    held = [shares[taker.member_id] for taker in workers.takers]
    connectors = resources & _connectors(snapshot)
    kept = [(snapshot.members[member], share) for member, share in work.staying.items()]
    made = [
        _balance(workers, holdings, classes, snapshot.weights)
        for holdings in split_holdings(held, free, connectors, kept)
    ]
    for transfers in made:
        transfers.apply_to(held)
    shares.update(zip((taker.member_id for taker in workers.takers), held, strict=True))
    return shares, classes.unplaceable


def _connectors(snapshot: Snapshot) -> Resources:
    """Return the configured connectors; cheap if the snapshot has them ready."""
    if snapshot.connectors is not None:
        return snapshot.connectors
    return frozenset([each for each in snapshot.configured if each[1] == CONNECTOR])


def _balance(
    workers: Workers, holdings: Holdings, classes: Classes, weights: Mapping[Resource, int]
) -> Transfers:
    """Return the transfers of one kind of work; in most groups counting is enough."""
    if weights and _are_unequal(weights.get(each, 1) for each in holdings.all()):
        allocation = Allocation(workers, holdings, classes, weights)
        level_by_transfers(allocation)
        return allocation.transfers
    if classes.are_many and any(map(classes.of, holdings.all())):
        return level_under_demands(lambda: Allocation(workers, holdings, classes, {}))
    return _level(workers, holdings)


def _are_unequal(weights: Iterator[int]) -> bool:
    first = next(weights, 1)
    return any(weight != first for weight in weights)


def _level(workers: Workers, holdings: Holdings) -> Transfers:
    """Return the transfers to level shares by counting, with the fewest moves possible."""
    counts = holdings.counts()
    transfers = Transfers()
    if not holdings.free and _are_level(counts, workers):
        return transfers
    quota = _find_quotas(counts, len(holdings.free), workers.scales)
    if quota.keeps == counts and not holdings.free:
        return transfers
    is_new = not any(counts) and not any(share for _, share in holdings.kept)
    if is_new and len(set(workers.scales)) == 1:
        _deal_in_turns(len(counts), holdings.free, transfers)
        return transfers
    spread = holdings.count_spread(workers, holdings.of)
    runs = by_connector(
        [*holdings.free, *_give_up_surplus(holdings, counts, quota.keeps, spread, transfers)]
    )
    dealer = Dealer(workers, [*quota.keeps], spread, quota.receivers)
    for connector, run in runs.items():
        for resource, index in zip(run, dealer.deal(connector, 1, len(run)), strict=True):
            transfers.get(index, resource)
    return transfers


def _are_level(counts: Sequence[int], workers: Workers) -> bool:
    """Return whether all takers have one capacity, and counts that differ by at most one."""
    return len(set(workers.scales)) == 1 and max(counts) - min(counts) <= 1


def _deal_in_turns(takers: int, free: Sequence[Resource], transfers: Transfers) -> None:
    """Deal in turns to takers of one capacity that have nothing yet."""
    listed = [*chain.from_iterable(by_connector(free).values())]
    for index in range(min(takers, len(listed))):
        transfers.get_first(index, listed[index::takers])


def _give_up_surplus(
    holdings: Holdings,
    counts: Sequence[int],
    keeps: Sequence[int],
    spread: Spread,
    transfers: Transfers,
) -> Iterator[Resource]:
    """Yield the resources above each taker's quota: those that improve the spread most first."""
    for index, (count, keep) in enumerate(zip(counts, keeps, strict=True)):
        if keep == count:
            continue
        queue = RemovalQueue([*holdings.of(index)])
        for _ in range(count - keep):
            resource = queue.take(partial(spread.room, index))
            spread.move(resource.connector, index, -1)
            transfers.give_up(index, resource)
            yield resource


@dataclass(frozen=True, slots=True)
class _Quotas:
    """How many resources each taker keeps, and which takers get more."""

    keeps: Sequence[int]
    """By taker; never more than it has."""
    receivers: Sequence[int]
    """The takers that keep less than their quota."""


def _find_quotas(counts: Sequence[int], free: int, scales: Sequence[int]) -> _Quotas:
    """Return the quotas of takers with these counts, if `free` more resources are dealt."""
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
    return _Quotas(keeps, receivers)


def _cost_of_the_last(total: int, groups: Counter[int]) -> int:
    """Return the least cost at which `total` fits; `groups` counts the takers of each scale."""
    low, high = 1, max(1, total * max(groups))
    while low < high:
        middle = (low + high) // 2
        if sum(middle // scale * size for scale, size in groups.items()) < total:
            low = middle + 1
        else:
            high = middle
    return low
