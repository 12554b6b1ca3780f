"""COMPUTE_ASSIGNMENT, Prepare, Install: the chosen member computes a target and installs it.

It fetches a snapshot, and the group may change before it is done. What it installs is validated
against that snapshot, and becomes the target of the snapshot's group epoch (PROTOCOL §5).
"""

from collections.abc import Iterator
from dataclasses import replace

from ....events.group import Group
from ....events.model import Grants, Resource
from ...assignors.demands import demand_of, part_met_by
from ...messages.computing import (
    LONGEST_WAIT_MS,
    SHORTEST_WAIT_MS,
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from ...messages.errors import Error
from ..state.soft_state import Decision, SoftState
from ..state.validate import LARGEST_DATA, LARGEST_METADATA, LONGEST_INT, flaw_in_text
from .snapshot import snapshot_of
from .target import ComputedAssignment, failed_attempt, target_records

DROP = "drop this computation"
"""What a member has to do if its computation is of no use any more."""

KEPT = "the target stays as it was: correct the assignor before the next attempt"
"""What happens after an invalid assignment."""


def prepare(group: Group, soft: SoftState, command: Prepare, now_ms: int) -> Decision:
    """Send the chosen member a snapshot of the group; its timeout continues.

    A second Prepare at the same group epoch gets the same snapshot, since the first answer may be
    on its way. At a later epoch it gets a new one, and an Install of the old one is refused.
    """
    error, message = _refuse(group, soft, command)
    computation = soft.computation
    if error is not Error.NONE or computation is None:
        return Decision(soft, reply=PrepareReply(error, message))
    snapshot = computation.snapshot
    if snapshot is None or snapshot.group_epoch != group.group_epoch:
        snapshot_id = f"{soft.coordinator_epoch}/{computation.number}/{group.group_epoch}"
        snapshot = snapshot_of(group, computation.assignor, now_ms, snapshot_id)
        soft = replace(soft, computation=replace(computation, snapshot=snapshot))
    return Decision(soft, reply=PrepareReply(Error.NONE, snapshot=snapshot))


def install(group: Group, soft: SoftState, command: Install, now_ms: int) -> Decision:
    """Make the chosen member's assignment the target, or record a failed attempt."""
    error, message = _refuse(group, soft, command)
    computation = soft.computation
    if error is not Error.NONE or computation is None:
        return Decision(soft, reply=InstallReply(error, message))
    snapshot = computation.snapshot
    if snapshot is None or not snapshot.is_named(command.group_epoch, command.snapshot_id):
        message = f"the snapshot is gone: {DROP}, and compute when you are asked again"
        return Decision(soft, reply=InstallReply(Error.UNKNOWN_MEMBER_ID, message))
    done = soft.without_computation()
    if command.assignment is None:
        found, reply = command.error or "no reason", InstallReply(Error.NONE)
    else:
        found = flaw_in(command.assignment, snapshot)
        reply = InstallReply(Error.INVALID_ASSIGNMENT, f"{found}; {KEPT}")
    if command.assignment is None or found:
        record = failed_attempt(group, soft.settings, snapshot.group_epoch, found, now_ms)
        return Decision(done, (replace(record, error_code=command.error_code),), reply)
    done = replace(done, timed_out=frozenset())
    computed = ComputedAssignment(snapshot, command.assignment, computation.member_id)
    return Decision(done, tuple(target_records(group, computed, now_ms)), InstallReply(Error.NONE))


def _refuse(group: Group, soft: SoftState, command: Prepare | Install) -> tuple[Error, str]:
    if not command.group_id or not command.member_id or command.member_epoch < 0:
        message = "GroupId or MemberId is empty, or MemberEpoch below 0; nothing was changed"
        return Error.INVALID_REQUEST, message
    if not group.exists:
        return Error.GROUP_ID_NOT_FOUND, f"there is no group {command.group_id!r}: {DROP}"
    member = group.members.get(command.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID, f"{command.member_id} is no member: {DROP}"
    if member.current.member_epoch != command.member_epoch:
        message = f"the member is at epoch {member.current.member_epoch}: send it again with that"
        return Error.FENCED_MEMBER_EPOCH, message
    if soft.computation is None or soft.computation.member_id != command.member_id:
        message = f"another member computes, or nobody needs to: {DROP}"
        return Error.UNKNOWN_MEMBER_ID, message
    return Error.NONE, ""


def flaw_in(assignment: Assignment, snapshot: Snapshot) -> str:
    """Return what is wrong with an assignment for a snapshot; "" if none."""
    if flaw := _flaw_in_size(assignment):
        return flaw
    strangers = {*assignment.members, *assignment.data} - snapshot.members.keys()
    if strangers:
        return f"{min(strangers)} was no member in the snapshot"
    placed: set[Resource] = set()
    for share in (*assignment.members.values(), assignment.parked, assignment.unplaceable):
        if twice := placed.intersection(share):
            return f"{min(twice)} is placed twice"
        placed.update(share)
    if foreign := placed - snapshot.configured:
        return f"{min(foreign)} is not configured"
    if missing := snapshot.configured - placed:
        return f"{min(missing)} is neither assigned nor parked nor unplaceable"
    return (
        _flaw_in_demands(assignment, snapshot)
        or _flaw_in_subscriptions(assignment, snapshot)
        or _flaw_in_parked(assignment.parked, snapshot)
        or _flaw_in_reasons(assignment)
        or _flaw_in_time(assignment.again_at_ms, snapshot.now_ms)
    )


def _flaw_in_size(assignment: Assignment) -> str:
    if len(assignment.metadata) > LARGEST_METADATA:
        return f"the assignor's metadata has more than {LARGEST_METADATA} bytes"
    for member_id, said in assignment.data.items():
        if len(said.metadata) > LARGEST_METADATA:
            return f"the metadata for {member_id} has more than {LARGEST_METADATA} bytes"
    if sum(len(said.metadata) for said in assignment.data.values()) > LARGEST_DATA:
        return f"the metadata for all members have more than {LARGEST_DATA} bytes together"
    beyond = next(_find_unencodable(assignment), "")
    return f"{beyond} is beyond 64 bit" if beyond else ""


def _find_unencodable(assignment: Assignment) -> Iterator[str]:
    """Yield which of the numbers are not encodable."""
    if assignment.version.bit_length() > LONGEST_INT:
        yield "the assignor's version"
    for member_id, said in assignment.data.items():
        if said.version.bit_length() > LONGEST_INT:
            yield f"the version for {member_id}"
    if assignment.again_at_ms.bit_length() > LONGEST_INT:
        yield "the time of the rest of the moves"
    for resource, deadline_ms in assignment.parked.items():
        if deadline_ms.bit_length() > LONGEST_INT:
            yield f"the deadline of {resource}"


def _flaw_in_demands(assignment: Assignment, snapshot: Snapshot) -> str:
    """Return a resource whose demand its new member does not meet; "" if there is none."""
    for member_id, share in sorted(assignment.members.items()):
        refused = share - part_met_by(snapshot, member_id, share)
        if refused:
            resource = min(refused)
            demand = demand_of(snapshot, resource)
            return f"{resource} is given to {member_id}, which does not meet: {demand}"
    return ""


def _flaw_in_subscriptions(assignment: Assignment, snapshot: Snapshot) -> str:
    """Return a partition of a topic to which the member that gets it does not subscribe."""
    for member_id, share in sorted(assignment.members.items()):
        topics = snapshot.members[member_id].topics
        unwanted = (
            () if topics is None else [each for each in share if each.connector not in topics]
        )
        if unwanted:
            return f"{min(unwanted)} is given to {member_id}, which does not subscribe to its topic"
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
    """Return what is wrong with the time of the deferred moves; "" if none."""
    if again_at_ms == 0 or SHORTEST_WAIT_MS <= again_at_ms - now_ms <= LONGEST_WAIT_MS:
        return ""
    bounds = f"{SHORTEST_WAIT_MS} to {LONGEST_WAIT_MS}"
    allowed = f"0, or {bounds} ms after the snapshot's {now_ms}"
    return f"the rest of the moves is to be made at {again_at_ms} ms: allowed is {allowed}"
