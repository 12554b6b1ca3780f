"""What calls for another computation as time passes: deadlines, moves left, failed attempts."""

from dataclasses import replace

from ....events.group import Group
from ....events.model import Why
from ....events.records import ScheduledRebalance
from ...messages.computing import LONGEST_WAIT_MS
from ...messages.timers import ContinueMoves, ReleaseParked, RetryAssignor
from ..state.soft_state import Decision, GroupSettings, SoftState, bump
from .compute import is_awaiting_assignor
from .preview import preview_of


def is_retry_due(group: Group, settings: GroupSettings, now_ms: int) -> bool:
    """Tell whether the back-off after a failed attempt is over (wall clock, ms).

    The time is durable, so it is the wall's. A clock that was set back must not stretch the
    back-off beyond its maximum: what lies further ahead than that is due.
    """
    retry_at_ms = group.target.retry_at_ms
    return retry_at_ms > 0 and not 0 < retry_at_ms - now_ms <= settings.retry_backoff_max_ms


def retry_assignor(group: Group, soft: SoftState, command: RetryAssignor, now_ms: int) -> Decision:
    """Ask for a new computation after a failed one, unless something else already has."""
    now = max(now_ms, command.until_ms)
    if not is_retry_due(group, soft.settings, now) or not group.members:
        return Decision(soft)
    if group.group_epoch > group.assignment_epoch:
        return Decision(soft)
    return Decision(soft, (bump(group, Why.ASSIGNOR_RETRY, group.target.assignor, now_ms),))


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

    Where a target is due already, that one goes on with them. While all that can compute are
    away the moves wait: nobody else would go on with them.
    """
    schedule = group.schedule
    if not is_next_move_due(schedule, max(now_ms, command.until_ms)) or not group.members:
        return Decision(soft)
    if is_awaiting_assignor(preview_of(group, ())):
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
