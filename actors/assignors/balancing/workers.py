"""The workers that take work, in the order in which equals get their turn, and what they may run.

That order is the one of their names, taken in turns from the zones: whoever is dealt work in
it spreads the work over the zones first. From here on a taker is its place in that order.

Resources whose demands the same takers meet are of one class: a thousand connectors that need
a tag are one class, and so is all that is pinned to the same worker. Class 0 runs anywhere.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from ....events.model import Resource, Resources
from ....events.placement.abilities import abilities
from ...messages.computing import MemberView, Snapshot
from ..demands import Demand, DemandIndex, demand_of, nobody_meets


@dataclass(frozen=True, slots=True)
class Workers:
    """The takers; all sequences are in their order.

    `scales` turn loads of workers of unequal capacity into what can be compared: a load times
    its scale is the load per capacity, in units that make it a whole number.
    """

    takers: Sequence[MemberView]
    scales: Sequence[int]
    zones: Sequence[str]
    zone_names: Sequence[str]


def workers_of(takers: Sequence[MemberView]) -> Workers:
    """Put these takers, in the order of their member ids, into the order of their turns."""
    order = sorted(takers, key=lambda taker: taker.worker or taker.member_id)
    zone_names = sorted({taker.rack or "" for taker in takers})
    if len(zone_names) > 1:
        order = _in_turns(order)
    # Where nobody is warm all take work, each as much as the other.
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
    """Return them so that any stretch of them is as even over the zones as their sizes allow."""
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


@dataclass(frozen=True, slots=True)
class Classes:
    """The takers of each class, and the classes: of what is pinned, and of whole connectors."""

    eligible: Sequence[Sequence[int]]
    pinned: Mapping[Resource, int]
    connectors: Mapping[str, int]
    """Of those that need anything; what of them is pinned counts as that."""
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
        """Tell whether there is any class but that of work that runs anywhere."""
        return len(self.eligible) > 1


def classes_of(snapshot: Snapshot, workers: Workers, resources: Resources) -> Classes:
    """Return the classes of these resources; the higher the number, the fewer are eligible."""
    everyone = tuple(range(len(workers.takers)))
    pinned = {
        each: demand_of(snapshot, each)
        for each, pins in snapshot.pins.items()
        if pins and each in resources
    }
    connectors = _needing(snapshot, resources, pinned)
    if not pinned and not connectors:
        return Classes([everyone], {}, {}, {})
    meeting = DemandIndex(workers.takers)
    who = {demand: meeting.who(demand) for demand in {*pinned.values(), *connectors.values()}}
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


def _needing(
    snapshot: Snapshot, resources: Resources, pinned: Collection[Resource]
) -> Mapping[str, Demand]:
    """Return what connectors need of which anything is not pinned: that has the needs alone.

    Most of what demands anything does so with its whole connector, which is asked for once.
    """
    if not snapshot.needs:
        return {}
    found = {each[0] for each in resources if each not in pinned} & snapshot.needs.keys()
    return {each: Demand(needs=snapshot.needs[each]) for each in found}
