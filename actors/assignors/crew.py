"""Who of a group can be given work, who only keeps what it has, and who has a claim to what.

A worker takes work if it is there, its engine is warm, and operators neither cordoned nor
drain it. One that is cordoned, or away for a while, keeps what it has and gets nothing more.
One that is drained gives up all, whether or not anybody can take it: it is to be stopped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ...events.abilities import is_warm
from ...events.model import NOTHING, Resource, Resources
from ..messages.computing import MemberView, Snapshot

Shares = dict[str, set[Resource]]
"""What each member that can take work has, by member id."""

Claim = tuple[str, Resources]
"""A member, and resources that it has a reason to be given."""


@dataclass(frozen=True, slots=True)
class Crew:
    """The members of a snapshot by what they are good for, each in the order of their ids."""

    takers: Sequence[MemberView]
    keepers: Sequence[MemberView]
    left: Sequence[tuple[str, MemberView]]
    """The dying seats whose worker runs anew already, each with the member that it is now."""


def muster(members: Mapping[str, MemberView]) -> Crew:
    """Return the crew: takers are the warm ones, or all that are open if none is warm."""
    heirs = _heirs(members.values())
    staying = [members[member_id] for member_id in sorted(members.keys() - heirs.keys())]
    takers = [member for member in staying if _is_open(member)]
    return Crew(
        [member for member in takers if is_warm(member.metadata)] or takers,
        [member for member in staying if not _is_open(member) and not member.draining],
        [(heirs[ghost], members[ghost]) for ghost in sorted(heirs)],
    )


def _is_open(member: MemberView) -> bool:
    return not member.cordoned and not member.draining and member.member_epoch >= 0


def _heirs(members: Iterable[MemberView]) -> Mapping[str, str]:
    """Return the members whose worker runs anew already, each with the one that it is now.

    A worker that died is a member until its session ends. If its successor, of the same url,
    can take work by then, it is to have just what the old one has, and nobody else must move.
    """
    in_order = sorted(members, key=lambda member: (member.joined_epoch, member.member_id))
    newest = {member.url: member for member in in_order if member.url}
    able = {url for url, member in newest.items() if _is_open(member) and is_warm(member.metadata)}
    return {
        member.member_id: newest[member.url].member_id
        for member in in_order
        if member.url in able and newest[member.url] is not member
    }


def kept(crew: Crew, placeable: Resources) -> Mapping[str, Resources]:
    """Return what each keeper keeps of the placeable: its target and what it runs."""
    found: dict[str, Resources] = {}
    rest = (
        placeable.difference(*(taker.target for taker in crew.takers)) if crew.keepers else NOTHING
    )
    for keeper in crew.keepers:
        found[keeper.member_id] = (keeper.target | keeper.owned) & rest
        rest -= found[keeper.member_id]
    return found


def claims(crew: Crew, returned: Iterable[Claim]) -> Shares:
    """Return what each taker has, nothing twice: its target, what it owns, what came back.

    An heir has what the member that it follows was left with. Where two claim a resource the
    target wins, for that is where it is going already.
    """
    shares: Shares = {taker.member_id: set() for taker in crew.takers}
    taken: set[Resource] = set()
    targets = ((taker.member_id, taker.target) for taker in crew.takers)
    owned = ((taker.member_id, taker.owned) for taker in crew.takers)
    inherited = ((heir, member.target | member.owned) for heir, member in crew.left)
    for member_id, resources in chain(targets, owned, inherited, returned):
        mine = resources - taken
        shares[member_id] |= mine
        taken |= mine
    return shares


def workers(snapshot: Snapshot, members: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the members that a worker's name stands for, by name."""
    found: dict[str, list[str]] = {}
    for member_id in members:
        found.setdefault(snapshot.members[member_id].worker or member_id, []).append(member_id)
    return found
