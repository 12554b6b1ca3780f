"""DeleteGroup: all records of an empty group are buried, but not its epoch (PROTOCOL §8).

Only an empty group is deleted, with its connectors, their tasks and statuses, its settings and the
operators' orders. (Kafka keeps these in topics of their own; here they belong to the group.) Source
offsets stay, as when a connector is deleted: a connector of the same name goes on where the last
one was, and nothing is published twice. Offsets of consumers are deleted, as in Kafka; settings of
their groups stay, as there. The history stays in the log.

The group epoch goes on. A fencing token of one life must not come again in the next: the offset log
has tasks' progress by token, and sinks have files by it. So the deletion records the group epoch,
and the next member that joins raises it. Until then the group is DEAD, and every request but a join
is answered with GROUP_ID_NOT_FOUND.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ....events.catalogue import key_of
from ....events.group import NO_SCHEDULE, NO_TARGET, Group
from ....events.model import Key
from ....events.records import (
    ClassicGroup,
    ConnectorConfig,
    ConnectorsTasksMetadata,
    GroupConfiguration,
    GroupDeletion,
    GroupMetadata,
    Loss,
    OffsetsAltered,
    Operator,
    ScheduledRebalance,
    SubscribedTopics,
    TargetAssignment,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from ...messages.errors import Error
from ...messages.groups import RemoveGroup
from ...messages.orders import DeleteGroup
from ..state.soft_state import Decision, SoftState, accept, refuse
from .offsets import forget_alterations


def delete_group(group: Group, soft: SoftState, command: DeleteGroup, now_ms: int) -> Decision:
    """Delete an empty group; NON_EMPTY_GROUP while it has members, or batches to publish."""
    if group.members:
        message = f"members in the group: {len(group.members)}; delete it once they have left"
        return refuse(soft, Error.NON_EMPTY_GROUP, message)
    if name := _unpublished(group, soft):
        message = (
            f"batches of {name} count, but are not published yet: start a worker, which"
            " publishes them, and delete the group then"
        )
        return refuse(soft, Error.NON_EMPTY_GROUP, message)
    graves, committed = [*_graves(group, soft)], [*soft.facts.client_offsets()]
    if not group.exists and not graves and not committed:
        message = f"there is no group {group.group_id!r} to delete"
        return refuse(soft, Error.GROUP_ID_NOT_FOUND, message)
    deletion = GroupDeletion(group.group_epoch, now_ms, command.principal)
    settings = soft.settings if soft.own.outlive_group else soft.node or soft.settings
    soft = replace(soft.without_computation(), settings=settings, last_chosen="")
    forgotten = [*forget_alterations(soft.facts, group.connectors)]
    forgotten += (Tombstone(type(each), key_of(each)) for each in committed)
    decision = accept(group, soft, (deletion, *graves))
    return replace(decision, offset_records=tuple(forgotten))


def remove_group(group: Group, soft: SoftState, command: RemoveGroup, now_ms: int) -> Decision:
    """Delete a group of Kafka's clients, as DeleteGroups does; its epoch starts at 1 again.

    Member ids of such groups are never used again, and nothing outside depends on their epochs.
    """
    decision = delete_group(group, soft, DeleteGroup(command.group_id), now_ms)
    records = (each for each in decision.records if not isinstance(each, GroupDeletion))
    return replace(decision, records=tuple(records))


def _unpublished(group: Group, soft: SoftState) -> str:
    """Return a connector whose committed batches are not all published; "" if none."""
    return next(filter(soft.facts.has_unpublished, sorted(group.connectors)), "")


def _graves(group: Group, soft: SoftState) -> Iterator[Tombstone]:
    """Yield a tombstone for every record, in the protocol's order: dependent ones first.

    An empty group has no members, and so no current assignments.
    """
    has_settings = bool(group.configs) and not soft.own.outlive_group
    orders = (*group.worker_orders.values(), *group.resource_orders.values())
    by_key: tuple[tuple[type, Iterable[Key]], ...] = (
        (Loss, ((member_id,) for member_id in group.losses)),
        (ScheduledRebalance, ((),) if group.schedule != NO_SCHEDULE else ()),
        (TargetAssignment, ((),) if group.target != NO_TARGET else ()),
        (TaskStatus, ((*each,) for each in group.statuses)),
        (OffsetsAltered, ((name,) for name in group.offset_changes)),
        (TargetState, ((name,) for name in group.target_states)),
        (TaskConfigs, ((name,) for name in group.task_configs)),
        (ConnectorConfig, ((name,) for name in group.connectors)),
        (ConnectorsTasksMetadata, ((),) if group.configured and group.topics is None else ()),
        (SubscribedTopics, ((),) if group.topics is not None else ()),
        (Operator, map(key_of, orders)),
        (GroupConfiguration, ((),) if has_settings else ()),
        (ClassicGroup, ((),) if group.classic is not None else ()),
        # Also if there are only generations: by this tombstone a fold counts from 0 again.
        (GroupMetadata, ((),) if group.bump is not None or group.classic is not None else ()),
    )
    for kind, keys in by_key:
        for key in sorted(keys):
            yield Tombstone(kind, key)
