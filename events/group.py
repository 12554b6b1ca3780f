"""A group: the fold of its records, with the indexes that keep one heartbeat cheap.

Only `evolve` writes to a group. The members and records in it are frozen values; the group
itself changes in place, so that one record costs what it changes, not the size of the group.
Fencing tokens are what it grants, as a pair that never goes back (DATA_PLANE §3).

Group, assignment, member and grant epochs are int64 in the log and in all messages here. Kafka's
own protocols have int32 for them: a group that has come that far is out of their clients' reach.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .model import (
    NOTHING,
    Grants,
    GroupState,
    GroupType,
    MemberState,
    Resource,
    Resources,
    RunState,
    Token,
)
from .record_parts import RecordParts
from .records import (
    ClassicGroup,
    ConnectorConfig,
    CurrentAssignment,
    GroupDeletion,
    GroupMetadata,
    Loss,
    MemberMetadata,
    OffsetsAltered,
    Operator,
    OwnerBegan,
    OwnerResigned,
    ScheduledRebalance,
    Subscriptions,
    TargetAssignment,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Topic,
)

LARGEST_EPOCH: Final = (1 << 63) - 1
"""The last epoch that a log holds."""

LARGEST_OF_KAFKA: Final = (1 << 31) - 1
"""The last epoch that Kafka's own protocols can say."""

MANY_EPOCHS: Final = 1 << 30
"""From this epoch on there is a warning: half of the epochs of Kafka's protocols are used up."""

ANOTHER_GROUP: Final = "create its connectors anew in a group of another name"
"""The way out: epochs never go back, not even when a group is deleted."""

NO_TARGET = TargetAssignment(assignment_epoch=0, members={})
NO_SCHEDULE = ScheduledRebalance()
AWAY_EPOCH = -2
"""The member epoch of a static member that left for a while."""
NOT_STARTED = CurrentAssignment("", 0, -1, MemberState.STABLE, {}, {})
"""What a member is at before its first step."""


@dataclass(frozen=True, slots=True)
class Member:
    """A seat in the group: the member's metadata, and its progress towards the target.

    `offset` is that of its last current-assignment record; it tags the rebalance timer.
    """

    metadata: MemberMetadata
    current: CurrentAssignment
    offset: int = -1
    """The log offset of its last step; -1: none."""

    @property
    def member_id(self) -> str:
        """The name of the seat."""
        return self.metadata.member_id

    @property
    def is_away(self) -> bool:
        """Whether the member left for a while and has not returned: it runs nothing."""
        return self.current.member_epoch == AWAY_EPOCH

    @property
    def state(self) -> MemberState:
        """The member's state; in old logs AWAY follows from the member epoch."""
        return MemberState.AWAY if self.is_away else self.current.state


AssignorRange = tuple[str, int, int, int]
"""Name, minimum, maximum and written version of an assignor that a member can run."""


@dataclass(slots=True)
class Group:
    """One group; `end` is the log offset after the last folded record."""

    group_id: str
    end: int = 0
    """The offset behind the last record that was applied."""
    unknown_records: int = 0
    """Entries that were skipped because this version does not know their type."""
    group_epoch: int = 0
    bump: GroupMetadata | None = None
    """The last record that raised the epoch; None in a group that nobody joined yet."""
    deletion: GroupDeletion | None = None
    """How the group's last life ended, if it had one before this."""
    ownership: OwnerBegan | OwnerResigned | None = None
    """Which node owned it last, or gave it up; None: its logs lie in no store."""
    classic: ClassicGroup | None = None
    """The last generation of its classic members; None: it is no classic group."""
    topics: Mapping[str, Topic] | None = None
    """The subscribed topics by name; None: it is no group of consumers."""
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    """The subscription of each consumer, by member id."""
    target: TargetAssignment = NO_TARGET
    target_of: dict[str, Resources] = field(default_factory=dict[str, Resources])
    """The target by member id, without removed members."""
    configured: Resources = NOTHING
    """The connectors and tasks that the group has to run."""
    configured_offset: int = -1
    """The log offset of the record that says so; -1: there is none."""
    config_offset: int = -1
    """How far the member that said so had read the configs, where these are in another log."""
    configs: Mapping[str, str] = field(default_factory=dict[str, str])
    """The settings in which the group differs from its node's."""
    worker_orders: dict[str, Operator] = field(default_factory=dict[str, Operator])
    """What operators want of workers, by instance id, url or member id."""
    resource_orders: dict[Resource, Operator] = field(default_factory=dict[Resource, Operator])
    """What operators want of connectors (for all their tasks) and of single tasks."""
    connectors: dict[str, ConnectorConfig] = field(default_factory=dict[str, ConnectorConfig])
    """By name; those that are being deleted are among them."""
    task_configs: dict[str, TaskConfigs] = field(default_factory=dict[str, TaskConfigs])
    """By connector."""
    target_states: dict[str, TargetState] = field(default_factory=dict[str, TargetState])
    """By connector; the default is RUNNING."""
    offset_changes: dict[str, OffsetsAltered] = field(default_factory=dict[str, OffsetsAltered])
    """By connector: the last change of its offsets by people."""
    statuses: dict[Resource, TaskStatus] = field(default_factory=dict[Resource, TaskStatus])
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    """By member id; members that are away are among them."""
    losses: dict[str, Loss] = field(default_factory=dict[str, Loss])
    """By the id of the member that was lost."""
    schedule: ScheduledRebalance = NO_SCHEDULE
    """What the target leaves for later."""

    record_parts: RecordParts = field(default_factory=RecordParts)
    """The parts in which the log holds the large ones of these facts."""

    # Indexes, all derived from the facts above.
    owner: dict[Resource, str] = field(default_factory=dict[Resource, str])
    """Which member holds a resource, assigned or pending revocation."""
    instances: dict[str, str] = field(default_factory=dict[str, str])
    """Which member has an instance id."""
    away: set[str] = field(default_factory=set[str])
    """The ids of members that left for a while, and have not returned."""
    translated: set[str] = field(default_factory=set[str])
    """The ids of members of this connect group that speak the classic protocol."""
    away_urls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The urls of those, sorted, each with its member id."""
    target_owner: dict[Resource, str] = field(default_factory=dict[Resource, str])
    """Which member the target gives a resource to, if that member has a seat."""
    classic_members: dict[str, Member] = field(default_factory=dict[str, Member])
    """The Connect workers of the last generation, as members whose epoch is that generation."""
    stable_at: dict[int, int] = field(default_factory=dict[int, int])
    """How many members are STABLE at an epoch."""
    released_topics: frozenset[str] = frozenset()
    """The topics whose partitions are being revoked."""
    subscribers: dict[str, int] = field(default_factory=dict[str, int])
    """How many consumers subscribe to a topic."""
    metadata_bytes: int = 0
    """What members bring: names and patterns of subscriptions, and protocols of classic members."""
    assignor_ranges: dict[AssignorRange, int] = field(default_factory=dict[AssignorRange, int])
    """How many members can run an assignor in these versions."""
    runners: list[tuple[AssignorRange, str]] = field(
        default_factory=list[tuple[AssignorRange, str]]
    )
    """The present members by the assignors that they can run, sorted: by range, then by id."""
    ballots: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    """How many members list their assignors in this order: their votes."""
    server_choices: dict[str, int] = field(default_factory=dict[str, int])
    """How many members name a server assignor."""
    loss_deadlines: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """The deadlines of the losses, wall clock, sorted, each with its member id."""
    next_deadline_ms: int | None = None
    """When the first parked work comes due that has not fired, wall clock."""

    @property
    def assignment_epoch(self) -> int:
        """The group epoch that the target was computed from."""
        return self.target.assignment_epoch

    @property
    def assigned_epoch(self) -> int:
        """The epoch of the members' assignments; in a classic group the assigned generation."""
        if self.classic is None:
            return self.assignment_epoch
        return self.group_epoch - (self.state is GroupState.ASSIGNING)

    @property
    def type(self) -> GroupType:
        """The type of its members; that of an empty group is that of its last members."""
        other = GroupType.CONNECT if self.topics is None else GroupType.CONSUMER
        return other if self.classic is None else GroupType.CLASSIC

    @property
    def exists(self) -> bool:
        """Return whether the group exists: a record was written since its deletion."""
        return self.end > 0 and self.state is not GroupState.DEAD

    @property
    def state(self) -> GroupState:
        """The state of the group, by its epochs and members."""
        if self.classic is not None and self.classic.members:
            return GroupState.STABLE if self.classic.is_synced else GroupState.ASSIGNING
        if self.classic is not None:
            return GroupState.EMPTY
        if not self.members:
            is_dead = self.deletion is not None and self.bump is None
            return GroupState.DEAD if is_dead else GroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if self.stable_at.get(self.assignment_epoch, 0) < len(self.members):
            return GroupState.RECONCILING
        return GroupState.STABLE

    def member(self, member_id: str) -> Member | None:
        """Return a member of either protocol; None: there is no such member."""
        return self.members.get(member_id) or self.classic_members.get(member_id)

    def workers(self) -> list[Member]:
        """Return the members of either protocol that run work, including those that are away."""
        return [*self.members.values(), *self.classic_members.values()]

    def members_away(self) -> list[Member]:
        """Return the members that left for a while, ordered by member id."""
        return [self.members[each] for each in sorted(self.away)]

    def task_numbers(self, connector: str) -> range:
        """Return the numbers of a connector's tasks, none while it is stopped."""
        split = self.task_configs.get(connector)
        is_run = Resource(connector, 0) in self.configured
        return range(len(split.tasks) if split and is_run else 0)

    def target_state(self, connector: str) -> RunState:
        """Return a connector's target state: RUNNING, PAUSED or STOPPED."""
        wanted = self.target_states.get(connector)
        return wanted.state if wanted else RunState.RUNNING

    def is_stopped(self, connector: str) -> bool:
        """Return whether a connector is stopped: nothing of it runs, and all is published."""
        wanted = self.target_states.get(connector)
        return wanted is not None and wanted.is_complete

    def share_of(self, member_id: str) -> Resources:
        """Return the member's share of the target; empty if it has none."""
        return self.target_of.get(member_id, NOTHING)


def token_of(group: Group, member_id: str, resource: Resource) -> Token | None:
    """Return the token under which the member may work on a resource, None if it may not.

    A task's generation is that of its own config; a connector's is its config's version.
    What is pending revocation may still finish its batch. Each return of a static member
    counts as one more generation: it is granted its work anew without a bump, maybe at the
    epoch of the grant before, and the process that left must not be taken for the new one.
    """
    member = group.member(member_id)
    if group.owner.get(resource) != member_id or member is None:
        return None
    current, succession = member.current, member.metadata.succession
    grants: Grants = current.assigned if resource in current.assigned else current.pending
    generation = generation_of(group, resource)
    if generation is None:
        return None
    returns = succession.returns if succession else 0
    return Token(grants[resource], generation + returns)


def generation_of(group: Group, resource: Resource) -> int | None:
    """Return the generation of a resource's config, None if it has none."""
    if not resource.is_task:
        config = group.connectors.get(resource.connector)
        return config.version if config else None
    split = group.task_configs.get(resource.connector)
    if split is None or resource.task >= len(split.tasks):
        return None
    return split.tasks[resource.task].generation


def epoch_warning(group_epoch: int) -> str:
    """Return a warning for people if the group's epochs run out; "" if not."""
    if group_epoch < MANY_EPOCHS:
        return ""
    left = LARGEST_EPOCH - group_epoch
    if left < MANY_EPOCHS:
        return f"group epoch {group_epoch}: the log holds {left} more; {ANOTHER_GROUP} before that"
    if group_epoch <= LARGEST_OF_KAFKA:
        left = LARGEST_OF_KAFKA - group_epoch
        return (
            f"group epoch {group_epoch}: clients of Kafka's own protocols can follow for {left}"
            f" more epochs, fairlead's workers for ever; to keep other clients, {ANOTHER_GROUP}"
        )
    return (
        f"group epoch {group_epoch}: fairlead's workers go on, clients of Kafka's own protocols"
        f" count to {LARGEST_OF_KAFKA} only; to serve other clients, {ANOTHER_GROUP}"
    )
