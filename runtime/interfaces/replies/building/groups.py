"""Builds replies about a group from its state."""

from collections.abc import Iterable

from .....events.commits import ConsumerOffset
from .....events.group import Group, epoch_warning
from .....events.model import Resource
from .....events.records import GroupMetadata, Loss, Operator
from .....projections.shards import state_of_clients, type_of_clients
from .....projections.views import (
    assigned_resources,
    awaited_resources,
    connector_names,
    sorted_members,
)
from ..groups import (
    EpochCause,
    GroupDescription,
    GroupSummary,
    LossDescription,
    ParkedResource,
    PlacementOrder,
    TargetDescription,
    UnplaceableResource,
)
from .clients import (
    describe_classic_members,
    describe_generation,
    describe_offsets,
    describe_subscriptions,
    describe_topics,
    read_shares,
)
from .node import describe_member, id_of, resource_ids, worker_order


def summarize_group(group: Group, shard: int | None = None) -> GroupSummary:
    """Return one entry of the list of groups; `shard` only for a group of Kafka clients."""
    last = group.classic
    shares = read_shares(last) if last and shard is not None else None
    held = len(assigned_resources(group)) if shares is None else sum(map(len, shares.values()))
    return GroupSummary(
        group.group_id,
        _type(group, shard),
        _state(group, shard),
        group.group_epoch,
        group.assigned_epoch if last else group.assignment_epoch,
        len(last.members if last else group.members),
        len(connector_names(group)),
        len(group.configured),
        held,
        group.target.error,
        epoch_warning(group.group_epoch),
        (last.protocol or "") if last else group.target.assignor,
        last.protocol_type if last else "",
        shard,
    )


def _type(group: Group, shard: int | None) -> str:
    return (group.type if shard is None else type_of_clients(group)).value


def _state(group: Group, shard: int | None) -> str:
    return group.state.value if shard is None else state_of_clients(group)


def describe_group(
    group: Group, shard: int | None = None, committed: Iterable[ConsumerOffset] = ()
) -> GroupDescription:
    """Return the full state of a group; `shard`, `committed` only for groups of Kafka clients."""
    schedule = group.schedule
    is_classic = shard is not None and group.classic is not None
    return GroupDescription(
        group.group_id,
        _type(group, shard),
        _state(group, shard),
        group.group_epoch,
        group.assignment_epoch,
        _epoch_cause(group.bump) if group.bump else None,
        describe_classic_members(group)
        if is_classic
        else [describe_member(group, each) for each in sorted_members(group)],
        _describe_target(group),
        resource_ids(group.configured),
        resource_ids(group.configured - group.owner.keys()),
        resource_ids(awaited_resources(group)),
        [
            ParkedResource(*id_of(each), due, each in schedule.fired)
            for each, due in sorted(schedule.parked.items())
        ],
        schedule.again_at_ms or None,
        [_describe_loss(group.losses[member_id]) for member_id in sorted(group.losses)],
        dict(sorted(group.configs.items())),
        [worker_order(each) for _, each in sorted(group.worker_orders.items())],
        [placement(each) for _, each in sorted(group.resource_orders.items())],
        group.end,
        group.unknown_records,
        epoch_warning(group.group_epoch),
        describe_generation(group.classic) if group.classic else None,
        [*describe_topics(group)],
        [*describe_subscriptions(group)],
        shard,
        [*describe_offsets(committed)],
    )


def placement(order: Operator) -> PlacementOrder:
    """Return the operator order for the placement of one connector or task."""
    resource = Resource(order.name, order.task)
    return PlacementOrder(*id_of(resource), order.weight, list(order.pins))


def _describe_target(group: Group) -> TargetDescription:
    target = group.target
    return TargetDescription(
        target.assignment_epoch,
        target.assignor,
        target.computed_by,
        target.time_ms,
        {each: resource_ids(group.target_of[each]) for each in sorted(group.target_of)},
        [
            UnplaceableResource(*id_of(each), reason)
            for each, reason in sorted(target.unplaceable.items())
        ],
        target.error,
        target.failures,
        target.retry_at_ms,
    )


def _epoch_cause(bump: GroupMetadata) -> EpochCause:
    return EpochCause(bump.cause.why.value, bump.cause.subject, bump.time_ms, bump.actor)


def _describe_loss(loss: Loss) -> LossDescription:
    return LossDescription(
        loss.member_id,
        loss.instance_id,
        loss.url,
        resource_ids(loss.resources),
        loss.cause.why.value,
        loss.cause.subject,
        loss.time_ms,
        loss.deadline_ms,
    )
