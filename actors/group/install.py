"""Prepare and Install: the chosen member fetches a snapshot and hands in a target.

The group may move on in between. What is installed is checked against the snapshot, and
becomes the target of the snapshot's group epoch (PROTOCOL §5).
"""

from collections.abc import Iterator
from dataclasses import replace

from ...events.group import Group, Member
from ...events.model import NOTHING, Resource, Resources
from ...events.records import Loss, Record, ScheduledRebalance, TargetAssignment, Tombstone
from ..messages import (
    Assignment,
    Error,
    Install,
    InstallReply,
    LossView,
    MemberView,
    Prepare,
    PrepareReply,
    Snapshot,
)
from .compute import commission
from .desk import Computation, Decision, Desk


def prepare(group: Group, desk: Desk, command: Prepare, now_ms: int) -> Decision:
    """Hand the chosen member the group as it is now; its time to compute runs on."""
    desk = commission(group, desk, now_ms)
    error, message = _refuse(group, desk, command)
    computation = desk.computation
    if error is not Error.NONE or computation is None:
        return Decision(desk, reply=PrepareReply(error, message))
    snapshot = _snapshot(group, computation, now_ms)
    desk = replace(desk, computation=replace(computation, snapshot=snapshot))
    return Decision(desk, reply=PrepareReply(Error.NONE, snapshot=snapshot))


def install(group: Group, desk: Desk, command: Install, now_ms: int) -> Decision:
    """Make what the chosen member computed the target, or record that it could not."""
    error, message = _refuse(group, desk, command)
    computation = desk.computation
    if error is not Error.NONE or computation is None:
        return Decision(desk, reply=InstallReply(error, message))
    snapshot = computation.snapshot
    if snapshot is None or snapshot.group_epoch != command.group_epoch:
        message = "the snapshot is gone: drop this computation, you will be asked again"
        return Decision(desk, reply=InstallReply(Error.UNKNOWN_MEMBER_ID, message))
    done = desk.without_computation()
    if command.assignment is None:
        failed = fail(group, done, snapshot.group_epoch, command.error or "no reason", now_ms)
        return replace(failed, reply=InstallReply(Error.NONE))
    if found := flaw_in(command.assignment, snapshot):
        failed = fail(group, done, snapshot.group_epoch, found, now_ms)
        return replace(failed, reply=InstallReply(Error.INVALID_ASSIGNMENT, found))
    done = replace(done, timed_out=frozenset())
    records = tuple(_target(group, computation, snapshot, command.assignment, now_ms))
    return Decision(done, records, InstallReply(Error.NONE))


def _refuse(group: Group, desk: Desk, command: Prepare | Install) -> tuple[Error, str]:
    if not command.group_id or not command.member_id or command.member_epoch < 0:
        return Error.INVALID_REQUEST, "ids must not be empty, and the epoch not below 0"
    if group.end == 0:
        return Error.GROUP_ID_NOT_FOUND, f"there is no group {command.group_id!r}"
    member = group.members.get(command.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID, f"{command.member_id} is no member"
    if member.current.member_epoch != command.member_epoch:
        message = f"the member is at epoch {member.current.member_epoch}: send it again with that"
        return Error.FENCED_MEMBER_EPOCH, message
    if desk.computation is None or desk.computation.member_id != command.member_id:
        message = "another member computes, or nobody needs to: drop this computation"
        return Error.UNKNOWN_MEMBER_ID, message
    return Error.NONE, ""


def _snapshot(group: Group, computation: Computation, now_ms: int) -> Snapshot:
    return Snapshot(
        group.group_epoch,
        group.assignment_epoch,
        computation.assignor,
        group.target.assignor_metadata,
        group.configured,
        {
            member_id: _view(group, member, computation.assignor)
            for member_id, member in group.members.items()
        },
        tuple(
            LossView(loss.member_id, loss.instance_id, loss.url, loss.resources, loss.deadline_ms)
            for loss in group.losses.values()
        ),
        group.schedule.parked,
        group.schedule.fired,
        now_ms,
    )


def _view(group: Group, member: Member, assignor: str) -> MemberView:
    metadata = member.metadata
    runs = next(each for each in metadata.assignors if each.name == assignor)
    return MemberView(
        member.member_id,
        member.current.member_epoch,
        metadata.instance_id,
        metadata.url,
        metadata.rack,
        runs.version,
        runs.reason,
        runs.metadata,
        frozenset(member.current.assigned),
        group.share_of(member.member_id),
        metadata.joined_epoch,
    )


def flaw_in(assignment: Assignment, snapshot: Snapshot) -> str:
    """Return what is wrong with an assignment of that snapshot, or nothing."""
    strangers = assignment.members.keys() - snapshot.members.keys()
    if strangers:
        return f"{min(strangers)} was no member in the snapshot"
    seen: set[Resource] = set()
    for share in (*assignment.members.values(), assignment.parked, assignment.unplaceable):
        if twice := seen.intersection(share):
            return f"{min(twice)} is placed twice"
        seen.update(share)
    if foreign := seen - snapshot.configured:
        return f"{min(foreign)} is not configured"
    if missing := snapshot.configured - seen:
        return f"{min(missing)} is neither assigned nor parked nor unplaceable"
    return _flaw_in_parked(assignment, snapshot)


def _flaw_in_parked(assignment: Assignment, snapshot: Snapshot) -> str:
    lost = NOTHING.union(*(loss.resources for loss in snapshot.losses))
    for resource, deadline_ms in assignment.parked.items():
        if resource not in lost:
            return f"{resource} is parked, but was not lost"
        if resource in snapshot.fired:
            return f"{resource} is parked again, but its deadline has passed"
        if deadline_ms <= 0:
            return f"{resource} is parked without a deadline"
    for resource, reason in assignment.unplaceable.items():
        if not reason:
            return f"{resource} is unplaceable without a reason"
    return ""


def _target(
    group: Group,
    computation: Computation,
    snapshot: Snapshot,
    assignment: Assignment,
    now_ms: int,
) -> Iterator[Record]:
    """Yield the target, what stays parked, and the losses that are made good by it."""
    yield TargetAssignment(
        snapshot.group_epoch,
        {
            member_id: share & group.configured
            for member_id, share in assignment.members.items()
            if _is_same_seat(group, member_id, snapshot.group_epoch)
        },
        computation.assignor,
        assignment.version,
        assignment.metadata,
        {
            resource: reason
            for resource, reason in assignment.unplaceable.items()
            if resource in group.configured
        },
        computation.member_id,
        now_ms,
    )
    parked = {r: due for r, due in assignment.parked.items() if r in group.configured}
    schedule = ScheduledRebalance(parked, group.schedule.fired.intersection(parked))
    if schedule != group.schedule:
        yield schedule
    for loss in snapshot.losses:
        stands = group.losses.get(loss.member_id)
        is_same = stands is not None and stands.resources == loss.resources
        if is_same and loss.resources.isdisjoint(parked):
            yield Tombstone(Loss, (loss.member_id,))


def _is_same_seat(group: Group, member_id: str, group_epoch: int) -> bool:
    """Tell whether the member of the snapshot is still there, and did not leave meanwhile."""
    member = group.members.get(member_id)
    return member is not None and member.metadata.joined_epoch <= group_epoch


def fail(group: Group, desk: Desk, group_epoch: int, error: str, now_ms: int) -> Decision:
    """Record a failed attempt: the old target stays, and the next try is spaced out."""
    failures = group.target.failures + 1
    settings = desk.settings
    delay_ms = min(
        settings.retry_backoff_ms << min(failures - 1, 10), settings.retry_backoff_max_ms
    )
    kept: dict[str, Resources] = {
        member_id: group.shares.get(member_id, NOTHING) & group.configured
        for member_id in group.shares
        if member_id in group.members
    }
    record = replace(
        group.target,
        assignment_epoch=group_epoch,
        members=kept,
        error=error,
        failures=failures,
        retry_at_ms=now_ms + delay_ms,
        time_ms=now_ms,
    )
    return Decision(desk, (record,))
