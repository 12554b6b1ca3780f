"""Which takers work may run on, and which work is alike in that.

Resources whose demands the same takers meet are of one class: a thousand connectors that need
a tag are one class, and so is all that is pinned to the same worker. Class 0 runs anywhere.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....events.model import Resource, Resources
from ...messages.computing import Snapshot
from ..demands import Demand, Meeting, demand_of, nobody_meets
from .workers import Workers

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
    meeting = Meeting(workers.takers)
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
