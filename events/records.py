"""The records of the log: one class for each kind of fact that a group keeps.

The names are those of the proposal, without its prefix. A `Tombstone` deletes a key. Each group has
two logs: an `OffsetRecord` goes to its offset log (`commits.py`), all others to its control log.
Those of one connector are in `connectors.py`, those of consumers in `kafka/`, those of the group
and its members here.

The names of the fields are their names in the log, which never change. A field with a default may
be missing there: it was added later, or is rarely set. All times are wall clock, in ms since 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .commits import OffsetRecord
from .connectors import ConnectorConfig, OffsetsAltered, TargetState, TaskConfigs, TaskStatus
from .kafka.consumers import ConsumerRecord
from .model import (
    CONNECTOR,
    NOTHING,
    Cause,
    ClassicMember,
    ClassicMetadata,
    ClientAssignor,
    Grants,
    Key,
    MemberState,
    Resource,
    Resources,
    Scope,
    Succession,
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


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member joined, or changed what it says of itself (key type 5).

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
    client_id: str = ""
    client_host: str = ""
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
        """By what people know its worker: the url, or the member id where there is none."""
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
    assignor_metadata: bytes = b""
    unplaceable: Mapping[Resource, str] = field(default_factory=dict[Resource, str])
    """What nobody is to have, each with the reason."""
    computed_by: str = ""
    """The id of the member that computed it, `coordinator` where no member did."""
    time_ms: int = 0
    error: str = ""
    failures: int = 0
    retry_at_ms: int = 0
    parts: int = field(default=0, compare=False)
    """Into how many parts `members` and `unplaceable` went; 0: they are all here."""


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """A member took a step towards its target (key type 7)."""

    member_id: str
    member_epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Grants
    pending: Grants
    """What it is asked to give up, and has not said yet that it did."""
    parts: int = field(default=0, compare=False)
    """Into how many parts `assigned` and `pending` went; 0: they are all here."""


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
    draining: bool = False
    expected_back_ms: int = 0
    weight: int = 1
    pins: tuple[str, ...] = ()
    time_ms: int = 0
    actor: str | None = None
    removing: str = ""
    gently: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """A member that held work was lost, or left and may come back (key type 23).

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


@dataclass(frozen=True, slots=True)
class ConfiguredPart:
    """Those of some connectors that are configured (key type 27); its head is key type 4."""

    number: int
    configured: Resources


@dataclass(frozen=True, slots=True)
class TargetPart:
    """The part of a target for some connectors (key type 28); its head is key type 6."""

    number: int
    members: Mapping[str, Resources]
    """By member id: what each is to have of these connectors; a member without any is left out."""
    unplaceable: Mapping[Resource, str] = field(default_factory=dict[Resource, str])


@dataclass(frozen=True, slots=True)
class CurrentPart:
    """The part of a member's step for some connectors (key type 29); its head is key type 7."""

    member_id: str
    number: int
    assigned: Grants
    pending: Grants


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The fact of that kind and key no longer holds; keys are spelled as in `key_of`."""

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
