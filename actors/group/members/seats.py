"""Seats that outlive a process: static members leave for a while and return (PROTOCOL §8).

`group.instances` maps an instance id (`group.instance.id`) to the member that has its seat. A
member at epoch -2 is away: it runs nothing and holds nothing. It keeps its seat and its share of
the target until it returns (under any member id), a target gives the share to others, or its time
is over. A seat ends earlier when a worker joins under its url, when operators ask for a rebalance
or do not expect it any more, and when its node starts and does not name it any more.
"""

from dataclasses import replace

from ....events.group import NOT_STARTED, Group, Member
from ....events.model import MemberState, Succession
from ....events.records import CurrentAssignment, MemberMetadata
from ...messages.commands import FreeSeat
from ...messages.members import TEMPORARY_LEAVE_EPOCH, Heartbeat
from ..state.soft_state import Decision, SoftState
from ..state.workers import removal_of
from .admission import ended_by


def step_away(current: CurrentAssignment) -> CurrentAssignment:
    """Return a member's assignment after it left temporarily; the same object if it already had.

    It has stopped everything, so it holds nothing: what it had is free for the members that the
    target gives it to. The previous epoch is that of the target which it had when it left.
    """
    is_away = current.member_epoch == TEMPORARY_LEAVE_EPOCH
    if is_away and not current.assigned:
        return current
    left_at = current.previous_epoch if is_away else current.member_epoch
    return CurrentAssignment(
        current.member_id, TEMPORARY_LEAVE_EPOCH, left_at, MemberState.AWAY, {}, {}
    )


def free_seat(group: Group, soft: SoftState, command: FreeSeat, _: int) -> Decision:
    """Release the resources that an older version left in the seat of a member that is away."""
    member = group.members.get(command.member_id)
    if member is None or not member.is_away or not member.current.assigned:
        return Decision(soft)
    return Decision(soft, (step_away(member.current),))


def take_seat(group: Group, away: Member | None, request: Heartbeat) -> Member:
    """Return the member that takes a seat: a new one, or that of a member that is away.

    A member that returns begins at epoch 0 and holds nothing; its next step grants it what the
    target gives its seat.
    """
    member_id, incarnation = request.member_id, request.incarnation
    if away is None:
        joined_epoch = group.group_epoch + 1
        metadata = MemberMetadata(member_id, incarnation, joined_epoch)
        return Member(metadata, replace(NOT_STARTED, member_id=member_id))
    metadata = replace(
        away.metadata,
        member_id=member_id,
        incarnation=incarnation,
        succession=_succession(group, away),
        classic=None,
    )
    return Member(metadata, CurrentAssignment(member_id, 0, 0, MemberState.STABLE, {}, {}))


def needs_target(group: Group, seat: Member, request: Heartbeat) -> bool:
    """Return whether the group needs a new target when another process takes a seat.

    It is if the seat's member was being removed, since a removal gives its work to others. If that
    member is away, a target is also needed if work is unplaceable, which the new one may be able to
    take; if the join ends other seats, for which work was kept; and if a target of the meantime
    left the seat less than an even share. Nothing else would raise the epoch.
    """
    if removal_of(group, seat) is not None:
        return True
    is_left_over = bool(group.target.unplaceable or ended_by(group, request))
    return seat.is_away and (is_left_over or _is_left_short(group, seat))


def _is_left_short(group: Group, seat: Member) -> bool:
    """Return whether a target installed while the member was away gave it too little.

    A member that is away is given nothing new, so such a target may leave it nothing, or more than
    one resource below an even share. Then its return calls for another target.
    """
    had_target_of = seat.current.previous_epoch
    if not group.configured or not had_target_of < group.assignment_epoch == group.group_epoch:
        return False
    share = len(group.share_of(seat.member_id))
    return not share or share + 1 < len(group.configured) / len(group.members)


def _succession(group: Group, away: Member) -> Succession:
    last = away.metadata.succession
    if last is None:
        return Succession(1, away.member_id, group.assignment_epoch)
    if last.assignment_epoch == group.assignment_epoch:
        return replace(last, returns=last.returns + 1)
    return Succession(last.returns + 1, away.member_id, group.assignment_epoch)
