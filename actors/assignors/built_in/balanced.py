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
levelled: `balancing.levelling` where all weighs the same and may run anywhere, `balancing.weighing`
with weights, `balancing.exchange` (with the theory) with demands. See KIP-415, and PROTOCOL
sections 5 and 7.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ....events.model import CONNECTOR, NOTHING, Resource, Resources
from ...messages.computing import Assignment, Snapshot
from ..balancing.allocation import Allocation
from ..balancing.exchange import level_under_demands
from ..balancing.levelling import level
from ..balancing.stock import Stock, Transfers, split_stock
from ..balancing.weighing import weigh
from ..balancing.workers import Classes, Workers, classes_of, workers_of
from ..demands import NO_DEMAND, nobody_meets, permitted_part
from ..eligibility import Claim, Eligible, eligible, find_holdings, keep_shares
from ..losses import sort_losses
from ..placing import place_nowhere

NAME = "balanced"


def assign(snapshot: Snapshot) -> Assignment:
    """Return where everything configured is to go: to a member, parked, or unplaceable.

    Every member of the snapshot has an entry; deadlines are wall clock, in milliseconds. Where no
    member takes work, what no member keeps is unplaceable.
    """
    if not snapshot.members:
        return place_nowhere(snapshot)
    members = eligible(snapshot.members)
    parked, back = sort_losses(snapshot, members)
    placeable = snapshot.configured.difference(parked) if parked else snapshot.configured
    staying = keep_shares(members, placeable, partial(permitted_part, snapshot))
    rest = placeable.difference(*staying.values()) if staying else placeable
    shares, unplaceable = _share_out(snapshot, members, back, rest, staying)
    return Assignment(
        {member: shares.get(member, NOTHING) for member in sorted(snapshot.members)},
        parked,
        unplaceable,
    )


def _share_out(
    snapshot: Snapshot,
    members: Eligible,
    back: Sequence[Claim],
    rest: Resources,
    staying: Mapping[str, Resources],
) -> tuple[Mapping[str, Resources], Mapping[Resource, str]]:
    """Return each member's share once the rest is shared out, and what no member can take."""
    if not members.takers:
        return staying, dict.fromkeys(sorted(rest), nobody_meets(NO_DEMAND, ()))
    workers = workers_of(members.takers)
    classes = classes_of(snapshot, workers, rest)
    if classes.unplaceable:
        rest = rest.difference(classes.unplaceable)
    having, free = find_holdings(members, back, rest)
    held = [having[taker.member_id] for taker in workers.takers]
    connectors = rest & _connectors(snapshot)
    kept_here = [(snapshot.members[member], share) for member, share in staying.items()]
    made = [
        _balance(workers, stock, classes, snapshot.weights)
        for stock in split_stock(held, free, connectors, kept_here)
    ]
    for transfers in made:
        transfers.apply_to(held)
    having.update(zip((taker.member_id for taker in workers.takers), held, strict=True))
    return {**staying, **having}, classes.unplaceable


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
        weigh(allocation)
        return allocation.transfers
    if classes.are_many and any(map(classes.of, stock.all())):
        return level_under_demands(lambda: Allocation(workers, stock, classes, {}))
    return level(workers, stock)


def _are_unequal(weights: Iterator[int]) -> bool:
    first = next(weights, 1)
    return any(weight != first for weight in weights)
