"""The effect of each record on a group, and of its tombstone.

The catalogue assigns them to the records. A fold takes the record, a burial the parts of the
tombstone's key. Each also keeps up the indexes over what it changes: owners, counts, lists of
members that are away. They are never stored, so a fold changes them by what differs, and never
counts anew.

Replay accepts every sequence that compaction can leave behind: tombstones without an earlier
value, a target with shares of removed members, a step of a member whose metadata comes later.
"""

from bisect import bisect_left, insort
from dataclasses import replace
from typing import TypeVar

from .group import NO_SCHEDULE, NO_TARGET, NOT_STARTED, AssignorRange, Group, Member
from .model import (
    CONNECT,
    NOTHING,
    ClassicMember,
    ClientAssignor,
    MemberState,
    Resource,
    Scope,
    Succession,
)
from .records import (
    ClassicGroup,
    ConnectorConfig,
    ConnectorsTasksMetadata,
    ConsumerSubscription,
    CurrentAssignment,
    GroupConfiguration,
    GroupDeletion,
    GroupMetadata,
    Loss,
    MemberMetadata,
    OffsetsAltered,
    Operator,
    OwnerBegan,
    OwnerResigned,
    ScheduledRebalance,
    SubscribedTopics,
    TargetAssignment,
    TargetState,
    TaskConfigs,
    TaskStatus,
)

K = TypeVar("K")


def raise_epoch(group: Group, record: GroupMetadata) -> None:
    """Set the group epoch, and why it rose."""
    group.group_epoch, group.bump = record.group_epoch, record


def drop_epoch(group: Group) -> None:
    """Remove the epoch bump; the epoch is then that of the group's last deletion, if any."""
    group.group_epoch = group.deletion.group_epoch if group.deletion else 0
    group.bump = None


def set_ownership(group: Group, record: OwnerBegan | OwnerResigned) -> None:
    """Set which node owns the group, or gave it up."""
    group.ownership = record


def set_generation(group: Group, record: ClassicGroup) -> None:
    """Set the generation of classic members; it is a group epoch like any other."""
    drop_generation(group)
    group.classic, group.group_epoch = record, record.generation
    if record.protocol_type == CONNECT:
        for each in record.members:
            group.classic_members[each.member_id] = _seat_of(record.generation, each)
            group.owner.update(dict.fromkeys((*each.assigned, *each.pending), each.member_id))


def drop_generation(group: Group) -> None:
    """Remove the last generation.

    The group epoch stays for the rest of the batch, which raises it or buries it as well.
    """
    group.classic = None
    for member_id, member in group.classic_members.items():
        for resource in (*member.current.assigned, *member.current.pending):
            if group.owner.get(resource) == member_id:
                del group.owner[resource]
    group.classic_members.clear()


def _seat_of(generation: int, member: ClassicMember) -> Member:
    """Return a classic worker as a member whose epoch is the generation."""
    returns = Succession(member.returns, member.member_id, generation) if member.returns else None
    metadata = MemberMetadata(
        member.member_id,
        joined_epoch=generation,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        instance_id=member.instance_id,
        url=member.url,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        succession=returns,
    )
    state = MemberState.UNREVOKED if member.pending else MemberState.STABLE
    epochs = generation, generation - 1
    held = member.assigned, member.pending
    return Member(metadata, CurrentAssignment(member.member_id, *epochs, state, *held))


def delete_group(group: Group, record: GroupDeletion) -> None:
    """Delete the group; the tombstones that follow bury its records."""
    group.deletion = record
    group.group_epoch = max(group.group_epoch, record.group_epoch)


def set_configs(group: Group, record: GroupConfiguration) -> None:
    """Set the group's own settings."""
    group.configs = record.configs


def drop_configs(group: Group) -> None:
    """Drop the group's own settings."""
    group.configs = {}


def set_target(group: Group, record: TargetAssignment) -> None:
    """Set the target: the resources assigned to each member."""
    group.target = record
    group.target_of = dict(record.members)
    group.target_owner = {
        resource: member_id for member_id, share in record.members.items() for resource in share
    }


def drop_target(group: Group) -> None:
    """Drop the target."""
    set_target(group, NO_TARGET)


def drop_share(group: Group, member_id: str) -> None:
    """Drop a member's share of the target."""
    for resource in group.target_of.pop(member_id, NOTHING):
        if group.target_owner.get(resource) == member_id:
            del group.target_owner[resource]


def inherit_share(group: Group, member_id: str, succession: Succession) -> None:
    """Assign a returned static member the target's share for its seat.

    The target is one record for the whole group, and is not written again for one seat. So the
    share is read from it under the member id that the seat had then, in whatever order compaction
    leaves the records; a later target has the seat under its new member id.
    """
    target_id = succession.target_id
    if group.assignment_epoch > succession.assignment_epoch:
        return
    if target_id != member_id:  # it may have left and come back into another's seat
        drop_share(group, member_id)
    if target_id in group.target.members:
        if not _has_share_of_another(group, target_id):
            drop_share(group, target_id)
        share = group.target_of[member_id] = group.target.members[target_id]
        group.target_owner.update(dict.fromkeys(share, member_id))


def _has_share_of_another(group: Group, member_id: str) -> bool:
    """Return whether a member has the share of another seat, which it took over from its own."""
    member = group.members.get(member_id)
    succession = member.metadata.succession if member else None
    if succession is None or succession.target_id == member_id:
        return False
    return succession.assignment_epoch >= group.assignment_epoch


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
    before = member.metadata if member else MemberMetadata(record.member_id)
    if record.member_id in group.away:
        _list_url(group, before, -1)
        _list_url(group, record, 1)
    elif record.assignors != before.assignors:
        _list_runner(group, before, -1)
        _list_runner(group, record, 1)
    if record.joined_epoch > group.assignment_epoch:
        drop_share(group, record.member_id)
    elif record.succession is not None:
        inherit_share(group, record.member_id, record.succession)


def unseat_member(group: Group, member_id: str) -> None:
    """Remove a member, with its step and its share of the target."""
    release_member(group, member_id)
    member = group.members.pop(member_id, None)
    if member is not None:
        _count_stable(group, NOT_STARTED, -1)
        _index(group, member.metadata, -1)
        _list_runner(group, member.metadata, -1)
        group.translated.discard(member_id)
    drop_share(group, member_id)


def set_step(group: Group, record: CurrentAssignment) -> None:
    """Set a member's step, and with it its grants; the record's offset tags the step."""
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
    """Drop all grants of a member, whose step is deleted."""
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
    """Count a member as present again, if it was away."""
    if metadata.member_id in group.away:
        group.away.discard(metadata.member_id)
        _list_url(group, metadata, -1)
        _list_runner(group, metadata, 1)


def _hold(group: Group, member_id: str, old: CurrentAssignment, new: CurrentAssignment) -> None:
    """Update the owner map: remove the old entries, then add the new ones."""
    owner = group.owner
    for grants in (old.assigned, old.pending):
        for resource in grants:
            if owner.get(resource) == member_id:
                del owner[resource]
    for grants in (new.assigned, new.pending):
        for resource in grants:
            owner[resource] = member_id


def _index(group: Group, metadata: MemberMetadata, change: int) -> None:
    """Add a member's metadata to the indexes (`change` 1), or remove it (-1)."""
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
    """Add a member that is away to the index by url (`change` 1), or remove it (-1)."""
    entry = (metadata.url, metadata.member_id)
    if change > 0:
        insort(group.away_urls, entry)
    else:
        del group.away_urls[bisect_left(group.away_urls, entry)]


def _list_runner(group: Group, metadata: MemberMetadata, change: int) -> None:
    """Add a member to the index of the assignors it can run (`change` 1), or remove it (-1)."""
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
    """Change a count; a count of 0 is removed."""
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)


def set_schedule(group: Group, record: ScheduledRebalance) -> None:
    """Set the schedule of a target: parked work and deferred moves."""
    group.schedule = record
    waiting = [due for resource, due in record.parked.items() if resource not in record.fired]
    group.next_deadline_ms = min(waiting, default=None)


def drop_schedule(group: Group) -> None:
    """Remove the schedule of a target."""
    set_schedule(group, NO_SCHEDULE)


def put_loss(group: Group, record: Loss) -> None:
    """Add the loss of a member, with its deadline."""
    drop_loss(group, record.member_id)
    group.losses[record.member_id] = record
    insort(group.loss_deadlines, (record.deadline_ms, record.member_id))


def drop_loss(group: Group, member_id: str) -> None:
    """Drop the loss of a member."""
    loss = group.losses.pop(member_id, None)
    if loss is not None:
        del group.loss_deadlines[bisect_left(group.loss_deadlines, (loss.deadline_ms, member_id))]


def set_configured(group: Group, record: ConnectorsTasksMetadata) -> None:
    """Set the configured connectors and tasks."""
    group.configured, group.configured_offset = record.configured, group.end - 1
    group.config_offset = record.config_offset


def drop_configured(group: Group) -> None:
    """Drop the configured connectors and tasks."""
    group.configured, group.configured_offset = NOTHING, -1
    group.config_offset = -1


def set_topics(group: Group, record: SubscribedTopics) -> None:
    """Set the subscribed topics, whose partitions are the configured resources."""
    group.topics = record.topics
    group.released_topics = frozenset(
        name for name, topic in record.topics.items() if topic.is_released
    )
    group.configured = frozenset(
        Resource(name, partition)
        for name, topic in record.topics.items()
        if not topic.is_released
        for partition in range(topic.partitions)
    )


def drop_topics(group: Group) -> None:
    """Remove the subscribed topics: the group has no consumers any more."""
    if group.topics is not None:
        group.topics, group.configured, group.released_topics = None, NOTHING, frozenset()


def put_subscription(group: Group, record: ConsumerSubscription) -> None:
    """Set a consumer's subscription."""
    drop_subscription(group, record.member_id)
    group.subscriptions[record.member_id] = record
    _count_subscribers(group, record, 1)


def drop_subscription(group: Group, member_id: str) -> None:
    """Drop a consumer's subscription."""
    record = group.subscriptions.pop(member_id, None)
    if record is not None:
        _count_subscribers(group, record, -1)


def _count_subscribers(group: Group, record: ConsumerSubscription, change: int) -> None:
    group.metadata_bytes += change * (sum(map(len, record.names)) + len(record.pattern))
    for topic in record.topics:
        count = group.subscribers.get(topic, 0) + change
        group.subscribers[topic] = count
        if not count:
            del group.subscribers[topic]


def put_connector(group: Group, record: ConnectorConfig) -> None:
    """Set a connector's config."""
    group.connectors[record.connector] = record


def drop_connector(group: Group, connector: str) -> None:
    """Drop a connector's config."""
    group.connectors.pop(connector, None)


def put_task_configs(group: Group, record: TaskConfigs) -> None:
    """Set a connector's task configs."""
    group.task_configs[record.connector] = record


def drop_task_configs(group: Group, connector: str) -> None:
    """Drop a connector's task configs."""
    group.task_configs.pop(connector, None)


def put_target_state(group: Group, record: TargetState) -> None:
    """Set a connector's target state."""
    group.target_states[record.connector] = record


def drop_target_state(group: Group, connector: str) -> None:
    """Drop a connector's target state, which is RUNNING then."""
    group.target_states.pop(connector, None)


def put_offset_change(group: Group, record: OffsetsAltered) -> None:
    """Set the last change of a connector's offsets by people."""
    group.offset_changes[record.connector] = record


def drop_offset_change(group: Group, connector: str) -> None:
    """Drop the last change of a connector's offsets by people."""
    group.offset_changes.pop(connector, None)


def put_status(group: Group, record: TaskStatus) -> None:
    """Set the status of a connector or a task."""
    group.statuses[record.resource] = record


def drop_status(group: Group, connector: str, task: int) -> None:
    """Drop the status of a connector or a task."""
    group.statuses.pop(Resource(connector, task), None)


def put_order(group: Group, record: Operator) -> None:
    """Set the operators' order for a worker, or for a resource."""
    if record.scope is Scope.WORKER:
        group.worker_orders[record.name] = record
    else:
        group.resource_orders[Resource(record.name, record.task)] = record


def drop_order(group: Group, scope: str, name: str, task: int) -> None:
    """Drop an order."""
    if scope == Scope.WORKER.value:
        group.worker_orders.pop(name, None)
    else:
        group.resource_orders.pop(Resource(name, task), None)
