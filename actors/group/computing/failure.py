"""A failed attempt at a target: it is recorded, and the next one spaced out (PROTOCOL §5)."""

from dataclasses import replace

from ....events.group import Group
from ....events.model import NOTHING, Why
from ....events.records import TargetAssignment
from ...messages.timers import RetryAssignor
from ..state.settings import GroupSettings
from ..state.soft_state import Decision, SoftState, bump


def failed(
    group: Group, settings: GroupSettings, group_epoch: int, error: str, now_ms: int
) -> TargetAssignment:
    """Return the record of an attempt for this group epoch that failed.

    The old target stays, minus the departed and the deleted; each failure in a row doubles
    the time until the next attempt. What of the error no log can hold is spelled out.
    """
    failures = group.target.failures + 1
    delay_ms = min(
        settings.retry_backoff_ms << min(failures - 1, 10), settings.retry_backoff_max_ms
    )
    configured = group.configured
    unplaceable = group.target.unplaceable
    return replace(
        group.target,
        assignment_epoch=group_epoch,
        members={
            member_id: group.target_of.get(member_id, NOTHING) & configured
            for member_id in group.target_of
            if member_id in group.members
        },
        unplaceable={each: why for each, why in unplaceable.items() if each in configured},
        error=error.encode(errors="backslashreplace").decode(),
        failures=failures,
        retry_at_ms=now_ms + delay_ms,
        time_ms=now_ms,
    )


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
