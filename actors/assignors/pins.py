"""Work that operators pinned: it runs on the workers that they name, or nowhere."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...events.model import Resource, Resources
from ..messages.computing import Snapshot
from .crew import Crew, Shares, workers


@dataclass(frozen=True, slots=True)
class Pinned:
    """Where pinned work goes: to a member, or nowhere, with the reason."""

    shares: Mapping[str, Resources]
    unplaceable: Mapping[Resource, str]

    @property
    def all(self) -> Resources:
        """All that was decided here."""
        return frozenset(self.unplaceable).union(*self.shares.values())


def place_pinned(snapshot: Snapshot, crew: Crew, placeable: Resources, claims: Shares) -> Pinned:
    """Return where the pinned work of the placeable goes.

    It stays with who has it if that one may; else it goes to who has least of such work.
    """
    shares: dict[str, set[Resource]] = {}
    unplaceable: dict[Resource, str] = {}
    if not snapshot.pins:
        return Pinned({}, {})
    names = workers(snapshot, (taker.member_id for taker in crew.takers))
    owners = {each: member for member, claim in claims.items() for each in claim}
    loads: Counter[str] = Counter()
    for resource in sorted(placeable & snapshot.pins.keys()):
        pins = snapshot.pins[resource]
        allowed = [member for name in pins for member in names.get(name, ())]
        if not allowed:
            unplaceable[resource] = f"pinned to {', '.join(pins)}: no such worker takes work now"
            continue
        owner = owners.get(resource, "")
        chosen = owner if owner in allowed else min(allowed, key=lambda each: (loads[each], each))
        shares.setdefault(chosen, set()).add(resource)
        loads[chosen] += 1
    return Pinned({member: frozenset(share) for member, share in shares.items()}, unplaceable)
