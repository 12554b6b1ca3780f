"""What work demands of the worker that runs it, and which workers meet that.

A demand is hard: work whose demand nobody meets is unplaceable, with the demand as reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...events.abilities import abilities
from ...events.model import Resource
from ..messages.computing import NO_NEEDS, MemberView, Needs, Snapshot
from ..messages.listing import listing


@dataclass(frozen=True, slots=True)
class Demand:
    """Where a resource may run: on one of the pinned workers, if any, that meets the needs."""

    pins: tuple[str, ...] = ()
    needs: Needs = NO_NEEDS

    def __str__(self) -> str:
        """Return it in words: `needs tag gpu and zone a or b, pinned to W1`."""
        needed: list[str] = []
        if self.needs.tags:
            needed.append(listing([f"tag {tag}" for tag in self.needs.tags], " and "))
        if self.needs.zones:
            needed.append(f"zone {listing(self.needs.zones, ' or ', ' or ')}")
        words = [f"needs {' and '.join(needed)}"] if needed else []
        if self.pins:
            words.append(f"pinned to {listing(self.pins)}")
        return ", ".join(words)

    def is_met(self, member: MemberView) -> bool:
        """Tell whether a member may run such work."""
        needs = self.needs
        if self.pins and _name(member) not in self.pins:
            return False
        if needs.zones and member.rack not in needs.zones:
            return False
        return not needs.tags or needs.tags <= abilities(member.metadata).tags


NO_DEMAND = Demand()


def demand_of(snapshot: Snapshot, resource: Resource) -> Demand:
    """Return what a resource demands: its own pins, and the needs of its connector."""
    pins = snapshot.pins.get(resource, ())
    needs = snapshot.needs.get(resource.connector, NO_NEEDS)
    return Demand(pins, needs) if pins or needs is not NO_NEEDS else NO_DEMAND


class Meeting:
    """Finds which takers meet a demand, without asking everybody about every demand.

    Pins are looked up by name; of workers of one zone that say the same of themselves, one
    answers for all.
    """

    def __init__(self, takers: Sequence[MemberView]) -> None:
        self._takers = takers
        self._named: dict[str, list[int]] = {}
        self._alike: dict[tuple[str | None, bytes], list[int]] = {}
        for index, taker in enumerate(takers):
            self._named.setdefault(_name(taker), []).append(index)
            self._alike.setdefault((taker.rack, taker.metadata), []).append(index)

    def who(self, demand: Demand) -> tuple[int, ...]:
        """Return the places of all takers that meet a demand, in order."""
        if demand.pins:
            named = {index for pin in demand.pins for index in self._named.get(pin, ())}
            return tuple(sorted(each for each in named if demand.is_met(self._takers[each])))
        met = (group for group in self._alike.values() if demand.is_met(self._takers[group[0]]))
        return tuple(sorted(index for group in met for index in group))


def _name(member: MemberView) -> str:
    """Return the name by which pins know a worker."""
    return member.worker or member.member_id


def nobody_meets(demand: Demand, takers: Sequence[MemberView]) -> str:
    """Return why work of this demand is unplaceable with these takers."""
    if not takers:
        return "no worker takes work: all are cordoned, drained or away"
    return f"{demand}: no worker that takes work meets this"
