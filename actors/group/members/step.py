"""What a member's word leads to, whichever protocol it speaks: the target that is due, its step."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....events.group import Group, Member
from ....events.model import Resource, Resources
from ....events.records import CurrentAssignment, Record
from ..computing.compute import schedule_target
from ..state.soft_state import SoftState
from .reconcile import Goal, reconcile


class Speaker(NamedTuple):
    """Whose turn it is."""

    seat: Member | None
    """The seat in which it speaks, as it was; None: it takes a new one."""
    member: Member
    """The member that sits there now, before its step."""
    owned: Resources | None
    """What it says that it runs, None if it did not say."""


class Stepped(NamedTuple):
    """What a turn leads to: the soft state, all records of it, and where the member is then."""

    soft: SoftState
    records: list[Record]
    after: CurrentAssignment


def advance(
    group: Group, soft: SoftState, speaker: Speaker, records: Sequence[Record], now_ms: int
) -> Stepped:
    """Return what the member's step adds to what its word has led to (`records`).

    A target that this makes due, and that the group computes itself, comes before the step. Raises
    `UnknownStateError`.
    """
    seat, member, owned = speaker
    soft, made, ahead = schedule_target(group, soft, records, now_ms)
    target = ahead.share_of(seat.member_id if seat and not made else member.member_id)
    goal = Goal(ahead.assignment_epoch, target, _others(ahead, seat, member, target))
    after = reconcile(member.current, goal, owned)
    stepped = [] if after is member.current else [after]
    return Stepped(soft, [*records, *made, *stepped], after)


def _others(
    group: Group, seat: Member | None, member: Member, target: Resources
) -> Mapping[Resource, str]:
    """Return who holds what; who was in the seat before holds nothing any more."""
    if seat is None or seat.member_id == member.member_id:
        return group.owner
    held = ((each, group.owner.get(each)) for each in target)
    return {each: by for each, by in held if by is not None and by != seat.member_id}
