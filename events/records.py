"""The records of the log: one class for each kind of fact that a group keeps.

First those of the group and its members, then those of one connector, then those of consumers, of
which a partition of a topic is a resource, and the parts of large facts. The names are those of
the proposal, without its prefix. A `Tombstone` deletes a key. Each group has two logs: an
`OffsetRecord` goes to its offset log (`commits.py`), all others to its control log.

The names of the fields are their names in the log, which never change. A field with a default may
be missing there: it was added later, or is rarely set. All times are wall clock, in ms since 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .commits import OffsetRecord
from .model import (
    CONNECTOR,
    NEVER_RESTARTED,
    NO_DATA,
    NOTHING,
    AssignorData,
    AutoRestart,
    Cause,
    ClassicMember,
    ClassicMetadata,
    ClientAssignor,
    Grants,
    Key,
    MemberState,
    Resource,
    Resources,
    RunState,
    Scope,
    Succession,
    TaskConfig,
    Token,
)


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """The group epoch rose (key type 3)."""

    group_epoch: int
    cause: Cause
    time_ms: int
    actor: str | None = None
    """The principal who asked for it, where that is known."""
    since_ms: int = 0
    """When the cause came about, where that was earlier: a process's end, a member's last word."""


@dataclass(frozen=True, slots=True)
class ConnectorsTasksMetadata:
    """The connectors and tasks that the group is to run (key type 4)."""

    configured: Resources
    parts: int = field(default=0, compare=False)
    """Into how many parts the resources went; 0: they are all here (see `record_parts.py`)."""
    config_offset: int = -1
    """How far the member that said so had read the configs, which are in another log than this; -1:
    they are in this log, or nobody has said it yet."""


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member joined, or changed its metadata (key type 5).

    `joined_epoch` is the group epoch that its join led to: no target of an earlier
    assignment epoch can mean this seat, even where its member id was seen before.
    """

    member_id: str
    incarnation: str = ""
    """Which process sits in the seat: each has another."""
    joined_epoch: int = 0
    rebalance_timeout_ms: int = -1
    """How long it may take to give up what it is asked to; -1: it did not say."""
    assignors: tuple[ClientAssignor, ...] = ()
    """What it can run, its first choice first; empty: the group's default computes."""
    server_assignor: str | None = None
    """The assignor that it wants the coordinator to run, if any."""
    instance_id: str | None = None
    """The name of its static seat; None: it is a dynamic member."""
    rack: str | None = None
    """Its zone."""
    url: str = ""
    """Its worker's REST url; empty if it has none."""
    client_id: str = ""
    client_host: str = ""
    """The address from which it joined."""
    session_timeout_ms: int = 0
    """By which session the member fences itself; 0: the one its group was configured with."""
    succession: Succession | None = None
    """Set once a static member came back; a first occupant has none."""
    node: str = ""
    """The id of the node that it runs on: which seats a node left, only that node may say."""
    classic: ClassicMetadata | None = None
    """Set while it speaks the classic protocol to a group of the connect type."""

    @property
    def worker_url(self) -> str:
        """The worker's name for people: its url, or the member id if it has none."""
        return self.url or self.member_id


@dataclass(frozen=True, slots=True)
class TargetAssignment:
    """A target for the whole group (key type 6).

    After a failed attempt `error` says why, the target is the old one, `failures` counts
    the attempts in a row, and the next is due at `retry_at_ms` (0: none is due).
    """

    assignment_epoch: int
    members: Mapping[str, Resources]
    """By member id: what each is to have."""
    assignor: str = ""
    assignor_version: int = 0
    """The version of `assignor_metadata`, within the assignor's range."""
    assignor_metadata: bytes = b""
    """The assignor's own data, for its next computation."""
    unplaceable: Mapping[Resource, str] = field(default_factory=dict[Resource, str])
    """What nobody is to have, each with the reason."""
    computed_by: str = ""
    """The id of the member that computed it, `coordinator` where no member did."""
    time_ms: int = 0
    """Wall clock."""
    error: str = ""
    failures: int = 0
    retry_at_ms: int = 0
    parts: int = field(default=0, compare=False)
    """Into how many parts `members` and `unplaceable` went; 0: they are all here."""
    data: Mapping[str, AssignorData] = field(default_factory=dict[str, AssignorData])
    """What the assignor says to single members, by member id; to all others it says its own."""
    error_code: int = 0
    """The number of the error, where a client's assignor gave one."""


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """A member took a step towards its target (key type 7)."""

    member_id: str
    member_epoch: int
    """The assignment epoch that the member has reached."""
    previous_epoch: int
    """The member epoch before the last step."""
    state: MemberState
    assigned: Grants
    """The granted resources, with their grant epochs."""
    pending: Grants
    """What it is asked to give up, and has not said yet that it did."""
    parts: int = field(default=0, compare=False)
    """Into how many parts `assigned` and `pending` went; 0: they are all here."""
    data: AssignorData = NO_DATA
    """What the assignor of this epoch said to this member alone."""


@dataclass(frozen=True, slots=True)
class GroupConfiguration:
    """The settings in which the group differs from its node's (key type 8)."""

    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScheduledRebalance:
    """The work and the moves that a target defers, and until when, wall clock (key type 21).

    `parked` is the work that waits; `fired` is what a past deadline released: it may not be
    parked again. At `again_at_ms` the rest of the moves is due (0: there is none).
    """

    parked: Grants = field(default_factory=dict[Resource, int])
    fired: Resources = NOTHING
    again_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Operator:
    """The operators' order for one worker, or for one connector or task (key type 22).

    A worker goes by its instance id, its url, or, where it has neither, its member id; a
    connector's order stands for those of its tasks that have none of their own.
    `expected_back_ms` is wall clock, 0 if nobody is expected; `pins` name workers; `removing`
    is the member whose seat is being ended, empty where none is: by force, or `gently`, once
    it has given up what it has.
    """

    scope: Scope
    name: str
    task: int = CONNECTOR
    cordoned: bool = False
    """Whether the worker is assigned no new work."""
    draining: bool = False
    """Whether the worker's present work is revoked as well."""
    expected_back_ms: int = 0
    weight: int = 1
    pins: tuple[str, ...] = ()
    time_ms: int = 0
    actor: str | None = None
    """The principal who gave the order, where that is known."""
    removing: str = ""
    gently: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """A member with work was lost, or left and may return (key type 23).

    The work may be parked until `deadline_ms`, wall clock.
    """

    member_id: str
    instance_id: str | None
    url: str
    resources: Resources
    time_ms: int
    cause: Cause
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class GroupDeletion:
    """The group was deleted (key type 26); its next life counts on from this group epoch.

    A group epoch of one life must not come again in the next: grant epochs are taken from
    it, and with them fencing tokens and the names of what was staged under them.
    """

    group_epoch: int
    time_ms: int
    actor: str | None = None
    """The principal who deleted the group, where that is known."""


@dataclass(frozen=True, slots=True)
class OwnerBegan:
    """A node owns the group from here on (key type 35): the first record of its claim.

    It is written where the logs lie in a store. The epochs of the group do not move by it.
    """

    epoch: int
    """The owner epoch of the claim."""
    node: str
    """The name of the node."""
    address: str = ""
    """The address of its listener, `host:port`."""
    version: str = ""
    """The version of the program that it runs."""
    silence_ms: int = 0
    """How long nothing had been heard of the owner before; 0: there was none, or it had ended."""
    time_ms: int = 0
    generation: int = 0
    """Which generation of records it writes (LOG.md §9): who knows only earlier ones follows."""


@dataclass(frozen=True, slots=True)
class OwnerResigned:
    """A node gives the group up (key type 36): the last record of its claim."""

    epoch: int
    """The owner epoch of the claim."""
    node: str
    """The name of the node."""
    to: str = ""
    """The name of the node that is to own the group; empty: any."""
    time_ms: int = 0


@dataclass(frozen=True, slots=True)
class ClassicGroup:
    """A generation of a group of Kafka's classic protocol (key type 2, Kafka's own).

    It is written when its join phase ends, and again when the leader has assigned (`is_synced`).
    """

    generation: int
    cause: Cause
    """Why there had to be another generation."""
    time_ms: int
    protocol_type: str = ""
    """`consumer`, `connect`, or what else the members do together."""
    protocol: str | None = None
    """What all members speak; None: there are none."""
    leader: str = ""
    """The member id of the leader."""
    members: tuple[ClassicMember, ...] = ()
    is_synced: bool = False
    """Whether the leader has assigned."""


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """The config of a connector (key type 16); secret values are sealed.

    `version` counts the configs of this connector that its work can tell apart, and its restarts:
    what is said of placement makes none. `deleting` stands while its work is brought to an end;
    only then the key gets its tombstone. `offsets_before` is how many offsets there were of an
    earlier connector of this name when it was created: they count for this one. `to_forget` stands
    beside `deleting` until its source has removed what it keeps outside, such as a slot.
    `given_up` is how many batches counted and were not published when they were given up.
    """

    connector: str
    config: Mapping[str, str]
    version: int = 1
    time_ms: int = 0
    deleting: bool = False
    offsets_before: int = 0
    to_forget: bool = False
    given_up: int = 0
    actor: str | None = None
    """The principal who asked for this last, where that is known."""


@dataclass(frozen=True, slots=True)
class TaskConfigs:
    """The tasks that a connector split its work into (key type 17).

    `generation` counts the splits of this connector, and the restarts of its tasks; each task
    keeps the generation that last changed its own config or restarted it, so that a new split
    restarts only what it alters.
    """

    connector: str
    generation: int
    tasks: tuple[TaskConfig, ...]


@dataclass(frozen=True, slots=True)
class TargetState:
    """The state that people want of a connector: RUNNING, PAUSED or STOPPED (key type 18).

    One of which nothing is said is to be RUNNING. A STOPPED one has no tasks; `is_complete` tells
    that the last of them has ended, and that all that counts is published.
    """

    connector: str
    state: RunState
    time_ms: int
    actor: str | None = None
    """The principal who asked for it, where that is known."""
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class OffsetsAltered:
    """People set offsets of a connector that was stopped (key type 30).

    Both logs have it: the offset log with the offsets, in one append, the control log after that.
    """

    connector: str
    how: str
    """What they did: `altered`, `reset`, or `sought to` a place."""
    partitions: int
    """How many source partitions have another offset by it, or none any more."""
    time_ms: int
    actor: str | None = None
    """The principal who asked for it, where that is known."""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The status of a connector or a task, as its worker reports it (key type 20)."""

    resource: Resource
    state: RunState
    worker: str
    """The url of the worker that says so, or its member id where it has none."""
    token: Token
    time_ms: int
    reason: str = ""
    """The error or remark, for people."""
    restarts: AutoRestart = NEVER_RESTARTED
    """How often its worker has restarted it after failures."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the cluster, for a group of consumers."""

    topic_id: str
    """Its uuid as 32 hexadecimal digits; a topic that is created anew has another."""
    partitions: int
    """The number of partitions."""
    is_released: bool = False
    """Whether the group has no use for it any more: members give up what they hold of it."""


@dataclass(frozen=True, slots=True)
class SubscribedTopics:
    """The topics that a group of consumers shares out (key type 31).

    Their partitions are what is configured in such a group. One that is released stands here for
    as long as members may hold any of it, since they know it by its id.
    """

    topics: Mapping[str, Topic]
    """By name."""


@dataclass(frozen=True, slots=True)
class ConsumerSubscription:
    """The subscription of a consumer (key type 32)."""

    member_id: str
    names: tuple[str, ...] = ()
    """The topics that it names, sorted."""
    pattern: str = ""
    """The regular expression (RE2) of further topics; empty: there is none."""
    matched: tuple[str, ...] = ()
    """The topics that the pattern stood for when they were looked at last, sorted."""

    @property
    def topics(self) -> frozenset[str]:
        """All topics that the member may be given."""
        return frozenset(self.names).union(self.matched)


ConsumerRecord = SubscribedTopics | ConsumerSubscription
"""What the control log says of consumers, beside what it says of all members."""

Subscriptions = dict[str, ConsumerSubscription]
"""By member id."""


@dataclass(frozen=True, slots=True)
class ConfiguredPart:
    """The configured resources of some connectors (key type 27); its head is key type 4."""

    number: int
    """The number of the part, as in `record_parts.part_of`."""
    configured: Resources


@dataclass(frozen=True, slots=True)
class TargetPart:
    """The part of a target for some connectors (key type 28); its head is key type 6."""

    number: int
    """The number of the part, as in `record_parts.part_of`."""
    members: Mapping[str, Resources]
    """By member id: what each is to have of these connectors; a member without any is left out."""
    unplaceable: Mapping[Resource, str] = field(default_factory=dict[Resource, str])


@dataclass(frozen=True, slots=True)
class CurrentPart:
    """The part of a member's step for some connectors (key type 29); its head is key type 7."""

    member_id: str
    number: int
    """The number of the part, as in `record_parts.part_of`."""
    assigned: Grants
    pending: Grants


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The record of that class and key is deleted; the key is as in `key_of`."""

    kind: type
    key: Key


ControlRecord = (
    GroupMetadata
    | ConnectorsTasksMetadata
    | MemberMetadata
    | TargetAssignment
    | CurrentAssignment
    | GroupConfiguration
    | ConnectorConfig
    | TaskConfigs
    | TargetState
    | OffsetsAltered
    | TaskStatus
    | ScheduledRebalance
    | Operator
    | Loss
    | GroupDeletion
    | OwnerBegan
    | OwnerResigned
    | ClassicGroup
    | ConsumerRecord
    | ConfiguredPart
    | TargetPart
    | CurrentPart
)
Head = ConnectorsTasksMetadata | TargetAssignment | CurrentAssignment
"""The facts whose resources may lie in parts, see `record_parts.py`.

How many those are is the log's business: two facts that say the same are equal, however they lie.
"""
HEADS: Final = (ConnectorsTasksMetadata, TargetAssignment, CurrentAssignment)
RecordPart = ConfiguredPart | TargetPart | CurrentPart
Record = ControlRecord | OffsetRecord | Tombstone
