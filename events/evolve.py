"""How a record changes a group. There is no other way to change one.

Replay accepts every sequence that compaction can leave behind: a step of a member whose
metadata comes later, tombstones of what was never seen, a target with shares of the
departed. `settle` ends a replay.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from .group import NO_SCHEDULE, NO_TARGET, NOT_STARTED, AssignorRange, Group, Member
from .model import NOTHING, ClientAssignor, MemberState, Resource, Scope, Succession
from .records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupConfiguration,
    GroupDeletion,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Operator,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)

K = TypeVar("K")


def evolve(group: Group, record: Record, offset: int) -> None:
    """Change the group as the record at this log offset tells."""
    group.end = offset + 1
    whole = group.log_shards.take(record)
    if type(whole) is CurrentAssignment:
        _step(group, whole, offset)
    elif whole is not None:
        EVOLVE[type(whole)](group, whole)


def replay(group: Group, records: Iterable[tuple[int, Record]]) -> Group:
    """Fold records, each with its log offset, into a group, and settle it."""
    for offset, record in records:
        evolve(group, record, offset)
    settle(group)
    return group


def settle(group: Group) -> None:
    """Forget the target's shares of members that are gone.

    A live fold has none. A compacted log can have them: the tombstone that dropped the
    share may be trimmed while the target record, which is older, stays.
    """
    for member_id in group.target_of.keys() - group.members.keys():
        _drop_share(group, member_id)


def _step(group: Group, record: CurrentAssignment, offset: int) -> None:
    member_id = record.member_id
    member = group.members.get(member_id)
    if member is None:
        metadata, old = MemberMetadata(member_id), NOT_STARTED
    else:
        metadata, old = member.metadata, member.current
        _count_stable(group, old, -1)
    _hold(group, member_id, old, record)
    stepped = group.members[member_id] = Member(metadata, record, offset)
    _count_stable(group, record, 1)
    if stepped.is_away and member_id not in group.away:
        group.away.add(member_id)
        _list_url(group, metadata, 1)
        _list_runner(group, metadata, -1)
    elif not stepped.is_away:
        _come_back(group, metadata)


def _come_back(group: Group, metadata: MemberMetadata) -> None:
    """Take note that a member is there, if it was away."""
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


def _count_stable(group: Group, current: CurrentAssignment, change: int) -> None:
    if current.state is not MemberState.STABLE:
        return
    _count(group.stable_at, current.member_epoch, change)


def _seat(group: Group, record: MemberMetadata) -> None:
    member = group.members.get(record.member_id)
    if member is None:
        unstarted = replace(NOT_STARTED, member_id=record.member_id)
        group.members[record.member_id] = Member(record, unstarted)
        _count_stable(group, NOT_STARTED, 1)
    else:
        _index(group, member.metadata, -1)
        group.members[record.member_id] = replace(member, metadata=record)
    _index(group, record, 1)
    known = member.metadata if member else MemberMetadata(record.member_id)
    if record.member_id in group.away:
        _list_url(group, known, -1)
        _list_url(group, record, 1)
    elif record.assignors != known.assignors:
        _list_runner(group, known, -1)
        _list_runner(group, record, 1)
    if record.joined_epoch > group.assignment_epoch:
        _drop_share(group, record.member_id)
    elif record.succession is not None:
        _inherit(group, record.member_id, record.succession)


def _index(group: Group, metadata: MemberMetadata, change: int) -> None:
    """Count what a member says of itself in, or out."""
    for each in metadata.assignors:
        _count(group.assignor_ranges, _range_of(each), change)
    if metadata.assignors:
        _count(group.ballots, tuple(each.name for each in metadata.assignors), change)
    if metadata.server_assignor is not None:
        _count(group.server_choices, metadata.server_assignor, change)
    if metadata.instance_id is not None:
        if change > 0:
            group.instances[metadata.instance_id] = metadata.member_id
        elif group.instances.get(metadata.instance_id) == metadata.member_id:
            del group.instances[metadata.instance_id]


def _list_url(group: Group, metadata: MemberMetadata, change: int) -> None:
    """Put who is away into the list of urls, or take it out of that."""
    entry = (metadata.url, metadata.member_id)
    if change > 0:
        insort(group.away_urls, entry)
    else:
        del group.away_urls[bisect_left(group.away_urls, entry)]


def _list_runner(group: Group, metadata: MemberMetadata, change: int) -> None:
    """Put who can run assignors into their lists, or take it out of them."""
    for each in metadata.assignors:
        entry = (_range_of(each), metadata.member_id)
        if change > 0:
            insort(group.runners, entry)
        else:
            del group.runners[bisect_left(group.runners, entry)]


def _range_of(assignor: ClientAssignor) -> AssignorRange:
    return assignor.name, assignor.minimum_version, assignor.maximum_version, assignor.version


def _count(counts: dict[K, int], key: K, change: int) -> None:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)


def _aim(group: Group, record: TargetAssignment) -> None:
    group.target = record
    group.target_of = dict(record.members)
    group.target_owner = {
        resource: member_id for member_id, share in record.members.items() for resource in share
    }


def _drop_share(group: Group, member_id: str) -> None:
    for resource in group.target_of.pop(member_id, NOTHING):
        if group.target_owner.get(resource) == member_id:
            del group.target_owner[resource]


def _inherit(group: Group, member_id: str, succession: Succession) -> None:
    """Give a static member that came back what the target means for its seat.

    The target is one record for the whole group, and is not written anew for one seat. So
    the share is read from it under the name that the seat had, in whatever order compaction
    leaves the records; a target that came later knows the seat by its new name.
    """
    target_id = succession.target_id
    if group.assignment_epoch > succession.assignment_epoch:
        return
    if target_id != member_id:  # it may have left and come back into another's seat
        _drop_share(group, member_id)
    if target_id in group.target.members:
        _drop_share(group, target_id)
        share = group.target_of[member_id] = group.target.members[target_id]
        group.target_owner.update(dict.fromkeys(share, member_id))


def _schedule(group: Group, record: ScheduledRebalance) -> None:
    group.schedule = record
    waiting = [due for resource, due in record.parked.items() if resource not in record.fired]
    group.next_deadline_ms = min(waiting, default=None)


def _bump(group: Group, record: GroupMetadata) -> None:
    group.group_epoch, group.bump = record.group_epoch, record


def _delete(group: Group, record: GroupDeletion) -> None:
    """End a life of the group; the tombstones that follow bury what is in it."""
    group.deletion = record
    group.group_epoch = max(group.group_epoch, record.group_epoch)


def _configure(group: Group, record: ConnectorsTasksMetadata) -> None:
    group.configured = record.configured


def _connector(group: Group, record: ConnectorConfig) -> None:
    group.connectors[record.connector] = record


def _split(group: Group, record: TaskConfigs) -> None:
    group.task_configs[record.connector] = record


def _report(group: Group, record: TaskStatus) -> None:
    group.statuses[record.resource] = record


def _lose(group: Group, record: Loss) -> None:
    _make_good(group, record.member_id)
    group.losses[record.member_id] = record
    insort(group.loss_deadlines, (record.deadline_ms, record.member_id))


def _make_good(group: Group, member_id: str) -> None:
    loss = group.losses.pop(member_id, None)
    if loss is not None:
        del group.loss_deadlines[bisect_left(group.loss_deadlines, (loss.deadline_ms, member_id))]


def _set(group: Group, record: GroupConfiguration) -> None:
    group.configs = record.configs


def _order(group: Group, record: Operator) -> None:
    if record.scope is Scope.WORKER:
        group.worker_orders[record.name] = record
    else:
        group.resource_orders[Resource(record.name, record.task)] = record


def _bury(group: Group, tombstone: Tombstone) -> None:
    kind, key = tombstone.kind, tombstone.key
    first = str(key[0]) if key else ""
    if kind is CurrentAssignment:
        _release(group, first)
    elif kind is MemberMetadata:
        _unseat(group, first)
    elif kind is ConnectorConfig:
        group.connectors.pop(first, None)
    elif kind is TaskConfigs:
        group.task_configs.pop(first, None)
    elif kind is TaskStatus:
        group.statuses.pop(Resource(first, int(key[1])), None)
    elif kind is Loss:
        _make_good(group, first)
    elif kind is Operator:
        _countermand(group, *key)
    else:
        _bury_single(group, kind)


def _countermand(group: Group, scope: str | int, name: str | int, task: str | int) -> None:
    if scope == Scope.WORKER.value:
        group.worker_orders.pop(str(name), None)
    else:
        group.resource_orders.pop(Resource(str(name), int(task)), None)


def _bury_single(group: Group, kind: type) -> None:
    """End a fact that a group has but one of; they go when the group is deleted."""
    if kind is TargetAssignment:
        _aim(group, NO_TARGET)
    elif kind is ScheduledRebalance:
        _schedule(group, NO_SCHEDULE)
    elif kind is ConnectorsTasksMetadata:
        group.configured = NOTHING
    elif kind is GroupConfiguration:
        group.configs = {}
    elif kind is GroupMetadata:
        group.group_epoch = group.deletion.group_epoch if group.deletion else 0
        group.bump = None


def _release(group: Group, member_id: str) -> None:
    member = group.members.get(member_id)
    if member is not None and member.offset >= 0:
        _count_stable(group, member.current, -1)
        _hold(group, member_id, member.current, NOT_STARTED)
        _come_back(group, member.metadata)
        group.members[member_id] = Member(
            member.metadata, replace(NOT_STARTED, member_id=member_id)
        )
        _count_stable(group, NOT_STARTED, 1)


def _unseat(group: Group, member_id: str) -> None:
    _release(group, member_id)
    member = group.members.pop(member_id, None)
    if member is not None:
        _count_stable(group, NOT_STARTED, -1)
        _index(group, member.metadata, -1)
        _list_runner(group, member.metadata, -1)
    _drop_share(group, member_id)


EVOLVE: dict[type, Callable[[Group, Any], None]] = {
    GroupMetadata: _bump,
    ConnectorsTasksMetadata: _configure,
    MemberMetadata: _seat,
    TargetAssignment: _aim,
    ConnectorConfig: _connector,
    TaskConfigs: _split,
    TaskStatus: _report,
    ScheduledRebalance: _schedule,
    GroupConfiguration: _set,
    GroupDeletion: _delete,
    Operator: _order,
    Loss: _lose,
    Tombstone: _bury,
}
"""By kind; a record of the offset log has no place here and raises KeyError."""
