"""Whose held heartbeats have news, told from records and indexes alone (PROTOCOL §3)."""

from collections.abc import Collection, Iterable

from ...events.group import Group
from ...events.records import (
    CurrentAssignment,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)


def affected(group: Group, records: Iterable[Record]) -> Collection[str]:
    """Return the ids of members whose heartbeat would lead to something else now.

    `group` is the group before the records. A new target concerns everybody; a step or a
    departure concerns the member itself and the heirs of what it lets go. Who is to
    compute is the soft state's to tell.
    """
    found: set[str] = set()
    for record in records:
        match record:
            case TargetAssignment():
                return group.members.keys()
            case CurrentAssignment(member_id):
                found.add(member_id)
                kept = record.assigned.keys() | record.pending.keys()
                found.update(_heirs(group, member_id, kept))
            case Tombstone(kind, (str() as member_id,)) if kind is MemberMetadata:
                found.add(member_id)
                found.update(_heirs(group, member_id, frozenset()))
            case _:
                pass
    return found


def _heirs(group: Group, member_id: str, kept: Collection[object]) -> Iterable[str]:
    """Yield who waits for what the member held and keeps no longer."""
    member = group.members.get(member_id)
    if member is None:
        return
    for grants in (member.current.assigned, member.current.pending):
        for resource in grants:
            if resource not in kept and (heir := group.target_owner.get(resource)):
                yield heir
