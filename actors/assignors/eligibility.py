"""Who of a group can be given work, who only keeps what it has, and who has a claim to what.

A worker takes work if it is there, its engine is warm, and operators neither cordoned nor
drain it. One that is cordoned, or away for a while, keeps what it has and gets nothing more.
One that is drained gives up all, whether or not anybody can take it: it is to be stopped.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...events.model import NOTHING, Resource, Resources
from ...events.placement.abilities import is_warm
from ..messages.computing import MemberView

Shares = dict[str, set[Resource]]
"""What each member that can take work has, by member id."""

Claim = tuple[str, Resources]
"""A member, and resources that it has a reason to be given."""

Permitted = Callable[[str, Resources], Resources]
"""Returns what of a share a member may run, by its id."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """The members of a snapshot by what they are good for, each in the order of their ids."""

    takers: Sequence[MemberView]
    keepers: Sequence[MemberView]
    left: Sequence[tuple[str, MemberView]]
    """The dying seats whose worker runs anew already, each with the member that it is now."""
    cold: Sequence[MemberView] = ()
    """Those that would take work, were their engines warm as those of the takers are."""


def eligible(members: Mapping[str, MemberView]) -> Eligible:
    """Sort the members: takers are the warm ones, or all that are open if none is warm."""
    heirs = _heirs(members.values())
    # Sorted as they come: they are nearly in order, which what is left of a set would not be.
    staying = [members[member_id] for member_id in sorted(members) if member_id not in heirs]
    takers = [member for member in staying if _is_open(member)]
    others = staying if len(takers) < len(staying) else ()
    warm = {said for said in {member.metadata for member in takers} if is_warm(said)}
    ready = [member for member in takers if member.metadata in warm] or takers
    return Eligible(
        ready,
        [member for member in others if not _is_open(member) and not member.draining],
        [(heirs[ghost], members[ghost]) for ghost in sorted(heirs)],
        [each for each in takers if each.metadata not in warm] if len(ready) < len(takers) else (),
    )


def _is_open(member: MemberView) -> bool:
    return not member.cordoned and not member.draining and member.member_epoch >= 0


def _heirs(members: Collection[MemberView]) -> Mapping[str, str]:
    """Return the members whose worker runs anew already, each with the one that it is now.

    A worker that died is a member until its session ends. If its successor, of the same url,
    can take work by then, it is to have just what the old one has, and nobody else must move.
    """
    urls = [member.url for member in members if member.url]
    if len(urls) == len(set(urls)):
        return {}
    in_order = sorted(members, key=lambda member: (member.joined_epoch, member.member_id))
    newest = {member.url: member for member in in_order if member.url}
    able = {url for url, member in newest.items() if _is_open(member) and is_warm(member.metadata)}
    return {
        member.member_id: newest[member.url].member_id
        for member in in_order
        if member.url in able and newest[member.url] is not member
    }


def keep_shares(
    members: Eligible, placeable: Resources, permitted: Permitted
) -> Mapping[str, Resources]:
    """Return what each keeper keeps of the placeable: what it may run of its target and its own.

    What is on its way to who takes work goes there, unless that one may not run it any more.
    """
    if not members.keepers:
        return {}
    found: dict[str, Resources] = {}
    going = [permitted(taker.member_id, taker.target) for taker in members.takers]
    rest = _without(placeable, going)
    taken: set[Resource] = set()
    for keeper in members.keepers:
        has = ((keeper.target | keeper.owned) & rest) - taken
        found[keeper.member_id] = permitted(keeper.member_id, has)
        taken |= found[keeper.member_id]
    return found


def claim_shares(members: Eligible, returned: Iterable[Claim]) -> Shares:
    """Return what each taker has, nothing twice."""
    shares: Shares = {taker.member_id: set() for taker in members.takers}
    taken: set[Resource] = set()
    for member_id, resources in _in_order(members, returned):
        mine = resources - taken
        shares[member_id] |= mine
        taken |= mine
    return shares


def find_holdings(
    members: Eligible, returned: Iterable[Claim], placeable: Resources
) -> tuple[dict[str, Resources], Resources]:
    """Return what each taker has of the placeable, nothing twice, and what of it nobody has.

    Who has just its target has that very set: most do, and there may be thousands of them.
    """
    shares = {taker.member_id: taker.target for taker in members.takers}
    targets = [share for share in shares.values() if share]
    free = _without(placeable, targets)
    if len(free) + sum(map(len, targets)) > len(placeable):
        shares, free = dict.fromkeys(shares, NOTHING), placeable
    if not free:
        return shares, free
    taken: set[Resource] = set()
    for member_id, resources in _in_order(members, returned):
        if not free.isdisjoint(resources):
            mine = resources if resources <= free else resources & free
            mine = mine if taken.isdisjoint(mine) else mine - taken
            shares[member_id] = shares[member_id] | mine if shares[member_id] else mine
            taken |= mine
    return shares, free - taken if taken else free


def _without(resources: Resources, shares: Sequence[Resources]) -> Resources:
    """Return the resources that are in none of these shares.

    As a new set: what is left of a large one takes as long to go through as that.
    """
    return frozenset([*resources.difference(*shares)]) if shares else resources


def _in_order(members: Eligible, returned: Iterable[Claim]) -> Iterator[Claim]:
    """Yield who has a claim to what, the stronger first: targets, what is owned, what came back.

    An heir has what the member that it follows was left with. Where two claim a resource the
    target wins, for that is where it is going already.
    """
    yield from ((taker.member_id, taker.target) for taker in members.takers)
    yield from ((taker.member_id, taker.owned) for taker in members.takers)
    yield from ((heir, member.target | member.owned) for heir, member in members.left)
    yield from returned
