"""What all built-in assignors but `balanced` share: what is placed before the rest is dealt out.

Lost work that may wait is parked, work of a cordoned worker stays there, work that demands
something of its worker goes where that is met. Assignors differ in how they deal out the rest.
"""

from collections.abc import Callable, Mapping
from functools import partial

from ...events.model import Resource, Resources
from ..messages.computing import Assignment, Snapshot
from .demands import NO_DEMAND, nobody_meets, permitted_part, place_demanded
from .eligibility import Eligible, Shares, claim_shares, eligible, keep_shares
from .losses import sort_losses

NO_MEMBERS = "no members"

Dealing = Callable[[Resources, Shares, Mapping[str, Resources]], Shares]
"""Deals out resources, given what each taker has a claim to, and what demanding work it gets."""


def place(snapshot: Snapshot, deal: Dealing) -> Assignment:
    """Return where everything configured is to go: to a member, parked, or unplaceable.

    Every member of the snapshot has an entry; deadlines are wall clock, in milliseconds. Where no
    member takes work, what no member keeps is unplaceable.
    """
    if not snapshot.members:
        return place_nowhere(snapshot)
    members = eligible(snapshot.members)
    parked, back = sort_losses(snapshot, members)
    placeable = snapshot.configured.difference(parked)
    shares, unplaceable = _place(snapshot, members, placeable, claim_shares(members, back), deal)
    return Assignment(
        {member: frozenset(shares.get(member, ())) for member in sorted(snapshot.members)},
        parked,
        unplaceable,
    )


def place_nowhere(snapshot: Snapshot) -> Assignment:
    """Return the assignment of a group without members: all is unplaceable."""
    nowhere = dict.fromkeys(sorted(snapshot.configured), NO_MEMBERS)
    return Assignment(members={}, unplaceable=nowhere)


def _place(
    snapshot: Snapshot, members: Eligible, placeable: Resources, claimed: Shares, deal: Dealing
) -> tuple[Shares, dict[Resource, str]]:
    """Return each member's share of the placeable, and what no member can take, with the reason."""
    staying = keep_shares(members, placeable, partial(permitted_part, snapshot))
    shares: Shares = {member: set(share) for member, share in staying.items()}
    free = placeable.difference(*shares.values())
    demanded = place_demanded(snapshot, members, free, claimed)
    free -= demanded.all
    if not claimed:
        nobody = nobody_meets(NO_DEMAND, members.takers)
        return shares, {**demanded.unplaceable, **dict.fromkeys(sorted(free), nobody)}
    for dealt in (demanded.shares, deal(free, claimed, demanded.shares)):
        for member, share in dealt.items():
            shares.setdefault(member, set()).update(share)
    return shares, dict(demanded.unplaceable)
