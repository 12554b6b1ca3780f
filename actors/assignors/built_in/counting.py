"""Assignors that level counts alone: deferred, simple-cooperative, uniform, range and eager.

Weights, capacities and zones that are no demand do not count here. Operators' orders do: what a
cordoned worker has stays there, and what demands anything of its worker stays with the one that has
it, if that one meets it, or goes to one that does. The rest is dealt as follows.

With the first three a member keeps what it has (its target, then what it owns) up to its share; the
head of its list stays and the tail moves. Free work goes to a least loaded member, and among those
to one that has the fewest tasks of the same connector.

* `deferred` levels connectors and tasks apart: of each kind, the members that can take work hold
  within one of each other. Lost work waits, parked, until its deadline or until the worker that
  lost it returns, and the shares are computed over all other work. A loss takes a member away
  with its whole share, so those that remain are as level as they were and no running work moves
  for it. New resources are dealt at once, and a newcomer gets its share of what runs, but none of
  what is parked. This is Design II of "Incremental Cooperative Rebalancing: Support and Policies".
* `simple-cooperative` is as level and moves as little, and nothing waits (Design I there). Lost
  work goes to others with the next target, and so does what another assignor parked. A worker that
  returns is a newcomer like any: it gets a level share, not what it had. That costs two moves for
  every bounce, and no work stands still for longer than it takes to notice the loss.
* `uniform` is as deferred, but connectors and tasks count alike: of everything together, members
  hold within one of each other. The group itself can compute it.

The other two go by the order of the workers' names, wherever work has been.

* `range` gives each member a stretch of the list of all connectors and tasks. The list is in the
  order of names, each connector before its tasks, and the stretches in the order of the workers'
  names, none longer than another by more than one. So the tasks of a connector run on as few
  workers as can be. Lost work waits, parked, as with `deferred`; since it was one stretch of the
  list, the other stretches stay where they are meanwhile. The group itself can compute it.
* `eager` deals everything anew with every target, to one worker after the other. One cursor goes
  round the workers in the order of their names: first all connectors, then all tasks, as the
  classic one of Connect does it (KIP-415, version 0). So most of what runs moves whenever a worker
  comes or goes, and nothing is parked. Only the order of the workers is another: by their names
  and not by their member ids, which are new with every start of a worker.

Nothing is remembered between two assignments: all that counts is in the snapshot, and the same
snapshot, in whatever order, leads to the same assignment. See KIP-415, and PROTOCOL sections 5
and 7.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ....events.model import Resource, Resources
from ...messages.computing import Assignment, Snapshot
from ..classic.loads import deal_eagerly
from ..eligibility import Shares
from ..placing import demands_first, drop_losses, place

DEFERRED = "deferred"
SIMPLE = "simple-cooperative"
UNIFORM = "uniform"
RANGE = "range"
EAGER = "eager"


def assign_deferred(snapshot: Snapshot) -> Assignment:
    """Compute `deferred`: lost work is parked, the rest is levelled by count; see `place`."""
    return place(snapshot, demands_first(_deal_by_kind))


def assign_at_once(snapshot: Snapshot) -> Assignment:
    """Compute `simple-cooperative`: as `deferred`, with nothing parked."""
    return place(drop_losses(snapshot), demands_first(_deal_by_kind))


def assign_uniformly(snapshot: Snapshot) -> Assignment:
    """Compute `uniform`: as `deferred`, with connectors and tasks levelled together."""
    return place(snapshot, demands_first(_deal_together))


def assign_ranges(snapshot: Snapshot) -> Assignment:
    """Compute `range`: each worker gets a contiguous range of resources; see `place`."""

    def deal(free: Resources, claims: Shares, _: object) -> Shares:
        return _cut(sorted(free), _by_name(snapshot, claims))

    return place(snapshot, demands_first(deal))


def assign_eagerly(snapshot: Snapshot) -> Assignment:
    """Compute `eager`: everything is dealt anew in turns, and nothing is parked."""

    def deal(free: Resources, claims: Shares, _: object) -> Shares:
        dealt = deal_eagerly(free, claims)
        turns = (set(dealt[turn]) for turn in sorted(dealt))
        return dict(zip(_by_name(snapshot, claims), turns, strict=True))

    return place(drop_losses(snapshot), demands_first(deal))


def _deal_by_kind(free: Resources, claims: Shares, demanded: Mapping[str, Resources]) -> Shares:
    """Return each taker's level share of the free resources, connectors apart from tasks."""
    shares: Shares = {member: set() for member in claims}
    connectors = frozenset(resource for resource in free if not resource.is_task)
    for kind, is_task in ((connectors, False), (free - connectors, True)):
        fixed = {
            member: sum(resource.is_task is is_task for resource in share)
            for member, share in demanded.items()
        }
        for member, share in level(kind, claims, fixed).items():
            shares[member] |= share
    return shares


def _deal_together(free: Resources, claims: Shares, demanded: Mapping[str, Resources]) -> Shares:
    """Return each taker's level share of the free resources, connectors and tasks together."""
    return level(free, claims, {member: len(share) for member, share in demanded.items()})


def level(resources: Resources, claims: Shares, fixed: Mapping[str, int]) -> Shares:
    """Return each member's share of the resources, as level as can be.

    `claims` is what each has of it; `fixed` how much each has beside it that does not move.
    """
    mine = {member: claim & resources for member, claim in claims.items()}
    kept = _keep(len(resources), mine, fixed)
    _deal(sorted(resources.difference(*kept.values())), kept, fixed)
    return kept


def _keep(total: int, claims: Shares, fixed: Mapping[str, int]) -> Shares:
    """Return the part of its claim that each member keeps when `total` resources are levelled.

    The member that has most, what is fixed included, keeps the odd one: any other choice moves as
    much, or more.
    """
    quota, odd = _water_level(total, [fixed.get(member, 0) for member in claims])
    sizes = {member: len(claim) + fixed.get(member, 0) for member, claim in claims.items()}
    fullest_first = sorted(claims, key=lambda member: (-sizes[member], member))
    kept: Shares = {}
    for member in fullest_first:
        room = quota - fixed.get(member, 0)
        claim = claims[member]
        if room >= 0 and odd > 0:
            room, odd = room + 1, odd - 1
        kept[member] = claim if len(claim) <= room else set(sorted(claim)[: max(room, 0)])
    return kept


def _water_level(total: int, fixed: Sequence[int]) -> tuple[int, int]:
    """Return the level up to which `total` fills the `fixed` counts, and the remainder.

    Those go one each to members that are not above that level.
    """
    floors = sorted(fixed)
    below = 0
    for count, floor in enumerate(floors, start=1):
        below += floor
        quota, odd = divmod(total + below, count)
        if count == len(floors) or quota < floors[count]:
            return quota, odd
    return 0, total


def _deal(free: Sequence[Resource], shares: Shares, fixed: Mapping[str, int]) -> None:
    """Give each free resource, in order, to a least loaded member.

    Of several it goes to the one with the fewest tasks of the same connector, then the lowest id.
    `free` is sorted, so that each connector's tasks come in one run: for that run its holders
    wait in a heap of their own, into which they move only when their turn would come.
    """
    if not free:
        return
    counts = _count_tasks({resource.connector for resource in free}, shares)
    others = [(len(share) + fixed.get(member, 0), member) for member, share in shares.items()]
    heapq.heapify(others)
    holders: list[tuple[int, int, str]] = []
    connector = ""
    for resource in free:
        if resource.connector != connector:
            connector = resource.connector
            for load, _, member in holders:
                heapq.heappush(others, (load, member))
            holders = []
        count = counts[connector]
        while others and others[0][1] in count:
            load, member = heapq.heappop(others)
            heapq.heappush(holders, (load, count[member], member))
        if holders and not (others and (others[0][0], 0) < holders[0][:2]):
            load, _, member = heapq.heappop(holders)
        else:
            load, member = heapq.heappop(others)
        shares[member].add(resource)
        count[member] += 1
        heapq.heappush(holders, (load + 1, count[member], member))


def _count_tasks(connectors: set[str], shares: Shares) -> defaultdict[str, Counter[str]]:
    """Return how many tasks of each of these connectors each member has."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for member, share in shares.items():
        for resource in share:
            if resource.connector in connectors:
                counts[resource.connector][member] += 1
    return counts


def _by_name(snapshot: Snapshot, member_ids: Iterable[str]) -> list[str]:
    """Return member ids in the order of their workers' names."""
    return sorted(member_ids, key=lambda each: (snapshot.members[each].worker, each))


def _cut(listed: list[Resource], order: list[str]) -> Shares:
    """Cut the list into as many stretches as there are members; the first are the longer."""
    length, odd = divmod(len(listed), len(order))
    shares: Shares = {}
    start = 0
    for place_in_order, member in enumerate(order):
        end = start + length + (place_in_order < odd)
        shares[member] = set(listed[start:end])
        start = end
    return shares
