"""Replies about the state of a group: epochs, members, target, parked work, losses, placements.

Groups of Kafka clients have generations, topics, subscriptions and committed offsets as well.

Times are wall clock, in milliseconds.
"""

from typing import Literal

from msgspec import Struct

from .node import MemberDescription, ResourceId, WorkerOrder
from .words import CauseWord, GroupStateWord, GroupTypeWord


class GenerationDescription(Struct, frozen=True):
    """A generation of a classic group."""

    generation: int
    cause: CauseWord
    subject: str
    time_ms: int
    protocol_type: str
    protocol: str | None
    leader: str
    members: list[str]
    """Their instance ids, or their member ids if they are dynamic."""


class TopicDescription(Struct, frozen=True):
    """A topic that a group of consumers reads, or is giving up."""

    name: str
    topic_id: str
    partitions: int
    is_released: bool
    """Whether its partitions are being revoked."""


class SubscriptionDescription(Struct, frozen=True):
    """The subscription of a consumer: topic names and a pattern."""

    member_id: str
    names: list[str]
    pattern: str
    """An RE2 regular expression; empty if there is none."""
    matched: list[str]
    """The topics that match the pattern."""


class CommittedOffset(Struct, frozen=True):
    """The committed offset of a group in one partition."""

    topic: str
    partition: int
    offset: int
    """The offset of the next record to read."""
    leader_epoch: int
    metadata: str
    time_ms: int


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

    cause: CauseWord
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
    cause: CauseWord
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
    type: GroupTypeWord
    """The protocol of its members: `connect`, `classic` or `consumer`."""
    state: GroupStateWord
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


class ClientGroupSummary(GroupSummary, frozen=True):
    """One entry of the list of groups of Kafka clients."""

    lag: int | None = None
    """How many records they have left to read in the partitions with committed offsets; null: not
    known."""


class ClientGroupList(Struct, frozen=True):
    """A page of the groups of Kafka clients, by id."""

    groups: list[ClientGroupSummary]
    matching: int
    """How many groups match."""
    total: int
    """How many there are."""
    message: str
    """Why some lag is not known; empty if all is, or was not asked for."""


class PartitionLag(Struct, frozen=True):
    """How far a group has read one partition."""

    topic: str
    partition: int
    member_id: str
    """The member that has it; empty: none has."""
    offset: int | None
    """The committed offset; null: none was committed."""
    end: int | None
    """The offset that the next record gets; null: not known."""
    lag: int | None
    """How many records are left to read; null: not known."""
    committed_ms: int | None
    """When it was committed; null: never."""
    metadata: str
    """What the client wrote beside the offset."""


class GroupLag(Struct, frozen=True):
    """How far a group of Kafka clients has read, and what is left."""

    group_id: str
    lag: int | None
    """How many records are left in all partitions of which this is known; null: of none it is."""
    message: str
    """Why some ends are not known; empty if they are."""
    total: int
    """How many partitions the group has, or has committed offsets in."""
    partitions: list[PartitionLag]
    """The first 10,000 of them, by topic and number."""


class GroupCompaction(Struct, frozen=True):
    """The compaction of a group's history that was asked for last."""

    group_id: str
    state: Literal["none", "running", "done", "stopped"]
    """`none` if none was asked for since the process of the group started."""
    trimmed: int
    """How many entries have left the log by it."""
    message: str
    """Why it was stopped; empty if it was not."""


class GroupDescription(Struct, frozen=True, omit_defaults=True):
    """The full state of a group."""

    group_id: str
    type: GroupTypeWord
    state: GroupStateWord
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
