"""Replies about the state of a group: epochs, members, target, parked work, losses, placements.

Times are wall clock, in milliseconds.
"""

from collections.abc import Iterable

from msgspec import Struct

from ....events.group import Group, epoch_warning
from ....events.kafka.consumers import ConsumerOffset
from ....events.model import Resource
from ....events.records import GroupMetadata, Loss, Operator
from ....projections.shards import state_of_clients, type_of_clients
from ....projections.views import (
    assigned_resources,
    awaited_resources,
    connector_names,
    sorted_members,
)
from .clients import (
    CommittedOffset,
    GenerationDescription,
    SubscriptionDescription,
    TopicDescription,
    describe_classic_members,
    describe_generation,
    describe_offsets,
    describe_subscriptions,
    describe_topics,
    read_shares,
)
from .node import (
    MemberDescription,
    ResourceId,
    WorkerOrder,
    describe_member,
    id_of,
    resource_ids,
    worker_order,
)


class ParkedResource(ResourceId, frozen=True):
    """A resource that waits for the return of its lost worker."""

    deadline_ms: int
    fired: bool
    """Whether the deadline has passed."""


class UnplaceableResource(ResourceId, frozen=True):
    """A resource that no member can take."""

    reason: str


class EpochCause(Struct, frozen=True):
    """The cause of the current group epoch."""

    cause: str
    subject: str
    time_ms: int
    actor: str | None
    """The principal of the request, if known."""


class TargetDescription(Struct, frozen=True):
    """The target assignment that the members move towards."""

    assignment_epoch: int
    assignor: str
    computed_by: str
    """A member id; empty if the coordinator computed it."""
    time_ms: int
    members: dict[str, list[ResourceId]]
    """The target of each member, by member id."""
    unplaceable: list[UnplaceableResource]
    error: str
    """The error of the last computation of a target; empty if it succeeded."""
    failures: int
    """How many computations have failed in a row."""
    retry_at_ms: int


class LossDescription(Struct, frozen=True):
    """A lost member, and its resources that wait for its return."""

    member_id: str
    instance_id: str | None
    worker_id: str
    resources: list[ResourceId]
    cause: str
    subject: str
    time_ms: int
    deadline_ms: int


class PlacementOrder(ResourceId, frozen=True):
    """The operator order for the placement of one connector or task."""

    weight: int
    pins: list[str]
    """The only workers that may run it; empty: its config decides."""


class GroupPlacement(Struct, frozen=True):
    """The operator order for the placement of one connector or task of a group."""

    group_id: str
    id: str
    connector: str
    task: int | None
    weight: int
    pins: list[str]


class GroupSummary(Struct, frozen=True, omit_defaults=True):
    """One entry of the list of groups."""

    group_id: str
    type: str
    """The protocol of its members: `connect`, `classic` or `consumer`."""
    state: str
    group_epoch: int
    assignment_epoch: int
    members: int
    connectors: int
    configured: int
    """The number of connectors and tasks, or partitions; 0 if only a classic leader knows."""
    assigned: int
    """How many of these have an owner."""
    assignor_error: str
    warning: str = ""
    """A warning if the group is about to run out of epochs."""
    assignor: str = ""
    """The assignor of its target; in a classic group, the name of the protocol."""
    protocol_type: str = ""
    """The protocol type of classic members: `consumer`, `connect` or another one."""
    shard: int | None = None
    """The number of its shard, for a group of Kafka clients."""


class GroupDescription(Struct, frozen=True, omit_defaults=True):
    """The full state of a group."""

    group_id: str
    type: str
    state: str
    group_epoch: int
    assignment_epoch: int
    last_rebalance: EpochCause | None
    members: list[MemberDescription]
    target: TargetDescription
    configured: list[ResourceId]
    unassigned: list[ResourceId]
    awaited: list[ResourceId]
    """The resources that wait for members that are away."""
    parked: list[ParkedResource]
    next_moves_at_ms: int | None
    losses: list[LossDescription]
    config: dict[str, str]
    """The settings of the group that override those of its node."""
    worker_orders: list[WorkerOrder]
    placements: list[PlacementOrder]
    log_end: int
    """The offset after the last record that was read."""
    unknown_records: int
    warning: str = ""
    """A warning if the group is about to run out of epochs."""
    generation: GenerationDescription | None = None
    """The last generation of a classic group."""
    topics: list[TopicDescription] = []
    """Only for a group of consumers."""
    subscriptions: list[SubscriptionDescription] = []
    shard: int | None = None
    """The number of its shard, for a group of Kafka clients."""
    committed: list[CommittedOffset] = []
    """The committed offsets of a group of Kafka clients."""


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
