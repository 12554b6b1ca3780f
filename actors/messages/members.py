"""The messages of a worker to its group, and their answers.

ConnectGroupHeartbeat, the task configs of a connector, statuses of its work, and commits of
batches.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...events.commits import Commit, CommitId
from ...events.model import (
    NEVER_RESTARTED,
    NO_DATA,
    AssignorData,
    AutoRestart,
    ClientAssignor,
    Resource,
    Resources,
    RunState,
    Token,
)
from .consumers import Subscribed
from .errors import Error
from .pickling import pickled_by_values

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
TEMPORARY_LEAVE_EPOCH = -2
NO_COORDINATOR_EPOCH = -1
"""The coordinator epoch of a sender that does not know one yet."""


@dataclass(frozen=True, slots=True)
class ReadConfigs:
    """The work of a group by configs in another log, as a member has read it (PROTOCOL §19)."""

    configured: Resources
    """All connectors and tasks that are to run by them."""
    offset: int
    """How far it has read them; the group follows whoever has read further."""


@pickled_by_values
@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A member's heartbeat; it joins with epoch 0, and leaves with -1, or -2 for a while.

    None and -1 stand for "unchanged since the last heartbeat". `incarnation` is one
    process; `sequence` counts its requests; `coordinator_epoch` is the one of the last answer.
    """

    group_id: str
    member_id: str
    member_epoch: int
    incarnation: str = ""
    """The id of the member's process."""
    sequence: int = 0
    """The number of the request among those of its process."""
    instance_id: str | None = None
    rack: str | None = None
    url: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = -1
    """The session by which the member fences itself; the group waits at least as long."""
    assignors: tuple[ClientAssignor, ...] | None = None
    """The client assignors, the preferred one first; None: unchanged."""
    server_assignor: str | None = None
    """The name of the server assignor that the member votes for."""
    owned: tuple[Resource, ...] | None = None
    """The resources that the member owns; None: unchanged."""
    node: str | None = None
    """The id of the node that the member's process runs on."""
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """The coordinator's process that sent the last reply."""
    subscription: Subscribed | None = None
    """The subscription of a consumer."""
    configs: ReadConfigs | None = None
    """What is to run, of a worker that is not of the node; None: unchanged, or it does not know."""

    @property
    def is_bare(self) -> bool:
        """Return whether the request has no field that could change anything of its member."""
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
            and self.node is None
            and self.subscription is None
        )

    @property
    def is_full(self) -> bool:
        """Return whether the request has all fields, so that its reply must have all as well."""
        if self.member_epoch == JOIN_EPOCH:
            return True
        names_assignor = self.assignors is not None or self.server_assignor is not None
        says_enough = names_assignor or self.subscription is not None
        return says_enough and self.owned is not None and self.rebalance_timeout_ms != -1


@pickled_by_values
@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The group answers a heartbeat; `assignment` is None if it is unchanged.

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
    """For how long the member must send nothing."""
    session_timeout_ms: int = 0
    """By which session the member is to fence itself from now on; 0: as before."""
    log_offset: int = 0
    """The end of the log on which the reply is based."""
    assignment: Resources | None = None
    """The granted resources; None: unchanged."""
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """Which process of the coordinator says so: the next request is to name it."""
    config_offset: int = -1
    """How far a worker has to have read the configs for this; -1: they are in the group's log."""
    data: AssignorData = NO_DATA
    """What the assignor says to the member with its assignment; a node's worker reads the log."""
    error_code: int = 0
    """The error of the last attempt to compute, where a client's assignor gave one."""


@dataclass(frozen=True, slots=True)
class PutTaskConfigs:
    """A member sends its connector's task configs; only the holder may."""

    group_id: str
    member_id: str
    connector: str
    token: Token
    """The fencing token of the connector's run that split the work."""
    configs: tuple[Mapping[str, str], ...]
    """One config for each task, in order."""


@dataclass(frozen=True, slots=True)
class ExternalStateRemoved:
    """A member reports that a deleted connector has no external state any more.

    It is the one whose config was set at `config_ms`, wall clock: none that was made since.
    """

    group_id: str
    member_id: str
    connector: str
    config_ms: int


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """The state of one resource at its worker, and its time by the worker's wall clock."""

    resource: Resource
    token: Token
    state: RunState
    at_ms: int
    reason: str = ""
    """The error or remark of the resource, for people."""
    restarts: AutoRestart = NEVER_RESTARTED


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """A member reports states of resources; an older token overwrites no newer one."""

    group_id: str
    member_id: str
    updates: tuple[StatusUpdate, ...]


@pickled_by_values
@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """A member commits batches of its tasks, and names those published since."""

    group_id: str
    member_id: str
    commits: tuple[Commit, ...]
    published: tuple[CommitId, ...] = ()
    """Committed batches that were published since."""
    number: int = 0
    """Which of the member's messages this is; the answer names it."""


@pickled_by_values
@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """The verdict on one batch; FENCED ends its task."""

    commit_id: CommitId
    error: Error
    message: str = ""


@pickled_by_values
@dataclass(frozen=True, slots=True)
class CommitReply:
    """The group answers `CommitOffsets`: the verdicts, in the order of the commits."""

    verdicts: tuple[CommitVerdict, ...]
    number: int = 0
    error: Error = Error.NONE
    message: str = ""
