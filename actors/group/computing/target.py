"""From an assignment to the group's target: what is refused, and what is written.

An assignment is checked against the snapshot that it was computed from, and then cut to
the group as it is: the group may have moved on in between (PROTOCOL §5, Install).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ....events.group import Group
from ....events.model import NOTHING, Grants, Resource, Resources
from ....events.records import Loss, Record, ScheduledRebalance, TargetAssignment, Tombstone
from ...assignors.demands import demand_of, permitted_part
from ...backoff import Backoff
from ...messages.computing import LONGEST_WAIT_MS, SHORTEST_WAIT_MS, Assignment, Snapshot
from ..state.soft_state import GroupSettings
from ..state.validate import LARGEST_METADATA, LONGEST_INT, flaw_in_text


@dataclass(frozen=True, slots=True)
class Computed:
    """An assignment, what it was computed from, and by whom."""

    snapshot: Snapshot
    assignment: Assignment
    computed_by: str


def flaw_in(assignment: Assignment, snapshot: Snapshot) -> str:
    """Return what is wrong with an assignment of that snapshot, or nothing."""
    if found := _flaw_in_size(assignment):
        return found
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
    return (
        _flaw_in_demands(assignment, snapshot)
        or _flaw_in_parked(assignment.parked, snapshot)
        or _flaw_in_reasons(assignment)
        or _flaw_in_time(assignment.again_at_ms, snapshot.now_ms)
    )


def _flaw_in_size(assignment: Assignment) -> str:
    if len(assignment.metadata) > LARGEST_METADATA:
        return f"the assignor's metadata has more than {LARGEST_METADATA} bytes"
    beyond = next(_beyond(assignment), "")
    return f"{beyond} is beyond 64 bit" if beyond else ""


def _beyond(assignment: Assignment) -> Iterator[str]:
    """Yield which of the numbers are not encodable."""
    if assignment.version.bit_length() > LONGEST_INT:
        yield "the assignor's version"
    if assignment.again_at_ms.bit_length() > LONGEST_INT:
        yield "the time of the rest of the moves"
    for resource, deadline_ms in assignment.parked.items():
        if deadline_ms.bit_length() > LONGEST_INT:
            yield f"the deadline of {resource}"


def _flaw_in_demands(assignment: Assignment, snapshot: Snapshot) -> str:
    """Return what a member is given and may not run, by what the snapshot says, or nothing."""
    for member_id, share in sorted(assignment.members.items()):
        refused = share - permitted_part(snapshot, member_id, share)
        if refused:
            resource = min(refused)
            demand = demand_of(snapshot, resource)
            return f"{resource} is given to {member_id}, which does not meet: {demand}"
    return ""


def _flaw_in_parked(parked: Grants, snapshot: Snapshot) -> str:
    latest: dict[Resource, int] = {}
    for loss in snapshot.losses:
        for resource in loss.resources & parked.keys():
            known_ms = max(latest.get(resource, 0), snapshot.parked.get(resource, 0))
            latest[resource] = max(known_ms, loss.deadline_ms)
    for resource, deadline_ms in sorted(parked.items()):
        if resource not in latest:
            return f"{resource} is parked, but was not lost"
        if resource in snapshot.fired:
            return f"{resource} is parked again, but its deadline has passed"
        if deadline_ms <= 0:
            return f"{resource} is parked without a deadline"
        if deadline_ms > latest[resource]:
            beyond_ms = deadline_ms - latest[resource]
            return f"{resource} is parked for {beyond_ms} ms longer than its loss allows"
    return ""


def _flaw_in_reasons(assignment: Assignment) -> str:
    for resource, reason in sorted(assignment.unplaceable.items()):
        if not reason:
            return f"{resource} is unplaceable without a reason"
        if found := flaw_in_text(reason, f"the reason why {resource} is unplaceable"):
            return found
    return ""


def _flaw_in_time(again_at_ms: int, now_ms: int) -> str:
    """Return what is wrong with the time at which the rest of the moves is to be made."""
    if again_at_ms == 0 or SHORTEST_WAIT_MS <= again_at_ms - now_ms <= LONGEST_WAIT_MS:
        return ""
    bounds = f"{SHORTEST_WAIT_MS} to {LONGEST_WAIT_MS}"
    allowed = f"0, or {bounds} ms after the snapshot's {now_ms}"
    return f"the rest of the moves is to be made at {again_at_ms} ms: allowed is {allowed}"


def target_records(group: Group, computed: Computed, now_ms: int) -> Iterator[Record]:
    """Yield the target, what stays parked, and the losses that are made good by it."""
    snapshot, assignment = computed.snapshot, computed.assignment
    yield TargetAssignment(
        snapshot.group_epoch,
        _shares(group, snapshot, assignment.members),
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
    )
    parked = _parked(group, snapshot, assignment.parked)
    fired = group.schedule.fired.intersection(parked)
    schedule = ScheduledRebalance(parked, fired, assignment.again_at_ms)
    if schedule != group.schedule:
        yield schedule
    for loss in snapshot.losses:
        stands = group.losses.get(loss.member_id)
        is_same = stands is not None and stands.resources == loss.resources
        if is_same and loss.resources.isdisjoint(parked):
            yield Tombstone(Loss, (loss.member_id,))


def _shares(
    group: Group, snapshot: Snapshot, shares: Mapping[str, Resources]
) -> dict[str, Resources]:
    """Return what the members of now get: a member that replaced another gets its share."""
    found: dict[str, Resources] = {}
    for member_id, share in shares.items():
        seat = _seat_of(group, snapshot, member_id)
        if seat is not None:
            found[seat] = found.get(seat, NOTHING) | (share & group.configured)
    return found


def _seat_of(group: Group, snapshot: Snapshot, member_id: str) -> str | None:
    """Return the id of the member that has the seat of one in the snapshot; None if it has ended.

    A static member may have been replaced under another member id. A member that left and joined
    anew since then, be it with the same id, is another one.
    """
    instance_id = snapshot.members[member_id].instance_id
    seat = member_id
    if member_id not in group.members and instance_id is not None:
        seat = group.instances.get(instance_id, member_id)
    member = group.members.get(seat)
    if member is None or member.metadata.joined_epoch > snapshot.group_epoch:
        return None
    return seat


def _parked(group: Group, snapshot: Snapshot, parked: Grants) -> dict[Resource, int]:
    """Return what stays parked: what is still configured, by the deadline that holds now.

    Operators may have moved a loss's deadline since the snapshot; theirs is the later word.
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
        failures=failures,
        retry_at_ms=now_ms + backoff.pause(failures),
        time_ms=now_ms,
    )
