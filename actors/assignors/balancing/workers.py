"""The workers that take work, in the order in which equals get their turn.

That order is the one of their names, taken in turns from the zones: whoever is dealt work in
it spreads the work over the zones first. From here on a taker is its place in that order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from ....events.abilities import abilities
from ...messages.computing import MemberView


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
