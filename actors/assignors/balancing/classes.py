"""Which takers work may run on, and which work is alike in that.

Resources whose demands the same takers meet are of one class: a thousand connectors that need
a tag are one class, and so is all that is pinned to the same worker. Class 0 runs anywhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....events.model import Resource
from ...messages.computing import Snapshot
from ..demands import NO_DEMAND, Demand, demand_of, nobody_meets
from .roster import Roster, by_worker

ANYWHERE = 0


@dataclass(frozen=True, slots=True)
class Classes:
    """The takers of each class, and the class of each resource that is not of class 0."""

    seated: Sequence[Sequence[int]]
    of: Mapping[Resource, int]
    unplaceable: Mapping[Resource, str]
    """What no taker may run, each with the reason."""


def classes_of(snapshot: Snapshot, roster: Roster, resources: Iterable[Resource]) -> Classes:
    """Return the classes of these resources; the higher the number, the fewer are seated."""
    everyone = tuple(range(len(roster.takers)))
    demands = _demands(snapshot, resources)
    if not demands:
        return Classes([everyone], {}, {})
    meeting = _Meeting(roster)
    who = {demand: meeting.who(demand) for demand in demands}
    seated = sorted(set(who.values()) - {(), everyone}, key=lambda some: (-len(some), some))
    of: dict[Resource, int] = {}
    unplaceable: dict[Resource, str] = {}
    numbers = {some: number for number, some in enumerate([everyone, *seated])}
    for demand, alike in demands.items():
        if not who[demand]:
            unplaceable.update(dict.fromkeys(alike, nobody_meets(demand, roster.takers)))
        elif who[demand] != everyone:
            of.update(dict.fromkeys(alike, numbers[who[demand]]))
    return Classes([*numbers], of, dict(sorted(unplaceable.items())))


def _demands(
    snapshot: Snapshot, resources: Iterable[Resource]
) -> Mapping[Demand, Sequence[Resource]]:
    """Return the demands that there are, each with the resources that have it.

    Most of what demands anything does so with its whole connector, which is asked for once.
    """
    alike: dict[tuple[tuple[str, ...], str], list[Resource]] = {}
    if snapshot.pins or snapshot.needs:
        for resource in resources:
            pins = snapshot.pins.get(resource, ())
            if pins or resource[0] in snapshot.needs:
                alike.setdefault((pins, resource[0]), []).append(resource)
    found: dict[Demand, list[Resource]] = {}
    for some in alike.values():
        found.setdefault(demand_of(snapshot, some[0]), []).extend(some)
    found.pop(NO_DEMAND, None)
    return found


class _Meeting:
    """Finds who meets a demand, without asking everybody about every pin.

    Of workers of one zone that say the same of themselves, one answers for all.
    """

    def __init__(self, roster: Roster) -> None:
        self._takers = roster.takers
        self._by_worker = by_worker(roster)
        self._alike: dict[tuple[str | None, bytes], list[int]] = {}
        for index, taker in enumerate(roster.takers):
            self._alike.setdefault((taker.rack, taker.metadata), []).append(index)

    def who(self, demand: Demand) -> tuple[int, ...]:
        """Return all takers that meet a demand."""
        if demand.pins:
            named = {index for pin in demand.pins for index in self._by_worker.get(pin, ())}
            return tuple(sorted(each for each in named if demand.is_met(self._takers[each])))
        met = (group for group in self._alike.values() if demand.is_met(self._takers[group[0]]))
        return tuple(sorted(index for group in met for index in group))
