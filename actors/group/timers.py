"""What the group says to itself when time has passed; each rule checks that it still holds."""

from dataclasses import replace

from ...events.group import Group
from ...events.model import MemberState, Why
from ...events.records import ScheduledRebalance
from ..messages import ExpireRebalance, ExpireSession, ReleaseParked, RetryAssignor, TimeOutAssignor
from .compute import choose, is_due
from .depart import Departure, depart
from .desk import Decision, Desk, bump
from .install import fail


def expire_session(group: Group, desk: Desk, command: ExpireSession, now_ms: int) -> Decision:
    """Remove a member that was not heard of; its work is lost if it ever had any."""
    member = group.members.get(command.member_id)
    if member is None:
        return Decision(desk)
    departure = Departure(member, Why.SESSION_EXPIRED, command.acknowledged)
    return depart(group, desk, departure, now_ms)


def expire_rebalance(group: Group, desk: Desk, command: ExpireRebalance, now_ms: int) -> Decision:
    """Remove a member that did not give up in time what that very record asked it to."""
    member = group.members.get(command.member_id)
    if (
        member is None
        or member.offset != command.offset
        or member.current.state is not MemberState.UNREVOKED
    ):
        return Decision(desk)
    departure = Departure(member, Why.REBALANCE_EXPIRED, command.acknowledged)
    return depart(group, desk, departure, now_ms)


def release_parked(group: Group, desk: Desk, _: ReleaseParked, now_ms: int) -> Decision:
    """Release the parked work whose deadline has come, and ask for a target that places it."""
    schedule = group.schedule
    due = {
        resource
        for resource, deadline_ms in schedule.parked.items()
        if deadline_ms <= now_ms and resource not in schedule.fired
    }
    if not due or not group.members:
        return Decision(desk)
    fired = ScheduledRebalance(schedule.parked, schedule.fired | due)
    subject = min(map(str, due)) + (f" and {len(due) - 1} more" if len(due) > 1 else "")
    return Decision(desk, (fired, bump(group, Why.DELAY_EXPIRED, subject, now_ms)))


def retry_assignor(group: Group, desk: Desk, _: RetryAssignor, now_ms: int) -> Decision:
    """Ask for a new computation after a failed one, unless something else already has."""
    retry_at_ms = group.target.retry_at_ms
    if not retry_at_ms or retry_at_ms > now_ms or not group.members:
        return Decision(desk)
    if group.group_epoch > group.assignment_epoch:
        return Decision(desk)
    subject = group.target.assignor
    return Decision(desk, (bump(group, Why.ASSIGNOR_RETRY, subject, now_ms),))


def time_out_assignor(group: Group, desk: Desk, _: TimeOutAssignor, now_ms: int) -> Decision:
    """Choose another member to compute; if all took too long, the attempt has failed."""
    computation = desk.computation
    if computation is None or computation.deadline_ms > now_ms or not is_due(group):
        return Decision(desk)
    timed_out = desk.timed_out | {computation.member_id}
    desk = replace(desk, timed_out=timed_out).without_computation()
    members = group.members.values()
    chosen = choose(desk, lambda: (member.metadata for member in members), now_ms)
    if chosen.computation is None or chosen.computation.member_id in timed_out:
        epoch = computation.snapshot.group_epoch if computation.snapshot else group.group_epoch
        desk = replace(desk, timed_out=frozenset(), last_chosen="")
        return fail(group, desk, epoch, "no member computed an assignment in time", now_ms)
    return Decision(chosen)
