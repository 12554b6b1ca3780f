"""Which members can be given work, which only keep what they have, and what each has a claim to.

A worker takes work if it is there, its engine is warm, and operators neither cordoned nor
drain it. One that is cordoned, or away for a while, keeps what it has and gets nothing more.
One that is drained gives up all, whether or not anybody can take it: it is to be stopped.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...events.model import NOTHING, Resource, Resources
from ...events.placement import is_warm
from ..messages.computing import MemberView

Shares = dict[str, set[Resource]]
"""Resources by member id; a set may change while work is dealt."""

Claim = tuple[str, Resources]
"""A member id, and resources that the member has a reason to be given."""

PartMetBy = Callable[[str, Resources], Resources]
"""Returns the part of a share whose demands a member meets, given its id."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """The members of a snapshot by the work that they may get, all in the order of their ids.

    A member that is drained is in none of these, unless it has a successor.
    """

    takers: Sequence[MemberView]
    """Members that can be given work."""
    keepers: Sequence[MemberView]
    """Members that keep what they have and get nothing more."""
    succeeded: Sequence[tuple[str, MemberView]]
    """Members whose worker died and runs again, each after the id of its successor."""
    cold: Sequence[MemberView] = ()
    """Members that would be takers, were their engines warm as those of the takers are."""


def eligible(members: Mapping[str, MemberView]) -> Eligible:
    """Sort the members: takers are the warm ones, or all that are open if none is warm."""
    successors = _find_successors(members.values())
    # The mapping is nearly in order, so this sorts it quickly; a set difference is in none.
    staying = [members[member_id] for member_id in sorted(members) if member_id not in successors]
    takers = [member for member in staying if _is_open(member)]
    others = staying if len(takers) < len(staying) else ()
    warm = {each for each in {member.metadata for member in takers} if is_warm(each)}
    ready = [member for member in takers if member.metadata in warm] or takers
    return Eligible(
        ready,
        [member for member in others if not _is_open(member) and not member.draining],
        [(successors[old], members[old]) for old in sorted(successors)],
        [each for each in takers if each.metadata not in warm] if len(ready) < len(takers) else (),
    )


def _is_open(member: MemberView) -> bool:
    return not member.cordoned and not member.draining and member.member_epoch >= 0


def _find_successors(members: Collection[MemberView]) -> Mapping[str, str]:
    """Return the successor of each member whose worker died and runs again, by member ids.

    A worker that died is a member until its session ends. If its successor, of the same url, can
    take work by then, it is to have just what the old one has, and no other work must move.
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
    members: Eligible, resources: Resources, part_met_by: PartMetBy
) -> Mapping[str, Resources]:
    """Return the placeable resources that each keeper keeps, of its target and of those it owns.

    Work that is on its way to a taker goes there, unless the taker no longer meets its demand.
    """
    if not members.keepers:
        return {}
    shares: dict[str, Resources] = {}
    going = [part_met_by(taker.member_id, taker.target) for taker in members.takers]
    others = _subtract(resources, going)
    taken: set[Resource] = set()
    for keeper in members.keepers:
        has = ((keeper.target | keeper.owned) & others) - taken
        shares[keeper.member_id] = part_met_by(keeper.member_id, has)
        taken |= shares[keeper.member_id]
    return shares


def claim_shares(members: Eligible, returned: Iterable[Claim]) -> Shares:
    """Return the resources to which each taker has a claim, none twice; see `_in_order`."""
    shares: Shares = {taker.member_id: set() for taker in members.takers}
    taken: set[Resource] = set()
    for member_id, resources in _in_order(members, returned):
        mine = resources - taken
        shares[member_id] |= mine
        taken |= mine
    return shares


def find_holdings(
    members: Eligible, returned: Iterable[Claim], resources: Resources
) -> tuple[dict[str, Resources], Resources]:
    """Return the placeable resources of each taker, none twice, and those that nobody has.

    A taker that has just its target is given that very set: most have, of perhaps thousands.
    """
    shares = {taker.member_id: taker.target for taker in members.takers}
    targets = [share for share in shares.values() if share]
    free = _subtract(resources, targets)
    if len(free) + sum(map(len, targets)) > len(resources):
        shares, free = dict.fromkeys(shares, NOTHING), resources
    if not free:
        return shares, free
    taken: set[Resource] = set()
    for member_id, claimed in _in_order(members, returned):
        if not free.isdisjoint(claimed):
            mine = claimed if claimed <= free else claimed & free
            mine = mine if taken.isdisjoint(mine) else mine - taken
            shares[member_id] = shares[member_id] | mine if shares[member_id] else mine
            taken |= mine
    return shares, free - taken if taken else free


def _subtract(resources: Resources, shares: Sequence[Resources]) -> Resources:
    """Return the resources that are in none of these shares.

    It is a new set: a set that was large and is small takes as long to iterate as when large.
    """
    return frozenset([*resources.difference(*shares)]) if shares else resources


def _in_order(members: Eligible, returned: Iterable[Claim]) -> Iterator[Claim]:
    """Yield claims, stronger ones first: targets, owned resources, inherited or returned ones.

    A successor claims what its predecessor has. Where two claim a resource the target wins, for
    that is where it is going already.
    """
    yield from ((taker.member_id, taker.target) for taker in members.takers)
    yield from ((taker.member_id, taker.owned) for taker in members.takers)
    yield from ((successor, old.target | old.owned) for successor, old in members.succeeded)
    yield from returned
