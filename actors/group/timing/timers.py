"""What the group says to itself when time has passed; each rule checks that it still holds."""

from dataclasses import replace

from ....events.group import Group
from ....events.model import MemberState, Why
from ....events.records import ScheduledRebalance
from ...messages.computing import LONGEST_WAIT_MS
from ...messages.timers import (
    ContinueMoves,
    ExpireRebalance,
    ExpireSession,
    FreeSeat,
    ReleaseParked,
)
from ..computing.compute import awaits_who_can
from ..computing.preview import preview_of
from ..members.depart import Departure, depart, sent_away
from ..members.seats import step_away
from ..state.soft_state import Decision, SoftState, bump


def expire_session(group: Group, soft: SoftState, command: ExpireSession, now_ms: int) -> Decision:
    """Remove a member that was not heard of; its work is lost if it ever had any.

    A seat that was taken since the timer was set has a session of its own.
    """
    member = group.members.get(command.member_id)
    if member is None or command.joined_epoch not in {None, member.metadata.joined_epoch}:
        return Decision(soft)
    since_ms = now_ms - command.silent_ms if command.silent_ms else 0
    departure = sent_away(group, member) or Departure(
        member, Why.SESSION_EXPIRED, command.acknowledged, since_ms=since_ms
    )
    return depart(group, soft, departure, now_ms)


def expire_rebalance(
    group: Group, soft: SoftState, command: ExpireRebalance, now_ms: int
) -> Decision:
    """Remove a member that did not give up in time what that very record asked it to."""
    member = group.members.get(command.member_id)
    if (
        member is None
        or member.offset != command.offset
        or member.current.state is not MemberState.UNREVOKED
    ):
        return Decision(soft)
    departure = sent_away(group, member) or Departure(
        member, Why.REBALANCE_EXPIRED, command.acknowledged
    )
    return depart(group, soft, departure, now_ms)


def free_seat(group: Group, soft: SoftState, command: FreeSeat, _: int) -> Decision:
    """Let go of what a seat still holds whose member is away: nothing of it runs."""
    member = group.members.get(command.member_id)
    if member is None or not member.is_away or not member.current.assigned:
        return Decision(soft)
    return Decision(soft, (step_away(member.current),))


def release_parked(group: Group, soft: SoftState, command: ReleaseParked, now_ms: int) -> Decision:
    """Release the parked work whose deadline has come, and ask for a target that places it."""
    schedule = group.schedule
    until_ms = max(now_ms, command.until_ms)
    due = {
        resource
        for resource, deadline_ms in schedule.parked.items()
        if deadline_ms <= until_ms and resource not in schedule.fired
    }
    if not due or not group.members:
        return Decision(soft)
    fired = replace(schedule, fired=schedule.fired | due)
    subject = min(map(str, due)) + (f" and {len(due) - 1} more" if len(due) > 1 else "")
    return Decision(soft, (fired, bump(group, Why.DELAY_EXPIRED, subject, now_ms)))


def continue_moves(group: Group, soft: SoftState, command: ContinueMoves, now_ms: int) -> Decision:
    """Ask for a target with the next of the moves, and see that it is asked for once.

    Where a target is due already, that one goes on with them. While all who can compute are
    away the moves wait: nobody else would go on with them.
    """
    schedule = group.schedule
    if not is_next_move_due(schedule, max(now_ms, command.until_ms)) or not group.members:
        return Decision(soft)
    if awaits_who_can(preview_of(group, ())):
        return Decision(soft)
    over = replace(schedule, again_at_ms=0)
    if group.group_epoch > group.assignment_epoch:
        return Decision(soft, (over,))
    return Decision(soft, (over, bump(group, Why.MOVES_DUE, group.target.assignor, now_ms)))


def is_next_move_due(schedule: ScheduledRebalance, now_ms: int) -> bool:
    """Tell whether the rest of the moves is due (wall clock, ms).

    A clock that was set back must not put it off for longer than anything may be put off:
    what lies further ahead than that is due.
    """
    return schedule.again_at_ms > 0 and not 0 < schedule.again_at_ms - now_ms <= LONGEST_WAIT_MS
