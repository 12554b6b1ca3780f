"""How a group changes by records, and by their tombstones; `seats.py` has those of members.

The catalogue says what belongs to which record. A fold is given the record, a burial the parts
of the tombstone's key. Replay accepts every sequence that compaction can leave behind:
tombstones of what was never seen, a target with shares of the departed.
"""

from bisect import bisect_left, insort

from .connectors import ConnectorConfig, OffsetsAltered, TargetState, TaskConfigs, TaskStatus
from .group import NO_SCHEDULE, NO_TARGET, Group, Member
from .kafka.consumers import ConsumerSubscription, SubscribedTopics
from .model import CONNECT, NOTHING, ClassicMember, MemberState, Resource, Scope, Succession
from .records import (
    ClassicGroup,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupConfiguration,
    GroupDeletion,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Operator,
    ScheduledRebalance,
    TargetAssignment,
)


def raise_epoch(group: Group, record: GroupMetadata) -> None:
    """Take a new group epoch, and why it rose."""
    group.group_epoch, group.bump = record.group_epoch, record


def drop_epoch(group: Group) -> None:
    """Forget why the epoch rose; what a deleted group had counted to stays."""
    group.group_epoch = group.deletion.group_epoch if group.deletion else 0
    group.bump = None


def set_generation(group: Group, record: ClassicGroup) -> None:
    """Take a generation of classic members; it is a group epoch like any other."""
    drop_generation(group)
    group.classic, group.group_epoch = record, record.generation
    if record.protocol_type == CONNECT:
        for each in record.members:
            group.classic_members[each.member_id] = _seat_of(record.generation, each)
            group.owner.update(dict.fromkeys((*each.assigned, *each.pending), each.member_id))


def drop_generation(group: Group) -> None:
    """Be of the classic protocol no more.

    The epoch stays for the rest of the batch, which raises it or buries it as well.
    """
    group.classic = None
    for member_id, member in group.classic_members.items():
        for resource in (*member.current.assigned, *member.current.pending):
            if group.owner.get(resource) == member_id:
                del group.owner[resource]
    group.classic_members.clear()


def _seat_of(generation: int, member: ClassicMember) -> Member:
    """Return a classic worker as a member that is at its generation."""
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
    """End a life of the group; the tombstones that follow bury what is in it."""
    group.deletion = record
    group.group_epoch = max(group.group_epoch, record.group_epoch)


def set_configs(group: Group, record: GroupConfiguration) -> None:
    """Take the settings in which the group differs from its node's."""
    group.configs = record.configs


def drop_configs(group: Group) -> None:
    """Differ from the node in no setting."""
    group.configs = {}


def set_target(group: Group, record: TargetAssignment) -> None:
    """Aim at a target: who is to have what."""
    group.target = record
    group.target_of = dict(record.members)
    group.target_owner = {
        resource: member_id for member_id, share in record.members.items() for resource in share
    }


def drop_target(group: Group) -> None:
    """Aim at nothing."""
    set_target(group, NO_TARGET)


def drop_share(group: Group, member_id: str) -> None:
    """Forget what the target gives a member."""
    for resource in group.target_of.pop(member_id, NOTHING):
        if group.target_owner.get(resource) == member_id:
            del group.target_owner[resource]


def inherit_share(group: Group, member_id: str, succession: Succession) -> None:
    """Give a static member that came back what the target means for its seat.

    The target is one record for the whole group, and is not written anew for one seat. So
    the share is read from it under the name that the seat had, in whatever order compaction
    leaves the records; a target that came later knows the seat by its new name.
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
    """Tell whether a member has what the target means for a seat that it took: it left its own."""
    member = group.members.get(member_id)
    known = member.metadata.succession if member else None
    if known is None or known.target_id == member_id:
        return False
    return known.assignment_epoch >= group.assignment_epoch


def set_schedule(group: Group, record: ScheduledRebalance) -> None:
    """Park what a target leaves for later, and say when the first of it comes due."""
    group.schedule = record
    waiting = [due for resource, due in record.parked.items() if resource not in record.fired]
    group.next_deadline_ms = min(waiting, default=None)


def drop_schedule(group: Group) -> None:
    """Park nothing any more."""
    set_schedule(group, NO_SCHEDULE)


def put_loss(group: Group, record: Loss) -> None:
    """Keep what a lost member held, by the deadline until which it may wait."""
    drop_loss(group, record.member_id)
    group.losses[record.member_id] = record
    insort(group.loss_deadlines, (record.deadline_ms, record.member_id))


def drop_loss(group: Group, member_id: str) -> None:
    """Forget the loss of a member: its wait is over."""
    loss = group.losses.pop(member_id, None)
    if loss is not None:
        del group.loss_deadlines[bisect_left(group.loss_deadlines, (loss.deadline_ms, member_id))]


def set_configured(group: Group, record: ConnectorsTasksMetadata) -> None:
    """Take the connectors and tasks that the group is to run."""
    group.configured, group.configured_offset = record.configured, group.end - 1


def drop_configured(group: Group) -> None:
    """Have nothing to run."""
    group.configured, group.configured_offset = NOTHING, -1


def set_topics(group: Group, record: SubscribedTopics) -> None:
    """Take the topics that consumers share out: their partitions are what is configured."""
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
    """Be a group of consumers no more."""
    if group.topics is not None:
        group.topics, group.configured, group.released_topics = None, NOTHING, frozenset()


def put_subscription(group: Group, record: ConsumerSubscription) -> None:
    """Take what a consumer wants to read."""
    drop_subscription(group, record.member_id)
    group.subscriptions[record.member_id] = record
    _count_subscribers(group, record, 1)


def drop_subscription(group: Group, member_id: str) -> None:
    """Forget what a consumer wanted to read."""
    record = group.subscriptions.pop(member_id, None)
    if record is not None:
        _count_subscribers(group, record, -1)


def _count_subscribers(group: Group, record: ConsumerSubscription, change: int) -> None:
    for topic in record.topics:
        count = group.subscribers.get(topic, 0) + change
        group.subscribers[topic] = count
        if not count:
            del group.subscribers[topic]


def put_connector(group: Group, record: ConnectorConfig) -> None:
    """Take what a connector is to do."""
    group.connectors[record.connector] = record


def drop_connector(group: Group, connector: str) -> None:
    """Forget a connector's config."""
    group.connectors.pop(connector, None)


def put_task_configs(group: Group, record: TaskConfigs) -> None:
    """Take how a connector split its work."""
    group.task_configs[record.connector] = record


def drop_task_configs(group: Group, connector: str) -> None:
    """Forget how a connector split its work."""
    group.task_configs.pop(connector, None)


def put_target_state(group: Group, record: TargetState) -> None:
    """Take what people want a connector to be."""
    group.target_states[record.connector] = record


def drop_target_state(group: Group, connector: str) -> None:
    """Want a connector to run, as every one is wanted of which nothing is said."""
    group.target_states.pop(connector, None)


def put_offset_change(group: Group, record: OffsetsAltered) -> None:
    """Keep who set a connector's offsets last."""
    group.offset_changes[record.connector] = record


def drop_offset_change(group: Group, connector: str) -> None:
    """Forget who set a connector's offsets."""
    group.offset_changes.pop(connector, None)


def put_status(group: Group, record: TaskStatus) -> None:
    """Take what a connector or a task does."""
    group.statuses[record.resource] = record


def drop_status(group: Group, connector: str, task: int) -> None:
    """Forget what a connector or a task does."""
    group.statuses.pop(Resource(connector, task), None)


def put_order(group: Group, record: Operator) -> None:
    """Keep what operators want of a worker, or of a resource."""
    if record.scope is Scope.WORKER:
        group.worker_orders[record.name] = record
    else:
        group.resource_orders[Resource(record.name, record.task)] = record


def drop_order(group: Group, scope: str, name: str, task: int) -> None:
    """Forget what operators wanted."""
    if scope == Scope.WORKER.value:
        group.worker_orders.pop(name, None)
    else:
        group.resource_orders.pop(Resource(name, task), None)
