"""Demands of work on the worker that runs it, and the placement of work that has any.

A *demand* has two parts: the pins of a resource, which name workers, and the needs of its
connector, which are tags and zones. A worker *meets* it or not. A demand is hard: the work runs
where it is met, or nowhere, with the demand as reason. Every worker meets `NO_DEMAND`.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...events.model import Resource, Resources
from ...events.placement import abilities
from ..messages.computing import NO_NEEDS, MemberView, Needs, Snapshot
from ..messages.errors import listing
from .eligibility import Eligible, Shares


@dataclass(frozen=True, slots=True)
class Demand:
    """The workers on which a resource may run: pinned ones, if any, that meet its needs."""

    pins: tuple[str, ...] = ()
    """The names of the workers that are allowed; empty: any."""
    needs: Needs = NO_NEEDS

    def __str__(self) -> str:
        """Return the demand in words: `needs tag gpu and zone a or b, pinned to W1`."""
        needed: list[str] = ["a worker that takes work without tags"] if self.needs.any_work else []
        if self.needs.tags:
            needed.append(listing([f"tag {tag}" for tag in self.needs.tags], " and "))
        if self.needs.zones:
            needed.append(f"zone {listing(self.needs.zones, ' or ', ' or ')}")
        words = [f"needs {' and '.join(needed)}"] if needed else []
        if self.pins:
            words.append(f"pinned to {listing(self.pins)}")
        return ", ".join(words)

    def is_met(self, member: MemberView) -> bool:
        """Return whether a member may run a resource with this demand."""
        needs = self.needs
        if self.pins and _name(member) not in self.pins:
            return False
        if needs.zones and member.rack not in needs.zones:
            return False
        if not needs.tags and not needs.any_work:
            return True
        able = abilities(member.metadata)
        return needs.tags <= able.tags and not (needs.any_work and able.tagged_only)


NO_DEMAND = Demand()


def demand_of(snapshot: Snapshot, resource: Resource) -> Demand:
    """Return the demand of a resource: its own pins, and the needs of its connector."""
    pins = snapshot.pins.get(resource, ())
    needs = snapshot.needs.get(resource.connector)
    return Demand(pins, needs or NO_NEEDS) if pins or needs else NO_DEMAND


class DemandIndex:
    """Finds the takers that meet a demand by an index, without a scan over all takers.

    Pins are looked up by name; of workers of one zone with the same metadata, one is looked at
    for all.
    """

    def __init__(self, takers: Sequence[MemberView]) -> None:
        self._takers = takers
        self._named: dict[str, list[int]] = {}
        """The takers of a worker's name."""
        self._alike: dict[tuple[str | None, bytes], list[int]] = {}
        """The takers of a zone that have the same metadata."""
        for index, taker in enumerate(takers):
            self._named.setdefault(_name(taker), []).append(index)
            self._alike.setdefault((taker.rack, taker.metadata), []).append(index)

    def takers_of(self, demand: Demand) -> tuple[int, ...]:
        """Return the takers that meet a demand, as ascending places in the sequence."""
        if demand.pins:
            named = {index for pin in demand.pins for index in self._named.get(pin, ())}
            return tuple(sorted(each for each in named if demand.is_met(self._takers[each])))
        alike = (group for group in self._alike.values() if demand.is_met(self._takers[group[0]]))
        return tuple(sorted(index for group in alike for index in group))


def _name(member: MemberView) -> str:
    """Return the name by which pins refer to a worker."""
    return member.worker or member.member_id


def nobody_meets(demand: Demand, takers: Sequence[MemberView]) -> str:
    """Return why work of this demand is unplaceable with these takers."""
    if not takers:
        return "no worker takes work: all are cordoned, drained or away"
    return f"{demand}: no worker that takes work meets this"


@dataclass(frozen=True, slots=True)
class DemandedWork:
    """The assignment of resources with demands: `shares` by member id; else the reason."""

    shares: Mapping[str, Resources]
    """The assigned resources, by member id."""
    unplaceable: Mapping[Resource, str]
    """The resources without a member that meets the demand, each with the reason."""

    @property
    def all(self) -> Resources:
        """All resources that are placed here, or nowhere."""
        return frozenset(self.unplaceable).union(*self.shares.values())


def demands_in(snapshot: Snapshot, resources: Iterable[Resource]) -> Mapping[Resource, Demand]:
    """Return the demands of the resources that have one, sorted."""
    if not snapshot.pins and not snapshot.needs:
        return {}
    demands = ((resource, demand_of(snapshot, resource)) for resource in sorted(resources))
    return {resource: demand for resource, demand in demands if demand != NO_DEMAND}


def place_demanded(
    snapshot: Snapshot, members: Eligible, resources: Resources, claims: Shares
) -> DemandedWork:
    """Assign the placeable resources that have demands.

    Each stays with the taker that has it, if that meets its demand; else it goes to one that does
    and has least of such work.
    """
    demands = demands_in(snapshot, resources)
    if not demands:
        return DemandedWork({}, {})
    takers_of = _takers_by_demand(members.takers, demands.values())
    owners = {each: member for member, claim in claims.items() for each in claim}
    kept: dict[str, set[Resource]] = {}
    unplaceable: dict[Resource, str] = {}
    unassigned: dict[Resource, Demand] = {}
    for resource, demand in demands.items():
        if not takers_of[demand]:
            unplaceable[resource] = nobody_meets(demand, members.takers)
        elif (owner := owners.get(resource, "")) in takers_of[demand]:
            kept.setdefault(owner, set()).add(resource)
        else:
            unassigned[resource] = demand
    loads = Counter({member: len(share) for member, share in kept.items()})
    for resource, member in _deal(unassigned, takers_of, loads):
        kept.setdefault(member, set()).add(resource)
    return DemandedWork({member: frozenset(share) for member, share in kept.items()}, unplaceable)


def part_met_by(snapshot: Snapshot, member_id: str, share: Resources) -> Resources:
    """Return the part of a share whose demands the member meets."""
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


def _takers_by_demand(
    takers: Sequence[MemberView], demands: Iterable[Demand]
) -> Mapping[Demand, frozenset[str]]:
    """Return the ids of the takers that meet each demand."""
    index = DemandIndex(takers)
    return {
        demand: frozenset(takers[place].member_id for place in index.takers_of(demand))
        for demand in set(demands)
    }


def _deal(
    unassigned: Mapping[Resource, Demand],
    takers_of: Mapping[Demand, frozenset[str]],
    loads: Mapping[str, int],
) -> Iterator[tuple[Resource, str]]:
    """Yield each resource with the least loaded of the members that meet its demand."""
    rising = Counter(loads)
    queues: dict[Demand, list[tuple[int, str]]] = {}
    for resource, demand in unassigned.items():
        if demand not in queues:
            queues[demand] = sorted((rising[member], member) for member in takers_of[demand])
        member = _least_loaded(queues[demand], rising)
        yield resource, member
        rising[member] += 1


def _least_loaded(queue: list[tuple[int, str]], loads: Counter[str]) -> str:
    """Return the least loaded of a queue, then the lowest id; loads only ever rise.

    A member that took work of another demand meanwhile stands too far ahead, and is moved back.
    """
    while queue[0][0] != loads[queue[0][1]]:
        member = queue[0][1]
        heapq.heapreplace(queue, (loads[member], member))
    return queue[0][1]
