"""The workers that take work, in the order in which equals get their turn, and what they may run.

That order is the one of their names, taken in turns from the zones: work that is dealt in it is
spread over the zones first. From here on a taker is its place in that order.

Resources whose demands the same takers meet are one class: a thousand connectors that need a tag
are one class, and so is all that is pinned to the same worker. Class 0 runs anywhere.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from ....events.model import Resource, Resources
from ....events.placement import abilities
from ...messages.computing import MemberView, Snapshot
from ..demands import Demand, DemandIndex, demand_of, nobody_meets


@dataclass(frozen=True, slots=True)
class Workers:
    """The takers; all sequences are in their order."""

    takers: Sequence[MemberView]
    scales: Sequence[int]
    """What makes loads comparable where capacities differ: a load times its scale is the load per
    capacity, in units that make it a whole number."""
    zones: Sequence[str]
    """The zone of each taker, in the same order."""
    zone_names: Sequence[str]
    """Each zone once, by name."""


def workers_of(takers: Sequence[MemberView]) -> Workers:
    """Return these takers, given by member id, in the order in which they take turns."""
    order = sorted(takers, key=lambda taker: taker.worker or taker.member_id)
    zone_names = sorted({taker.rack or "" for taker in takers})
    if len(zone_names) > 1:
        order = _in_turns(order)
    # Where no worker is warm all take work, each as much as the other.
    said = {taker.metadata for taker in takers}
    capacities = {each: abilities(each).capacity or 1 for each in said}
    whole = lcm(*capacities.values())
    scales = {each: whole // capacity for each, capacity in capacities.items()}
    return Workers(
        order,
        [scales[taker.metadata] for taker in order],
        [taker.rack or "" for taker in order],
        zone_names,
    )


def _in_turns(named: Sequence[MemberView]) -> list[MemberView]:
    """Return takers so ordered that any run of them is as even over the zones as possible."""
    by_zone: dict[str, list[MemberView]] = {}
    for taker in named:
        by_zone.setdefault(taker.rack or "", []).append(taker)
    placed = [
        ((place + 0.5) / len(by_zone[zone]), zone, place)
        for zone in by_zone
        for place in range(len(by_zone[zone]))
    ]
    return [by_zone[zone][place] for _, zone, place in sorted(placed)]


ANYWHERE = 0
"""The class of work that any taker may run."""


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of resources; a class is a number from 0 up."""

    eligible: Sequence[Sequence[int]]
    """The takers that may run each class, in the order of the classes."""
    pinned: Mapping[Resource, int]
    """The class of each resource that has pins."""
    connectors: Mapping[str, int]
    """The class of each connector that needs anything, for what of it has no pins."""
    unplaceable: Mapping[Resource, str]
    """What no taker may run, each with the reason."""

    def of(self, resource: Resource) -> int:
        """Return the class of a resource."""
        found = self.pinned.get(resource) if self.pinned else None
        return self.connectors.get(resource[0], ANYWHERE) if found is None else found

    def of_each(self, resources: Iterable[Resource]) -> list[int]:
        """Return the classes of these resources, in their order."""
        if self.pinned:
            return [self.of(each) for each in resources]
        of_connector = self.connectors.get
        return [of_connector(connector, ANYWHERE) for connector, _ in resources]

    @property
    def are_many(self) -> bool:
        """Return whether any work has demands, so that there is more than one class."""
        return len(self.eligible) > 1


def classes_of(snapshot: Snapshot, workers: Workers, resources: Resources) -> Classes:
    """Return the classes of these resources; the higher the number, the fewer takers."""
    everyone = tuple(range(len(workers.takers)))
    pinned = {
        each: demand_of(snapshot, each)
        for each, pins in snapshot.pins.items()
        if pins and each in resources
    }
    connectors = _find_needs(snapshot, resources, pinned)
    if not pinned and not connectors:
        return Classes([everyone], {}, {}, {})
    index = DemandIndex(workers.takers)
    who = {demand: index.takers_of(demand) for demand in {*pinned.values(), *connectors.values()}}
    eligible = sorted(set(who.values()) - {(), everyone}, key=lambda some: (-len(some), some))
    numbers = {some: number for number, some in enumerate([everyone, *eligible])}
    numbers_of = {demand: numbers[some] for demand, some in who.items() if some}
    nobody = who.keys() - numbers_of.keys()
    return Classes(
        [*numbers],
        {each: numbers_of[demand] for each, demand in pinned.items() if demand not in nobody},
        {each: numbers_of[demand] for each, demand in connectors.items() if demand not in nobody},
        {
            each: nobody_meets(demand, workers.takers)
            for each in (sorted(resources) if nobody else ())
            if (demand := pinned.get(each) or connectors.get(each[0])) in nobody
        },
    )


def _find_needs(
    snapshot: Snapshot, resources: Resources, pinned: Collection[Resource]
) -> Mapping[str, Demand]:
    """Return the needs of each connector that has any and has no pins, by connector.

    Most work with a demand has that of its whole connector, which is computed once.
    """
    if not snapshot.needs:
        return {}
    connectors = {each[0] for each in resources if each not in pinned} & snapshot.needs.keys()
    return {each: Demand(needs=snapshot.needs[each]) for each in connectors}
