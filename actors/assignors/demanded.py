"""Work that demands something of its worker: it runs where that is met, or nowhere."""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...events.model import Resource, Resources
from ..messages.computing import MemberView, Snapshot
from .demands import NO_DEMAND, Demand, Meeting, demand_of, nobody_meets
from .eligibility import Eligible, Shares


@dataclass(frozen=True, slots=True)
class Demanded:
    """Where work with demands goes: to a member, or nowhere, with the reason."""

    shares: Mapping[str, Resources]
    unplaceable: Mapping[Resource, str]

    @property
    def all(self) -> Resources:
        """All that was decided here."""
        return frozenset(self.unplaceable).union(*self.shares.values())


def demands_in(snapshot: Snapshot, resources: Iterable[Resource]) -> Mapping[Resource, Demand]:
    """Return what those of the resources demand that demand anything, in order."""
    if not snapshot.pins and not snapshot.needs:
        return {}
    found = ((resource, demand_of(snapshot, resource)) for resource in sorted(resources))
    return {resource: demand for resource, demand in found if demand is not NO_DEMAND}


def place_demanded(
    snapshot: Snapshot, members: Eligible, placeable: Resources, claims: Shares
) -> Demanded:
    """Return where those of the placeable go that demand anything.

    Such work stays with who has it if that one may; else it goes to who has least of it.
    """
    demands = demands_in(snapshot, placeable)
    if not demands:
        return Demanded({}, {})
    allowed = _allowed(members.takers, demands.values())
    owners = {each: member for member, claim in claims.items() for each in claim}
    shares: dict[str, set[Resource]] = {}
    unplaceable: dict[Resource, str] = {}
    homeless: list[Resource] = []
    for resource, demand in demands.items():
        if not allowed[demand]:
            unplaceable[resource] = nobody_meets(demand, members.takers)
        elif (owner := owners.get(resource, "")) in allowed[demand]:
            shares.setdefault(owner, set()).add(resource)
        else:
            homeless.append(resource)
    _deal([(resource, demands[resource]) for resource in homeless], allowed, shares)
    return Demanded({member: frozenset(share) for member, share in shares.items()}, unplaceable)


def permitted(snapshot: Snapshot, member_id: str, share: Resources) -> Resources:
    """Return what of a share the member may run: not what demands what it does not meet."""
    if not snapshot.pins and not snapshot.needs:
        return share
    member = snapshot.members[member_id]
    unmet = {
        demand
        for demand in {demand_of(snapshot, resource) for resource in share}
        if not demand.is_met(member)
    }
    if not unmet:
        return share
    return frozenset(each for each in share if demand_of(snapshot, each) not in unmet)


def _allowed(
    takers: Sequence[MemberView], demands: Iterable[Demand]
) -> Mapping[Demand, frozenset[str]]:
    """Return who meets each demand; many resources have the same one."""
    meeting = Meeting(takers)
    return {
        demand: frozenset(takers[index].member_id for index in meeting.who(demand))
        for demand in set(demands)
    }


def _deal(
    homeless: Iterable[tuple[Resource, Demand]],
    allowed: Mapping[Demand, frozenset[str]],
    shares: Shares,
) -> None:
    """Give each resource to the least loaded of those who meet its demand."""
    loads = Counter({member: len(share) for member, share in shares.items()})
    queues: dict[Demand, list[tuple[int, str]]] = {}
    for resource, demand in homeless:
        if demand not in queues:
            queues[demand] = sorted((loads[member], member) for member in allowed[demand])
        member = _least_loaded(queues[demand], loads)
        shares.setdefault(member, set()).add(resource)
        loads[member] += 1


def _least_loaded(queue: list[tuple[int, str]], loads: Counter[str]) -> str:
    """Return the least loaded of a queue, then the lowest id; loads only ever rise.

    Who took work of another demand since stands too far ahead, and goes back to its place.
    """
    while queue[0][0] != loads[queue[0][1]]:
        member = queue[0][1]
        heapq.heapreplace(queue, (loads[member], member))
    return queue[0][1]
