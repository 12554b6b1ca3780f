"""What a member's request leads to in either protocol: a target that is due, and its next step."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....events.group import Group, Member
from ....events.model import Resource, Resources
from ....events.records import CurrentAssignment, Record
from ..computing.compute import schedule_target
from ..state.soft_state import SoftState
from .reconcile import Goal, reconcile


class Requester(NamedTuple):
    """The member whose request is decided."""

    seat: Member | None
    """The member that had its seat before; None: it is a new seat."""
    member: Member
    """The member that has the seat now, before its step."""
    owned: Resources | None
    """What it says that it runs, None if it did not say."""


class StepResult(NamedTuple):
    """The soft state, all records of the request, and the member's current assignment then."""

    soft: SoftState
    records: list[Record]
    after: CurrentAssignment


def next_step(
    group: Group, soft: SoftState, requester: Requester, records: Sequence[Record], now_ms: int
) -> StepResult:
    """Add the member's step to the records of its request.

    A target that these make due, and that the coordinator computes itself, comes before the step.
    Raises `UnknownStateError`.
    """
    seat, member, owned = requester
    soft, made, ahead = schedule_target(group, soft, records, now_ms)
    target = ahead.share_of(seat.member_id if seat and not made else member.member_id)
    goal = Goal(ahead.assignment_epoch, target, _others(ahead, seat, member, target))
    after = reconcile(member.current, goal, owned)
    stepped = [] if after is member.current else [after]
    return StepResult(soft, [*records, *made, *stepped], after)


def _others(
    group: Group, seat: Member | None, member: Member, target: Resources
) -> Mapping[Resource, str]:
    """Return which members hold what; one that is replaced in its seat holds nothing any more."""
    if seat is None or seat.member_id == member.member_id:
        return group.owner
    held = ((each, group.owner.get(each)) for each in target)
    return {each: by for each, by in held if by is not None and by != seat.member_id}
