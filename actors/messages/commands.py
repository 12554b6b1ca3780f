"""The commands of a group, from others or from its own timers, and their answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from .asks import AskReply, MemberAsk
from .classic import ClassicCall
from .computing import EndComputation, Install, InstallReply, Prepare, PrepareReply
from .consumers import TopicsSeen
from .errors import Error
from .groups import HostReply, NodeReply, RemoveGroup
from .members import (
    CommitOffsets,
    ExternalStateRemoved,
    Heartbeat,
    HeartbeatReply,
    PutTaskConfigs,
    ReportStatus,
)
from .orders import (
    FROM_PEOPLE,
    ConfigureGroup,
    ConnectorOrder,
    DeleteGroup,
    EndMember,
    MoveOwner,
    OperatorCommand,
    ReleaseSeats,
)

NODE_LIVES_MS: Final = 5_000
"""For how long after its last heartbeat a node counts as there; it sends one a second."""


@dataclass(frozen=True, slots=True)
class CommandReply:
    """The group answers a command; `log_offset` is the end of the log that holds its effect."""

    error: Error
    message: str = ""
    log_offset: int = 0
    created: bool = False
    """Whether the command created its object."""


@dataclass(frozen=True, slots=True)
class CopiesView:
    """How far the copies of a group's logs are on a node that does not own the group."""

    behind_entries: int
    """How many entries are missing there, as far as the owner's answers tell."""
    in_step_ms: int | None
    """How long ago both had all that counted; None: not yet."""
    clock_ms: int | None
    """How far the node's clock is ahead of the owner's, in ms; None: nothing new was written."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node of a cluster, as it reports itself."""

    name: str
    address: str
    """Where other nodes and Kafka's clients reach it, `host:port`; empty: it has no listener."""
    place: str
    """What the urls of its workers begin with."""
    version: str
    copies: CopiesView | None = None
    """None: it owns the group."""
    heard_ms: int = 0
    """How long ago the owner heard this of it."""
    cluster: str = ""
    """The public id of its cluster, by the key; empty: an earlier version does not tell it."""


@dataclass(frozen=True, slots=True)
class NodeHeartbeat:
    """A node that does not own the group is there; as a broker's heartbeat is to its controller."""

    group_id: str
    node: NodeReport


@dataclass(frozen=True, slots=True)
class HeardNodes:
    """The owner answers a node: which nodes it has heard of, itself among them."""

    nodes: tuple[NodeReport, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestedCommand:
    """REST asks a group's actor for a command, with the id of the request for its log."""

    command: FROM_PEOPLE
    request: str


@dataclass(frozen=True, slots=True)
class DescribeTraffic:
    """REST asks a group's actor for its counts."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """The group's actor answers: heartbeats since it started, and those held now."""

    heartbeats: int
    held: int
    """The heartbeats that wait for news now."""
    expired_offsets: int = 0
    """The offsets of Kafka's clients that have expired since it started."""
    deleted_offsets: int = 0
    """Those that were deleted since then, the expired ones among them."""
    heartbeat_ages: Mapping[str, int] = field(default_factory=dict[str, int])
    """How old the last heartbeat of each worker is, in ms, by member id. Those that are away are
    left out, and those that this process has not heard of yet."""
    heartbeat_interval_ms: int = 0
    """How often a worker sends one if there is no news; 0: the group has no workers."""


@dataclass(frozen=True, slots=True)
class CompactHistory:
    """REST asks a group's actor to trim the history of its control log now, slice by slice.

    What is None is kept as the settings of the node say. `principal` is who asked.
    """

    group_id: str
    keep_ms: int | None
    keep_epochs: int | None
    keep_bytes: int | None
    principal: str
    request: str
    """The id of the request, for the log."""


@dataclass(frozen=True, slots=True)
class DescribeCompaction:
    """REST asks a group's actor how far the compaction is that was asked for last."""

    group_id: str


class CompactionState(StrEnum):
    """The states of a compaction that is asked for."""

    NONE = "none"
    """None was asked for since the process of the group started."""
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    """It ended before all was done."""


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """The group's actor answers: the compaction that was asked for last."""

    state: CompactionState
    trimmed: int = 0
    """How many entries it has trimmed."""
    why: str = ""
    """Why it was stopped."""
    is_refused: bool = False
    """Whether the one that was asked for just now is not begun, since another one is running."""


@dataclass(frozen=True, slots=True)
class AnswerHeld:
    """A client has sent its next request: its heartbeat is answered now if it is held.

    The sender has to be that of the heartbeat.
    """

    member_id: str


@dataclass(frozen=True, slots=True)
class ExpireSession:
    """A member's session has expired.

    Only the seat that was taken at `joined_epoch` ends by it; None: whichever has that member
    id now.
    `silent_ms` is the time since its last word; 0: this process of the group has heard none.
    """

    member_id: str
    joined_epoch: int | None = None
    silent_ms: int = 0


@dataclass(frozen=True, slots=True)
class ExpireRebalance:
    """A member did not revoke in time the resources of the record at `offset`."""

    member_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class ReleaseParked:
    """The deadline of parked work has come.

    `until_ms` is the latest deadline that has come, whatever the wall clock says by now.
    """

    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class ContinueMoves:
    """The deferred moves of a target are due.

    `until_ms` is the time that has come, whatever the wall clock says by now.
    """

    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class RetryAssignor:
    """The back-off after a failed computation is over.

    `until_ms` is the time that has come, whatever the wall clock says by now.
    """

    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class EndExpectation:
    """The time is over for which a lost worker's work was kept."""

    worker: str
    """The name of its order."""
    until_ms: int


@dataclass(frozen=True, slots=True)
class TimeOutAssignor:
    """The member chosen for the computation of that number took too long over it."""

    number: int


@dataclass(frozen=True, slots=True)
class EndInterval:
    """The assignment interval since the last computation is over: the next may begin."""


@dataclass(frozen=True, slots=True)
class EndInitialDelay:
    """The initial rebalance delay of a group that was empty is over: it may have a target."""


@dataclass(frozen=True, slots=True)
class FinishDeletion:
    """A connector is being deleted: delete its config once nothing runs, all is published.

    Nor may its source have anything to forget.
    """

    connector: str


@dataclass(frozen=True, slots=True)
class FinishStop:
    """A connector is being stopped: record it once nothing runs, and all is published."""

    connector: str


@dataclass(frozen=True, slots=True)
class RecordAlteration:
    """A process begins: an earlier one may have changed offsets without a record of it."""

    connector: str


@dataclass(frozen=True, slots=True)
class FreeSeat:
    """Release the resources that an older version left in the seat of a member that is away."""

    member_id: str


TimerCommand = (
    ExpireSession
    | ExpireRebalance
    | ReleaseParked
    | ContinueMoves
    | RetryAssignor
    | EndExpectation
    | TimeOutAssignor
    | EndInterval
    | EndInitialDelay
    | FinishDeletion
    | FinishStop
    | RecordAlteration
    | FreeSeat
)
"""What a group says to itself when time has passed; nobody else may."""

GroupCommand = (
    Heartbeat
    | Prepare
    | Install
    | ConnectorOrder
    | PutTaskConfigs
    | ReportStatus
    | ExternalStateRemoved
    | ConfigureGroup
    | DeleteGroup
    | EndMember
    | ReleaseSeats
    | OperatorCommand
    | MoveOwner
)
"""What may be asked of a group."""

ConnectRequest = GroupCommand | CommitOffsets
"""What may be asked of a group but for its classic members: of its control log, or its offset log.
"""

GroupRequest = ConnectRequest | MemberAsk | ClassicCall | AnswerHeld
"""What may be asked of a group's process."""

Command = GroupCommand | TimerCommand | TopicsSeen | EndComputation | RemoveGroup
"""What leads to a decision."""

Reply = (
    HeartbeatReply | PrepareReply | InstallReply | CommandReply | AskReply | HostReply | NodeReply
)

Address = Any
"""Whoever waits for an answer, as the process of a group knows it; None: nobody does."""


@dataclass(frozen=True, slots=True)
class AddressedReply:
    """A reply and its recipient; it is sent once its records are durable."""

    to: Address
    reply: Reply
