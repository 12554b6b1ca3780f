"""Prepare and Install: the chosen member fetches a snapshot and hands in a target.

The group may move on in between. What is installed is checked against the snapshot, and
becomes the target of the snapshot's group epoch (PROTOCOL §5).
"""

from dataclasses import replace

from ....events.group import Group
from ...messages.computing import Install, InstallReply, Prepare, PrepareReply
from ...messages.errors import Error
from ..state.soft_state import Decision, SoftState
from .snapshot import snapshot_of
from .target import Computed, failed_attempt, flaw_in, target_records

DROP = "drop this computation"
"""What is to be done where nothing of a computation can be of use any more."""

KEPT = "the target stays as it was: correct the assignor before the next attempt"
"""What becomes of the group after an assignment that is no good."""


def prepare(group: Group, soft: SoftState, command: Prepare, now_ms: int) -> Decision:
    """Hand the chosen member the group as it is now; its time to compute runs on.

    Asked again at the same group epoch it hands out the same snapshot, for the first answer may
    be on its way. At a later one it hands out a new snapshot, and drops what the old one leads to.
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
    """Make what the chosen member computed the target, or record that it could not."""
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
        return Decision(done, (record,), reply)
    done = replace(done, timed_out=frozenset())
    computed = Computed(snapshot, command.assignment, computation.member_id)
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
