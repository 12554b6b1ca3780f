"""Which records may follow in a group's log; an illegal one is a bug, reported with its history.

Replay is tolerant, since a log that exists must load. The coordinator is not: it checks each record
against the group before it writes it, and never writes one that no legal history allows. The rules
are those of PROTOCOL §11 as far as one record can break them; a check costs as much as the fold of
the record.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ....events.group import Group
from ....events.model import MemberState, Why
from ....events.records import (
    ClassicGroup,
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from ...messages.members import JOIN_EPOCH, TEMPORARY_LEAVE_EPOCH

REMEMBERED: Final = 256
"""How many records are kept for the report."""

STORY_LENGTH: Final = 20
"""How many of them the report has: the last ones about the group or the member."""


class IllegalRecordError(Exception):
    """The rules led to an illegal record; nothing of the batch was written.

    The text ends with the records before it, and with the illegal one.
    """


class Legality:
    """Checks each record of one group, and keeps the latest ones for a report."""

    def __init__(self) -> None:
        self._last: deque[tuple[int, Record]] = deque(maxlen=REMEMBERED)
        """The last records, each with its log offset; targets without their assignment."""

    def check(self, group: Group, record: Record) -> None:
        """Check the record by which the group is about to evolve; raises `IllegalRecordError`."""
        kept = replace(record, members={}) if isinstance(record, TargetAssignment) else record
        self._last.append((group.end, kept))  # targets are too large to keep many of them
        if found := flaw(group, record):
            raise IllegalRecordError("\n".join([f"{found}; what led there:", *self._story(record)]))

    def _story(self, record: Record) -> list[str]:
        member_id = _member_of(record)
        concerned = [
            f"{offset} {_describe(each)}"
            for offset, each in self._last
            if _member_of(each) in {"", member_id}
        ]
        return concerned[-STORY_LENGTH:]


def flaw(group: Group, record: Record) -> str:
    """Return why the record may not follow in this group; "" if it may."""
    find = FLAWS.get(type(record))
    return find(group, record) if find else ""


def _in_bump(group: Group, record: GroupMetadata) -> str:
    if record.group_epoch != group.group_epoch + 1:
        return f"group epoch {record.group_epoch} cannot follow {group.group_epoch}"
    return ""


def _in_generation(group: Group, record: ClassicGroup) -> str:
    last = group.classic
    is_told_again = last is not None and last.generation == record.generation
    if last is None and record.cause.why is Why.GROUP_DOWNGRADED:
        is_told_again = record.generation == group.group_epoch  # its members know that epoch
    if not is_told_again and record.generation != group.group_epoch + 1:
        return f"generation {record.generation} cannot follow epoch {group.group_epoch}"
    if group.members:
        return f"generation {record.generation} of a group with members of the connect protocol"
    if record.members and record.leader not in {each.member_id for each in record.members}:
        return f"generation {record.generation} is led by {record.leader!r}, which is not in it"
    held = [each for member in record.members for each in (*member.assigned, *member.pending)]
    if len(held) > len({*held}):
        return f"generation {record.generation} gives a resource to two members"
    return ""


def _in_target(group: Group, record: TargetAssignment) -> str:
    epoch = record.assignment_epoch
    if not group.assignment_epoch < epoch <= group.group_epoch:
        between = f"{group.assignment_epoch} and group epoch {group.group_epoch}"
        return f"assignment epoch {epoch} is not behind {between}"
    if strangers := record.members.keys() - group.members.keys():
        return f"the target of epoch {epoch} has a share for {min(strangers)}, which is no member"
    placed = frozenset[object]().union(*record.members.values())
    if len(placed) < sum(map(len, record.members.values())):
        return f"the target of epoch {epoch} places a resource twice"
    return ""


def _in_member(group: Group, record: MemberMetadata) -> str:
    member_id, member = record.member_id, group.members.get(record.member_id)
    if group.classic is not None:
        return f"{member_id} joins a group of the classic protocol"
    if member is not None and member.metadata.joined_epoch != record.joined_epoch:
        was = member.metadata.joined_epoch
        return f"{member_id} joined for epoch {was} and cannot now for {record.joined_epoch}"
    is_new = member is None or member.metadata.instance_id != record.instance_id
    sitter = group.instances.get(record.instance_id) if record.instance_id and is_new else None
    if sitter is not None and sitter != member_id:
        return f"{member_id} cannot have the instance id of {sitter}"
    return ""


def _in_step(group: Group, record: CurrentAssignment) -> str:
    member_id, member = record.member_id, group.members.get(record.member_id)
    if member is None:
        return f"{member_id} takes a step and is no member"
    if record.member_epoch > group.target.assignment_epoch:
        return f"{member_id} is at {record.member_epoch}, beyond {group.target.assignment_epoch}"
    old = member.current
    if not _may_go(old.member_epoch, record.member_epoch):
        return f"{member_id} goes back from {old.member_epoch} to {record.member_epoch}"
    is_unrevoked = record.state is MemberState.UNREVOKED
    if is_unrevoked != bool(record.pending) or record.pending.keys() & record.assigned.keys():
        return f"{member_id} is {record.state.name} and does not give up what that says"
    held = (record.assigned.keys() | record.pending.keys()) - old.assigned.keys()
    for resource in held:  # what it was assigned before is its own
        if (holder := group.owner.get(resource, member_id)) != member_id:
            return f"{member_id} is to hold {resource}, which {holder} still holds"
    return ""


def _may_go(was: int, now: int) -> bool:
    """Return whether a member epoch may follow another; a static member may leave and return."""
    if now == TEMPORARY_LEAVE_EPOCH:
        return True
    return now >= was if was >= JOIN_EPOCH else now == JOIN_EPOCH


def _in_tombstone(group: Group, record: Tombstone) -> str:
    member = group.members.get(_member_of(record)) if record.kind is MemberMetadata else None
    if member is not None and (member.current.assigned or member.current.pending):
        return f"the seat of {member.member_id} cannot go before what it holds"
    return ""


def _in_loss(group: Group, record: Loss) -> str:
    is_new = record.member_id not in group.losses  # else only its deadline moves
    if is_new and record.member_id in group.members:
        return f"{record.member_id} is a member, and cannot be lost"
    return ""


FLAWS: Mapping[type, Callable[[Group, Any], str]] = {
    GroupMetadata: _in_bump,
    ClassicGroup: _in_generation,
    TargetAssignment: _in_target,
    MemberMetadata: _in_member,
    CurrentAssignment: _in_step,
    Tombstone: _in_tombstone,
    Loss: _in_loss,
}
"""The check for each kind of record; records of other kinds may come in any order."""


def _member_of(record: Record) -> str:
    """Return the id of the member that a record is about; "" if it is about the group."""
    if isinstance(record, Tombstone):
        of_members = record.kind in {MemberMetadata, CurrentAssignment, Loss}
        return str(record.key[0]) if of_members and record.key else ""
    return getattr(record, "member_id", "")


def _describe(record: Record) -> str:
    """Return a record in one line, without values of configs."""
    name = type(record).__name__
    if isinstance(record, GroupMetadata):
        return f"{name} {record.group_epoch}: {record.cause}"
    if isinstance(record, TargetAssignment):
        return f"{name} {record.assignment_epoch}{' failed' if record.error else ''}"
    if isinstance(record, CurrentAssignment):
        holds = " ".join(map(str, sorted(record.assigned)))
        gives_up = " ".join(map(str, sorted(record.pending)))
        return (
            f"{name} {record.member_id} {record.previous_epoch} -> {record.member_epoch}"
            f" {record.state.name} holds [{holds}] gives up [{gives_up}]"
        )
    if isinstance(record, Tombstone):
        return f"{name} {record.kind.__name__} {' '.join(map(str, record.key))}".rstrip()
    return f"{name} {_member_of(record)}".rstrip()
