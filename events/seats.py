"""How the records of members change a group, and the indexes over its members with it.

Replay accepts every sequence that compaction can leave behind: a step of a member whose
metadata comes later, and tombstones of what was never seen.
"""

from bisect import bisect_left, insort
from dataclasses import replace
from typing import TypeVar

from . import folds
from .group import NOT_STARTED, AssignorRange, Group, Member
from .model import ClientAssignor, MemberState
from .records import CurrentAssignment, MemberMetadata

K = TypeVar("K")


def seat_member(group: Group, record: MemberMetadata) -> None:
    """Add a member, or set its new metadata."""
    member = group.members.get(record.member_id)
    if member is None:
        unstarted = replace(NOT_STARTED, member_id=record.member_id)
        group.members[record.member_id] = Member(record, unstarted)
        _count_stable(group, NOT_STARTED, 1)
    else:
        _index(group, member.metadata, -1)
        group.members[record.member_id] = replace(member, metadata=record)
    _index(group, record, 1)
    if record.classic is None:
        group.translated.discard(record.member_id)
    else:
        group.translated.add(record.member_id)
    known = member.metadata if member else MemberMetadata(record.member_id)
    if record.member_id in group.away:
        _list_url(group, known, -1)
        _list_url(group, record, 1)
    elif record.assignors != known.assignors:
        _list_runner(group, known, -1)
        _list_runner(group, record, 1)
    if record.joined_epoch > group.assignment_epoch:
        folds.drop_share(group, record.member_id)
    elif record.succession is not None:
        folds.inherit_share(group, record.member_id, record.succession)


def unseat_member(group: Group, member_id: str) -> None:
    """End a member's seat, with its step and its share of the target."""
    release_member(group, member_id)
    member = group.members.pop(member_id, None)
    if member is not None:
        _count_stable(group, NOT_STARTED, -1)
        _index(group, member.metadata, -1)
        _list_runner(group, member.metadata, -1)
        group.translated.discard(member_id)
    folds.drop_share(group, member_id)


def take_step(group: Group, record: CurrentAssignment) -> None:
    """Let a member hold what its step says; the record's offset tags the step."""
    member_id = record.member_id
    member = group.members.get(member_id)
    if member is None:
        metadata, old = MemberMetadata(member_id), NOT_STARTED
    else:
        metadata, old = member.metadata, member.current
        _count_stable(group, old, -1)
    _hold(group, member_id, old, record)
    stepped = group.members[member_id] = Member(metadata, record, group.end - 1)
    _count_stable(group, record, 1)
    if stepped.is_away and member_id not in group.away:
        group.away.add(member_id)
        _list_url(group, metadata, 1)
        _list_runner(group, metadata, -1)
    elif not stepped.is_away:
        _come_back(group, metadata)


def release_member(group: Group, member_id: str) -> None:
    """Take from a member all that it held: its steps are buried."""
    member = group.members.get(member_id)
    if member is not None and member.offset >= 0:
        _count_stable(group, member.current, -1)
        _hold(group, member_id, member.current, NOT_STARTED)
        _come_back(group, member.metadata)
        group.members[member_id] = Member(
            member.metadata, replace(NOT_STARTED, member_id=member_id)
        )
        _count_stable(group, NOT_STARTED, 1)


def _come_back(group: Group, metadata: MemberMetadata) -> None:
    """Count a member among those that are there, if it was away."""
    if metadata.member_id in group.away:
        group.away.discard(metadata.member_id)
        _list_url(group, metadata, -1)
        _list_runner(group, metadata, 1)


def _hold(group: Group, member_id: str, old: CurrentAssignment, new: CurrentAssignment) -> None:
    """Keep up the owner map: first the old entries go, then the new ones come."""
    owner = group.owner
    for grants in (old.assigned, old.pending):
        for resource in grants:
            if owner.get(resource) == member_id:
                del owner[resource]
    for grants in (new.assigned, new.pending):
        for resource in grants:
            owner[resource] = member_id


def _index(group: Group, metadata: MemberMetadata, change: int) -> None:
    """Count in what a member says of itself (`change` 1), or out (-1)."""
    for each in metadata.assignors:
        _count(group.assignor_ranges, _range_of(each), change)
    if metadata.assignors:
        _count(group.ballots, tuple(each.name for each in metadata.assignors), change)
    if metadata.server_assignor is not None:
        _count(group.server_choices, metadata.server_assignor, change)
    if metadata.classic is not None:
        group.metadata_bytes += change * sum(each.size for each in metadata.classic.protocols)
    if metadata.instance_id is not None:
        if change > 0:
            group.instances[metadata.instance_id] = metadata.member_id
        elif group.instances.get(metadata.instance_id) == metadata.member_id:
            del group.instances[metadata.instance_id]


def _list_url(group: Group, metadata: MemberMetadata, change: int) -> None:
    """Put a member that is away into the list of urls (`change` 1), or take it out (-1)."""
    entry = (metadata.url, metadata.member_id)
    if change > 0:
        insort(group.away_urls, entry)
    else:
        del group.away_urls[bisect_left(group.away_urls, entry)]


def _list_runner(group: Group, metadata: MemberMetadata, change: int) -> None:
    """Put a member into the lists of the assignors it can run (`change` 1), or take it out (-1)."""
    for each in metadata.assignors:
        entry = (_range_of(each), metadata.member_id)
        if change > 0:
            insort(group.runners, entry)
        else:
            del group.runners[bisect_left(group.runners, entry)]


def _range_of(assignor: ClientAssignor) -> AssignorRange:
    return assignor.name, assignor.minimum_version, assignor.maximum_version, assignor.version


def _count_stable(group: Group, current: CurrentAssignment, change: int) -> None:
    if current.state is not MemberState.STABLE:
        return
    _count(group.stable_at, current.member_epoch, change)


def _count(counts: dict[K, int], key: K, change: int) -> None:
    """Change a count; those of nobody are not kept."""
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
