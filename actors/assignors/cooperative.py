"""The built-in assignor: level shares, the fewest moves, lost work kept for who lost it.

Connectors and tasks are levelled apart: of each kind, the members that can take work hold
within one of each other. What a member has (its target, then what it owns) it keeps up to its
share; the head of its list stays and the tail moves.

Lost work waits, parked, until its deadline or until the worker that lost it returns, and the
shares are computed over all other work. A loss takes a member away with its whole share, so
those that remain are as level as they were and no running work moves for it. New resources
are dealt at once, and a newcomer gets its share of what runs, but none of what is parked.

Nothing is remembered between two assignments: all that counts is in the snapshot, and the
same snapshot, in whatever order, leads to the same assignment. See KIP-415, and PROTOCOL
sections 5 and 7.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from ...events.model import Resource, Resources
from ..messages import Assignment, LossView, MemberView, Snapshot
from .capacity import is_warm

NAME = "cooperative"
MINIMUM_VERSION = 0
MAXIMUM_VERSION = 0
VERSION = 0

Shares = dict[str, set[Resource]]
"""What each member that can take work has, by member id."""

Claim = tuple[str, Resources]
"""A member, and resources that it has a reason to be given."""


def assign(snapshot: Snapshot) -> Assignment:
    """Return where everything configured is to go: to a member, parked, or unplaceable.

    Every member of the snapshot has an entry; deadlines are wall clock, in milliseconds.
    Without members all is unplaceable, with them nothing is.
    """
    if not snapshot.members:
        nowhere = dict.fromkeys(sorted(snapshot.configured), "no members")
        return Assignment(members={}, unplaceable=nowhere, version=VERSION)
    heirs = _heirs(snapshot.members.values())
    takers = _takers(snapshot.members, heirs)
    waiting = _waiting(snapshot)
    returned = _returned(snapshot.losses, takers, frozenset(waiting))
    back = frozenset[Resource]().union(*(resources for _, resources in returned))
    parked = {resource: at for resource, at in waiting.items() if resource not in back}
    placeable = snapshot.configured.difference(parked)
    left = [(heirs[ghost], snapshot.members[ghost]) for ghost in sorted(heirs)]
    shares = _shares(placeable, _claims(takers, left, returned))
    return Assignment(
        members={member: frozenset(shares.get(member, ())) for member in sorted(snapshot.members)},
        parked=parked,
        version=VERSION,
    )


def _heirs(members: Iterable[MemberView]) -> Mapping[str, str]:
    """Return the members whose worker runs anew already, each with the one that it is now.

    A worker that died is a member until its session ends. If its successor, of the same url,
    can take work by then, it is to have just what the old one has, and nobody else must move.
    """
    in_order = sorted(members, key=lambda member: (member.joined_epoch, member.member_id))
    newest = {member.url: member for member in in_order if member.url}
    return {
        member.member_id: newest[member.url].member_id
        for member in in_order
        if member.url and newest[member.url] is not member and is_warm(newest[member.url].metadata)
    }


def _takers(members: Mapping[str, MemberView], heirs: Mapping[str, str]) -> Sequence[MemberView]:
    """Return the members that can take work, by id: the warm ones, or all if none is."""
    everyone = [members[member] for member in sorted(members.keys() - heirs.keys())]
    return [member for member in everyone if is_warm(member.metadata)] or everyone


def _waiting(snapshot: Snapshot) -> dict[Resource, int]:
    """Return the lost work that may wait, each with its deadline.

    Work that is parked already keeps its deadline; of several losses the latest counts. What
    has fired, or is in the target or the hands of anyone present, waits no longer.
    """
    deadlines: dict[Resource, int] = {}
    for loss in sorted(snapshot.losses, key=lambda loss: loss.deadline_ms):
        deadlines.update(dict.fromkeys(loss.resources, loss.deadline_ms))
    deadlines.update(snapshot.parked)
    if not deadlines:
        return {}
    present = snapshot.members.values()
    absent = (snapshot.configured.intersection(deadlines) - snapshot.fired).difference(
        *(member.target for member in present), *(member.owned for member in present)
    )
    pending = (resource for resource in absent if deadlines[resource] > snapshot.now_ms)
    return {resource: deadlines[resource] for resource in sorted(pending)}


def _returned(
    losses: Iterable[LossView], takers: Sequence[MemberView], waiting: Resources
) -> Sequence[Claim]:
    """Return whose waiting work came back with whom, the latest loss first.

    A worker that returned but is not warm yet is no taker: its work goes on waiting for it.
    """
    # Backwards, so that the lowest member id is the one that stays.
    by_instance = {taker.instance_id: taker.member_id for taker in reversed(takers)}
    by_url = {taker.url: taker.member_id for taker in reversed(takers)}
    ids = {taker.member_id for taker in takers}
    claims: list[Claim] = []
    for loss in sorted(losses, key=_latest_first):
        if loss.instance_id is not None and loss.instance_id in by_instance:
            claims.append((by_instance[loss.instance_id], loss.resources & waiting))
        elif loss.member_id in ids:
            claims.append((loss.member_id, loss.resources & waiting))
        elif loss.url and loss.url in by_url:
            claims.append((by_url[loss.url], loss.resources & waiting))
    return claims


def _latest_first(loss: LossView) -> tuple[int, str, str, str]:
    return -loss.deadline_ms, loss.member_id, loss.instance_id or "", loss.url


def _claims(
    takers: Sequence[MemberView],
    left: Iterable[tuple[str, MemberView]],
    returned: Iterable[Claim],
) -> Shares:
    """Return what each taker has, nothing twice: its target, what it owns, what came back.

    An heir has what the member that it follows was left with. Where two claim a resource the
    target wins, for that is where it is going already.
    """
    shares: Shares = {taker.member_id: set() for taker in takers}
    taken: set[Resource] = set()
    targets = ((taker.member_id, taker.target) for taker in takers)
    owned = ((taker.member_id, taker.owned) for taker in takers)
    inherited = ((heir, member.target | member.owned) for heir, member in left)
    for member_id, resources in chain(targets, owned, inherited, returned):
        mine = resources - taken
        shares[member_id] |= mine
        taken |= mine
    return shares


def _shares(placeable: Resources, claims: Shares) -> Shares:
    """Return each taker's level share of everything placeable, connectors apart from tasks."""
    connectors = frozenset(resource for resource in placeable if not resource.is_task)
    shares: Shares = {member: set() for member in claims}
    for kind in (connectors, placeable - connectors):
        kept = _keep(len(kind), {member: claim & kind for member, claim in claims.items()})
        _deal(sorted(kind.difference(*kept.values())), kept)
        for member, share in kept.items():
            shares[member] |= share
    return shares


def _keep(total: int, claims: Shares) -> Shares:
    """Return what each member keeps of its claim, when `total` resources are levelled.

    Who claims most keeps the odd one: any other choice moves as much, or more.
    """
    floor, odd = divmod(total, len(claims))
    fullest_first = sorted(claims, key=lambda member: (-len(claims[member]), member))
    kept: Shares = {}
    for rank, member in enumerate(fullest_first):
        quota = floor + 1 if rank < odd else floor
        claim = claims[member]
        kept[member] = claim if len(claim) <= quota else set(sorted(claim)[:quota])
    return kept


def _deal(free: Sequence[Resource], shares: Shares) -> None:
    """Give each free resource, in order, to a least loaded member.

    Among those it goes to who has the fewest tasks of the same connector, then the lowest id.
    `free` is sorted, so that each connector's tasks come in one run: for that run its holders
    wait in a heap of their own, into which they move only when their turn would come.
    """
    tallies = _tallies({resource.connector for resource in free}, shares)
    others = [(len(share), member) for member, share in shares.items()] if free else []
    heapq.heapify(others)
    holders: list[tuple[int, int, str]] = []
    connector = ""
    for resource in free:
        if resource.connector != connector:
            connector = resource.connector
            for load, _, member in holders:
                heapq.heappush(others, (load, member))
            holders = []
        tally = tallies[connector]
        while others and others[0][1] in tally:
            load, member = heapq.heappop(others)
            heapq.heappush(holders, (load, tally[member], member))
        if holders and not (others and (others[0][0], 0) < holders[0][:2]):
            load, _, member = heapq.heappop(holders)
        else:
            load, member = heapq.heappop(others)
        shares[member].add(resource)
        tally[member] += 1
        heapq.heappush(holders, (load + 1, tally[member], member))


def _tallies(connectors: set[str], shares: Shares) -> defaultdict[str, Counter[str]]:
    """Return how many tasks of each of these connectors each member has."""
    tallies: defaultdict[str, Counter[str]] = defaultdict(Counter)
    if connectors:
        for member, share in shares.items():
            for resource in share:
                if resource.connector in connectors:
                    tallies[resource.connector][member] += 1
    return tallies
