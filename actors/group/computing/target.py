"""The records of a target, and the commands that lead to the next one at a recorded time.

An assignment is cut to the group as it is now, which may have changed since the snapshot (PROTOCOL
§5, Install). The target's records also say what waits: parked work for its deadline, deferred moves
for their time, another attempt for the end of its back-off. Each of these times leads to the next
target.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ....events.group import Group
from ....events.model import NOTHING, AssignorData, Grants, Resource, Resources, Why
from ....events.records import (
    Loss,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    Tombstone,
)
from ...messages.commands import ContinueMoves, ReleaseParked, RetryAssignor
from ...messages.computing import LONGEST_WAIT_MS, Assignment, Snapshot
from ...timing import Backoff
from ..state.settings import GroupSettings
from ..state.soft_state import Decision, SoftState, bump
from .elect import preview_of


@dataclass(frozen=True, slots=True)
class ComputedAssignment:
    """An assignment with the snapshot that it was computed from, and who computed it."""

    snapshot: Snapshot
    assignment: Assignment
    computed_by: str


def target_records(group: Group, computed: ComputedAssignment, now_ms: int) -> Iterator[Record]:
    """Yield the target, the schedule of parked work, and tombstones of losses that it settles."""
    snapshot, assignment = computed.snapshot, computed.assignment
    yield TargetAssignment(
        snapshot.group_epoch,
        _current_shares(group, snapshot, assignment.members),
        snapshot.assignor,
        assignment.version,
        assignment.metadata,
        {
            resource: reason
            for resource, reason in assignment.unplaceable.items()
            if resource in group.configured
        },
        computed.computed_by,
        now_ms,
        data=_current_data(group, snapshot, assignment.data),
    )
    parked = _still_parked(group, snapshot, assignment.parked)
    fired = group.schedule.fired.intersection(parked)
    schedule = ScheduledRebalance(parked, fired, assignment.again_at_ms)
    if schedule != group.schedule:
        yield schedule
    for loss in snapshot.losses:
        stands = group.losses.get(loss.member_id)
        is_same = stands is not None and stands.resources == loss.resources
        if is_same and loss.resources.isdisjoint(parked):
            yield Tombstone(Loss, (loss.member_id,))


def _current_shares(
    group: Group, snapshot: Snapshot, shares: Mapping[str, Resources]
) -> dict[str, Resources]:
    """Return the shares of the current members; one that replaced another has its share."""
    found: dict[str, Resources] = {}
    for member_id, share in shares.items():
        seat = _seat_of(group, snapshot, member_id)
        if seat is not None:
            found[seat] = found.get(seat, NOTHING) | _still_wanted(group, seat, share)
    return found


def _current_data(
    group: Group, snapshot: Snapshot, data: Mapping[str, AssignorData]
) -> dict[str, AssignorData]:
    """Return the messages of the assignor to single members of the group."""
    seats = ((_seat_of(group, snapshot, member_id), said) for member_id, said in data.items())
    return {seat: said for seat, said in seats if seat is not None}


def _still_wanted(group: Group, member_id: str, share: Resources) -> Resources:
    """Return the part of a share that is still configured, and still subscribed to."""
    share &= group.configured
    subscription = group.subscriptions.get(member_id)
    if subscription is None:
        return share
    topics = subscription.topics
    return frozenset(each for each in share if each.connector in topics)


def _seat_of(group: Group, snapshot: Snapshot, member_id: str) -> str | None:
    """Return the id of the member that now has the seat of a snapshot's member; None: nobody has.

    A static member may have been replaced under another member id. One that left and joined again
    since then, even with the same id, is a new member.
    """
    instance_id = snapshot.members[member_id].instance_id
    seat = member_id
    if member_id not in group.members and instance_id is not None:
        seat = group.instances.get(instance_id, member_id)
    member = group.members.get(seat)
    if member is None or member.metadata.joined_epoch > snapshot.group_epoch:
        return None
    return seat


def _still_parked(group: Group, snapshot: Snapshot, parked: Grants) -> dict[Resource, int]:
    """Return the parked resources that are still configured, by their current deadline.

    Operators may have moved a loss's deadline since the snapshot; then theirs counts.
    """
    moved: dict[Resource, int] = {}
    for loss in snapshot.losses:
        stands = group.losses.get(loss.member_id)
        if stands is not None and stands.deadline_ms != loss.deadline_ms:
            moved.update(dict.fromkeys(stands.resources, stands.deadline_ms))
    return {
        resource: moved.get(resource, deadline_ms)
        for resource, deadline_ms in parked.items()
        if resource in group.configured
    }


def failed_attempt(
    group: Group, settings: GroupSettings, group_epoch: int, error: str, now_ms: int
) -> TargetAssignment:
    """Return the record of an attempt for this group epoch that failed.

    The old target stays, minus the departed and the deleted; each failure in a row doubles
    the time until the next attempt. Characters of the error that are not encodable are escaped.
    """
    failures = group.target.failures + 1
    backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
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
        error_code=0,
        data={each: said for each, said in group.target.data.items() if each in group.members},
        failures=failures,
        retry_at_ms=now_ms + backoff.pause(failures),
        time_ms=now_ms,
    )


def is_retry_due(group: Group, settings: GroupSettings, now_ms: int) -> bool:
    """Return whether the back-off after a failed attempt is over (wall clock, ms)."""
    return _has_come(group.target.retry_at_ms, now_ms, settings.retry_backoff_max_ms)


def retry_assignor(group: Group, soft: SoftState, command: RetryAssignor, now_ms: int) -> Decision:
    """Raise the epoch after a failed computation, unless it has risen already."""
    now = max(now_ms, command.until_ms)
    if not is_retry_due(group, soft.settings, now) or not group.members:
        return Decision(soft)
    if group.group_epoch > group.assignment_epoch:
        return Decision(soft)
    return Decision(soft, (bump(group, Why.ASSIGNOR_RETRY, group.target.assignor, now_ms),))


def release_parked(group: Group, soft: SoftState, command: ReleaseParked, now_ms: int) -> Decision:
    """Mark parked work as fired once its deadline has passed, and raise the epoch."""
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
    """Raise the epoch for deferred moves, once.

    A target that is due already includes them. While all members that can compute are away the
    moves wait for them.
    """
    schedule = group.schedule
    if not is_next_move_due(schedule, max(now_ms, command.until_ms)) or not group.members:
        return Decision(soft)
    if preview_of(group, ()).is_awaiting_assignor(soft.server_assignors):
        return Decision(soft)
    over = replace(schedule, again_at_ms=0)
    if group.group_epoch > group.assignment_epoch:
        return Decision(soft, (over,))
    return Decision(soft, (over, bump(group, Why.MOVES_DUE, group.target.assignor, now_ms)))


def is_next_move_due(schedule: ScheduledRebalance, now_ms: int) -> bool:
    """Return whether deferred moves are due (wall clock, ms)."""
    return _has_come(schedule.again_at_ms, now_ms, LONGEST_WAIT_MS)


def _has_come(at_ms: int, now_ms: int, longest_ms: int) -> bool:
    """Return whether a recorded time has passed; 0: there is none.

    It is durable, so it is a wall clock time. A clock that was set back must not delay anything for
    longer than is allowed: a time further ahead than that counts as come.
    """
    return at_ms > 0 and not 0 < at_ms - now_ms <= longest_ms
