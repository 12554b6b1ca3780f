"""The default assignor: level shares, the fewest moves, lost work kept for the worker that lost it.

Connectors and tasks are levelled apart. What counts, the first before the second, and so on:

1. what work demands of its worker, and what operators want, is never broken. A worker that is
   cordoned, or away for a while, keeps what it has and may have, and gets nothing more; one that is
   drained gives up all; work whose demand no taker meets is unplaceable;
2. balance, of weights against capacities: no worker could give a resource to another and leave
   both less full than it was. With weights a worker gives only while it is ahead of another by more
   than the heaviest that it could give;
3. few moves: the fewest that there can be, where all weighs the same;
4. the tasks of a connector are spread over the zones, and then
5. over the workers. The spread never moves running work by itself: it decides which task leaves a
   worker that has to give one, and to which of equal workers free work goes;
6. the names: of workers, not of members, whose ids are random.

Lost work waits, parked, until its deadline or until the worker that lost it returns, and all
other work is levelled meanwhile. A loss takes a member away with its whole share, so those
that remain are as level as they were. New resources are dealt at once, and a newcomer gets
its share of what runs, but none of what is parked.

Nothing is remembered between two assignments: the same snapshot, in whatever order, leads to the
same assignment, and an assignment is left as it is when it is assigned again. How shares are
levelled: `balancing.levelling` where all weighs the same and may run anywhere, and else
`balancing.exchange`, with the theory. See KIP-415, and PROTOCOL sections 5 and 7.
"""

from collections.abc import Iterator, Mapping

from ....events.model import CONNECTOR, Resource, Resources
from ...messages.computing import Assignment, Snapshot
from ..balancing.allocation import Allocation
from ..balancing.exchange import level_by_transfers, level_under_demands
from ..balancing.levelling import level
from ..balancing.stock import Stock, Transfers, split_stock
from ..balancing.workers import Classes, Workers, classes_of, workers_of
from ..eligibility import find_holdings
from ..placing import OpenWork, place

NAME = "balanced"


def assign(snapshot: Snapshot) -> Assignment:
    """Return where everything configured is to go; see `place`."""
    return place(snapshot, _share_out)


def _share_out(work: OpenWork) -> tuple[Mapping[str, Resources], Mapping[Resource, str]]:
    """Return each taker's share, and what no taker may run, with the reason."""
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
        _balance(workers, stock, classes, snapshot.weights)
        for stock in split_stock(held, free, connectors, kept)
    ]
    for transfers in made:
        transfers.apply_to(held)
    shares.update(zip((taker.member_id for taker in workers.takers), held, strict=True))
    return shares, classes.unplaceable


def _connectors(snapshot: Snapshot) -> Resources:
    """Return the connectors; a search for them takes half as long as all the rest."""
    if snapshot.connectors is not None:
        return snapshot.connectors
    return frozenset([each for each in snapshot.configured if each[1] == CONNECTOR])


def _balance(
    workers: Workers, stock: Stock, classes: Classes, weights: Mapping[Resource, int]
) -> Transfers:
    """Return what changes hands of one kind; in most groups counting decides."""
    if weights and _are_unequal(weights.get(each, 1) for each in stock.all()):
        allocation = Allocation(workers, stock, classes, weights)
        level_by_transfers(allocation)
        return allocation.transfers
    if classes.are_many and any(map(classes.of, stock.all())):
        return level_under_demands(lambda: Allocation(workers, stock, classes, {}))
    return level(workers, stock)


def _are_unequal(weights: Iterator[int]) -> bool:
    first = next(weights, 1)
    return any(weight != first for weight in weights)
