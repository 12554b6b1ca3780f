"""A group as its log has it: epochs, members, target, parked work, losses, placements.

Times are wall clock, in milliseconds.
"""

from collections.abc import Iterator

from msgspec import Struct

from ....events.group import Group, epoch_warning
from ....events.model import Resource
from ....events.records import ClassicGroup, GroupMetadata, Loss, Operator
from ....projections.views import assigned, awaited, connector_names, members
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
    """A resource that waits for its lost worker."""

    deadline_ms: int
    fired: bool
    """Whether the deadline has come."""


class UnplaceableResource(ResourceId, frozen=True):
    """A resource that no member can take."""

    reason: str


class EpochCause(Struct, frozen=True):
    """What raised the group epoch last."""

    cause: str
    subject: str
    time_ms: int
    actor: str | None
    """Who asked for it, where that is known."""


class TargetDescription(Struct, frozen=True):
    """The target assignment that the members move towards."""

    assignment_epoch: int
    assignor: str
    computed_by: str
    """A member id; empty where the coordinator computed it."""
    time_ms: int
    members: dict[str, list[ResourceId]]
    """What each member is to have, by member id."""
    unplaceable: list[UnplaceableResource]
    error: str
    """Why the last attempt at a new target failed; empty if none did."""
    failures: int
    """How many attempts have failed in a row."""
    retry_at_ms: int


class LossDescription(Struct, frozen=True):
    """A member that was lost, and what of its waits for it."""

    member_id: str
    instance_id: str | None
    worker_id: str
    resources: list[ResourceId]
    cause: str
    subject: str
    time_ms: int
    deadline_ms: int


class PlacementOrder(ResourceId, frozen=True):
    """What operators want of one connector, or of one task."""

    weight: int
    pins: list[str]
    """The workers that alone may run it; empty: its config decides."""


class GroupPlacement(Struct, frozen=True):
    """What operators want of one connector or task of a group."""

    group_id: str
    id: str
    connector: str
    task: int | None
    weight: int
    pins: list[str]


class GenerationDescription(Struct, frozen=True):
    """A generation of a classic group."""

    generation: int
    cause: str
    subject: str
    time_ms: int
    protocol_type: str
    protocol: str | None
    leader: str
    members: list[str]
    """Their instance ids, or else their member ids."""


class TopicDescription(Struct, frozen=True):
    """A topic that a group of consumers shares out, or that its members give up."""

    name: str
    topic_id: str
    partitions: int
    is_released: bool
    """Whether members give it up."""


class SubscriptionDescription(Struct, frozen=True):
    """What a consumer wants to read."""

    member_id: str
    names: list[str]
    pattern: str
    """A regular expression of RE2; empty: there is none."""
    matched: list[str]
    """The topics that the pattern stands for."""


class GroupSummary(Struct, frozen=True, omit_defaults=True):
    """One line of the list of groups."""

    group_id: str
    type: str
    """Which protocol its members speak: `connect`, `classic` or `consumer`."""
    state: str
    group_epoch: int
    assignment_epoch: int
    members: int
    connectors: int
    configured: int
    """How many connectors and tasks there are to run."""
    assigned: int
    """How many of these a member holds."""
    assignor_error: str
    warning: str = ""
    """That the group is about to run out of epochs."""


class GroupDescription(Struct, frozen=True, omit_defaults=True):
    """All that the log says of a group."""

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
    """What is kept for members that are away."""
    parked: list[ParkedResource]
    next_moves_at_ms: int | None
    losses: list[LossDescription]
    config: dict[str, str]
    """The settings in which the group differs from its node."""
    worker_orders: list[WorkerOrder]
    placements: list[PlacementOrder]
    log_end: int
    """The offset behind the last record that was read."""
    unknown_records: int
    warning: str = ""
    """That the group is about to run out of epochs."""
    generation: GenerationDescription | None = None
    """The last one of a classic group's members."""
    topics: list[TopicDescription] = []
    """Of a group of consumers."""
    subscriptions: list[SubscriptionDescription] = []


def summarize_group(group: Group) -> GroupSummary:
    """Return one line of the list of groups."""
    return GroupSummary(
        group.group_id,
        group.type.value,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        len(group.classic.members if group.classic else group.members),
        len(connector_names(group)),
        len(group.configured),
        len(assigned(group)),
        group.target.error,
        epoch_warning(group.group_epoch),
    )


def describe_group(group: Group) -> GroupDescription:
    """Return all that the log says of a group."""
    schedule = group.schedule
    return GroupDescription(
        group.group_id,
        group.type.value,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        _epoch_cause(group.bump) if group.bump else None,
        [describe_member(group, each) for each in members(group)],
        _describe_target(group),
        resource_ids(group.configured),
        resource_ids(group.configured - group.owner.keys()),
        resource_ids(awaited(group)),
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
        _describe_generation(group.classic) if group.classic else None,
        [*_describe_topics(group)],
        [*_describe_subscriptions(group)],
    )


def _describe_topics(group: Group) -> Iterator[TopicDescription]:
    for name, topic in sorted((group.topics or {}).items()):
        yield TopicDescription(name, topic.topic_id, topic.partitions, topic.is_released)


def _describe_subscriptions(group: Group) -> Iterator[SubscriptionDescription]:
    for member_id, each in sorted(group.subscriptions.items()):
        yield SubscriptionDescription(member_id, [*each.names], each.pattern, [*each.matched])


def _describe_generation(last: ClassicGroup) -> GenerationDescription:
    return GenerationDescription(
        last.generation,
        last.cause.why.value,
        last.cause.subject,
        last.time_ms,
        last.protocol_type,
        last.protocol,
        last.leader,
        sorted(each.instance_id or each.member_id for each in last.members),
    )


def placement(order: Operator) -> PlacementOrder:
    """Return what operators want of one connector, or of one task."""
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
