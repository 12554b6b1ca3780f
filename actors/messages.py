"""What the actors say to one another.

Messages cross process borders, so they are frozen, hold only values of `events.model`, and
are found by name on the other side. Commands change a group, if anything does. None of
them carries the time: the coordinator's own clock is handed to the rules with each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..events.model import (
    Assignor,
    Commit,
    CommitId,
    Grants,
    Resource,
    Resources,
    RunState,
    Token,
)
from .errors import SUCCESS as SUCCESS  # noqa: PLC0414  (a word of messages as well)
from .errors import Error as Error  # noqa: PLC0414

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
TEMPORARY_LEAVE_EPOCH = -2


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """ConnectGroupHeartbeat: a member is alive, joins (epoch 0), or leaves (-1).

    None and -1 stand for "unchanged since the last heartbeat". `incarnation` is one
    process; `sequence` counts its requests.
    """

    group_id: str
    member_id: str
    member_epoch: int
    incarnation: str = ""
    sequence: int = 0
    instance_id: str | None = None
    rack: str | None = None
    url: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = -1
    """By which session the member fences itself; the group waits no shorter."""
    assignors: tuple[Assignor, ...] | None = None
    server_assignor: str | None = None
    owned: tuple[Resource, ...] | None = None

    @property
    def is_bare(self) -> bool:
        """Tell whether the request says nothing of its member that could be new."""
        return (
            self.assignors is None
            and self.rebalance_timeout_ms == -1
            and self.session_timeout_ms == -1
            and self.server_assignor is None
            and self.instance_id is None
            and self.rack is None
            and self.url is None
            and self.client_id is None
            and self.client_host is None
        )

    @property
    def is_full(self) -> bool:
        """Tell whether the request says everything, so that its answer must as well."""
        if self.member_epoch == JOIN_EPOCH:
            return True
        names_assignor = self.assignors is not None or self.server_assignor is not None
        return names_assignor and self.owned is not None and self.rebalance_timeout_ms != -1


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The answer; `assignment` is None where nothing changed for the member.

    `log_offset` is the end of the log that the answer rests on.
    """

    error: Error
    member_id: str
    member_epoch: int
    incarnation: str = ""
    sequence: int = 0
    message: str = ""
    heartbeat_interval_ms: int = 0
    throttle_time_ms: int = 0
    session_timeout_ms: int = 0
    """By which session the member is to fence itself from now on; 0: as before."""
    log_offset: int = 0
    assignment: Resources | None = None


@dataclass(frozen=True, slots=True)
class ExpireSession:
    """A member was not heard of for a session timeout; the group says so to itself.

    `acknowledged` tells whether the member ever answered for an assignment. Only the seat
    that was taken at `joined_epoch` ends by it; None: whichever has that member id now.
    """

    member_id: str
    acknowledged: bool = True
    joined_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class ExpireRebalance:
    """A member did not give up in time what the record at `offset` asked it to."""

    member_id: str
    offset: int
    acknowledged: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseParked:
    """The deadline of parked work has come; the group says so to itself.

    `until_ms` is the latest deadline that has come, whatever the wall clock says by now.
    """

    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class RetryAssignor:
    """The back-off after a failed computation is over; the group says so to itself."""


@dataclass(frozen=True, slots=True)
class TimeOutAssignor:
    """Who was chosen for the computation of that number took too long over it.

    The group says so to itself.
    """

    number: int


@dataclass(frozen=True, slots=True)
class EndRest:
    """The assignment interval since the last computation is over, the next may begin.

    The group says so to itself.
    """


@dataclass(frozen=True, slots=True)
class Prepare:
    """The chosen member asks for what it needs to compute an assignment."""

    group_id: str
    member_id: str
    member_epoch: int


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member as an assignor sees it."""

    member_id: str
    member_epoch: int
    instance_id: str | None
    url: str
    rack: str | None
    version: int
    reason: int
    metadata: bytes
    owned: Resources
    target: Resources
    joined_epoch: int = 0
    cordoned: bool = False
    """It keeps what it has, and is to be given nothing more."""
    draining: bool = False
    """It is to give up all that it has."""
    worker: str = ""
    """The name by which operators' orders and pins know it."""


@dataclass(frozen=True, slots=True)
class LossView:
    """Work that a member lost and that may be parked until the deadline, wall clock."""

    member_id: str
    instance_id: str | None
    url: str
    resources: Resources
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The group as an assignor sees it: all that an assignment is computed from."""

    group_epoch: int
    assignment_epoch: int
    assignor: str
    assignor_metadata: bytes
    configured: Resources
    members: Mapping[str, MemberView]
    losses: tuple[LossView, ...]
    parked: Grants
    fired: Resources
    now_ms: int
    weights: Mapping[Resource, int] = field(default_factory=dict[Resource, int])
    """What resources weigh that do not weigh 1."""
    pins: Mapping[Resource, tuple[str, ...]] = field(
        default_factory=dict[Resource, tuple[str, ...]]
    )
    """The workers that operators allow for a resource; any where it is not named."""


@dataclass(frozen=True, slots=True)
class PrepareReply:
    """The snapshot to compute from, or why there is none."""

    error: Error
    message: str = ""
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an assignor made of a snapshot."""

    members: Mapping[str, Resources]
    parked: Grants = field(default_factory=dict[Resource, int])
    """Work left out on purpose, each with its deadline, wall clock."""
    unplaceable: Mapping[Resource, str] = field(default_factory=dict[Resource, str])
    """Work that no member can take, each with the reason."""
    version: int = 0
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class Install:
    """The chosen member hands in what it computed, or says why it could not."""

    group_id: str
    member_id: str
    member_epoch: int
    group_epoch: int
    assignment: Assignment | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class InstallReply:
    """Whether the computed assignment is the group's target now."""

    error: Error
    message: str = ""


@dataclass(frozen=True, slots=True)
class PutConnector:
    """Create a connector, or change its config; secret values come sealed.

    With `create_only` an existing connector is left as it is (ALREADY_EXISTS).
    """

    group_id: str
    connector: str
    config: Mapping[str, str]
    create_only: bool = False
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteConnector:
    """Stop a connector for good; its offsets stay, as in Kafka Connect."""

    group_id: str
    connector: str
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class FinishDeletion:
    """Nothing of a deleted connector runs or waits to be published any more."""

    connector: str


@dataclass(frozen=True, slots=True)
class PutTaskConfigs:
    """A connector split its work; only the holder of the connector may say so."""

    group_id: str
    member_id: str
    connector: str
    token: Token
    configs: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """What one resource does at its worker, and since when by the worker's wall clock."""

    resource: Resource
    token: Token
    state: RunState
    at_ms: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """What became of resources at a worker; an older token never overwrites a newer one."""

    group_id: str
    member_id: str
    updates: tuple[StatusUpdate, ...]


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """End an empty group: nothing of it stays but its history."""

    group_id: str
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigureGroup:
    """Change settings of a group while it runs; None takes one back to the node's."""

    group_id: str
    configs: Mapping[str, str | None]
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Cordon:
    """Give a worker nothing more; with `drain` have it give up what it has as well.

    A worker is named by member id, instance id, url or client id.
    """

    group_id: str
    worker: str
    drain: bool = False
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Let a worker be given work again."""

    group_id: str
    worker: str
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Expect:
    """A worker is expected back in so many milliseconds; its work waits for it until then."""

    group_id: str
    worker: str
    within_ms: int
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Set what a connector's work, or one task, weighs, and on which workers it may run.

    None leaves a value as it is; weight 1 and no pins are how everything starts.
    """

    group_id: str
    resource: Resource
    weight: int | None = None
    pins: tuple[str, ...] | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Have the group's target computed anew."""

    group_id: str
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """End a member's seat; with `force` also one that still holds work.

    By force it is answered no more, and goes when it must have fenced itself.
    """

    group_id: str
    worker: str
    force: bool = False
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class CommandReply:
    """How a command ended; `log_offset` is the end of the log that holds its effect."""

    error: Error
    message: str = ""
    log_offset: int = 0
    created: bool = False


@dataclass(frozen=True, slots=True)
class DescribeTraffic:
    """Ask a group's actor what went through it."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """The heartbeats since the actor started, and those that it holds until there is news."""

    heartbeats: int
    held: int


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """The batches of a member's tasks that are to count, and those since published."""

    group_id: str
    member_id: str
    commits: tuple[Commit, ...]
    published: tuple[CommitId, ...] = ()
    number: int = 0
    """Which of the member's messages this is; the answer names it."""


@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """Whether one batch counts now; FENCED says that its task must end."""

    commit_id: CommitId
    error: Error
    message: str = ""


@dataclass(frozen=True, slots=True)
class CommitReply:
    """The verdicts, in the order of the commits."""

    verdicts: tuple[CommitVerdict, ...]
    number: int = 0
    error: Error = Error.NONE
    message: str = ""


TimerCommand = (
    ExpireSession
    | ExpireRebalance
    | ReleaseParked
    | RetryAssignor
    | TimeOutAssignor
    | EndRest
    | FinishDeletion
)
"""What a group says to itself; nobody else may."""

OperatorCommand = Cordon | Uncordon | Expect | Place | Rebalance | RemoveMember
GroupCommand = (
    Heartbeat
    | Prepare
    | Install
    | PutConnector
    | DeleteConnector
    | PutTaskConfigs
    | ReportStatus
    | ConfigureGroup
    | DeleteGroup
    | OperatorCommand
)
"""What may be asked of a group."""

Command = GroupCommand | TimerCommand
"""What leads to a decision."""
Reply = HeartbeatReply | PrepareReply | InstallReply | CommandReply | CommitReply
