"""The values of a group; all of them are frozen. Their names are those of the protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, NamedTuple

CONNECTOR = -1
"""The task number that stands for the connector itself, as on Connect's wire."""


class Resource(NamedTuple):
    """A connector, or one task of it; tasks count from 0 (int32)."""

    connector: str
    task: int = CONNECTOR

    def __str__(self) -> str:
        """Return the short form: `flights` for a connector, `flights-0` for its first task."""
        return self.connector if self.task == CONNECTOR else f"{self.connector}-{self.task}"

    @property
    def is_task(self) -> bool:
        """Whether it is a task, not a connector."""
        return self.task != CONNECTOR


Resources = frozenset[Resource]
NOTHING: Resources = frozenset()

Grants = Mapping[Resource, int]
"""Resources, each with its grant epoch: the member epoch at which its holder was granted it."""


class MemberState(IntEnum):
    """A member's progress towards its target; numbers as on disk."""

    STABLE = 0
    """Reconciled: it holds its whole target assignment."""

    UNREVOKED = 1
    """It was asked to give something up and has not yet said that it did."""

    UNRELEASED = 2
    """It gave up all it had to, and waits for what others still hold."""

    AWAY = 3
    """It left for a while: it runs nothing, and its place is kept for it."""

    UNKNOWN = 127
    """A state that a later version wrote; the member must come back empty."""


class GroupType(Enum):
    """The protocol of a group's members, which decides who assigns."""

    CONNECT = "connect"
    """ConnectGroupHeartbeat: the coordinator reconciles each member by itself."""

    CLASSIC = "classic"
    """JoinGroup and SyncGroup: all wait for each other, and one of them assigns."""

    CONSUMER = "consumer"
    """ConsumerGroupHeartbeat: as connect groups, with partitions of topics as resources."""


class GroupState(Enum):
    """The state of a group; computed from its epochs and members, never stored."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class Why(Enum):
    """The cause of a rise of the group epoch."""

    MEMBER_JOINED = "member-joined"
    MEMBER_LEFT = "member-left"
    SESSION_EXPIRED = "session-expired"
    PROCESS_ENDED = "process-ended"
    REBALANCE_EXPIRED = "rebalance-expired"
    MEMBER_REMOVED = "member-removed"
    ASSIGNORS_CHANGED = "assignors-changed"
    REASON_GIVEN = "reason-given"
    METADATA_CHANGED = "metadata-changed"
    CONNECTOR_ADDED = "connector-added"
    CONNECTOR_DELETED = "connector-deleted"
    CONNECTOR_STOPPED = "connector-stopped"
    CONNECTOR_RESUMED = "connector-resumed"
    TASKS_CHANGED = "tasks-changed"
    DELAY_EXPIRED = "delay-expired"
    MOVES_DUE = "moves-due"
    ASSIGNOR_RETRY = "assignor-retry"
    WORKER_CORDONED = "worker-cordoned"
    WORKER_UNCORDONED = "worker-uncordoned"
    WORKER_DRAINED = "worker-drained"
    WORKER_EXPECTED = "worker-expected"
    PLACEMENT_CHANGED = "placement-changed"
    REBALANCE_REQUESTED = "rebalance-requested"
    GROUP_UPGRADED = "group-upgraded"
    """A worker joined a classic group by the connect protocol: the subject."""
    GROUP_DOWNGRADED = "group-downgraded"
    """The last member of the connect protocol went, and classic ones are left: the subject."""
    SUBSCRIPTION_CHANGED = "subscription-changed"
    TOPICS_CHANGED = "topics-changed"
    OPERATOR = "operator"
    UNKNOWN = "unknown"
    """A cause that a later version wrote."""


class Scope(Enum):
    """The subject of an operator's order."""

    WORKER = "worker"
    RESOURCE = "resource"


class Cause(NamedTuple):
    """The cause of an event, and its subject: `session-expired W2`."""

    why: Why
    subject: str = ""
    """The member, worker or resource that it is about."""

    def __str__(self) -> str:
        """Return the text of a cause in logs, stories and the CLI."""
        return f"{self.why.value} {self.subject}".rstrip()


class AssignorData(NamedTuple):
    """The message of an assignor to a member (the proposal's Version and Metadata)."""

    version: int = 0
    """How `metadata` is written; any number, for the assignor's own use."""
    metadata: bytes = b""


NO_DATA: Final = AssignorData()


@dataclass(frozen=True, slots=True)
class ClientAssignor:
    """One assignor that a member can run, with the versions it reads and the one it writes.

    `reason` asks for a rebalance when it changes to a non-zero code (0 none, 1 metadata
    changed, 2 scheduled rebalance due, 3 manual); `metadata` is opaque to the coordinator.
    """

    name: str
    minimum_version: int = 0
    maximum_version: int = 0
    version: int = 0
    reason: int = 0
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class Succession:
    """How a static member came back to its seat (PROTOCOL §8).

    `returns` counts how often somebody did; targets up to `assignment_epoch` know the seat
    by `target_id`, the member id that it had then.
    """

    returns: int
    target_id: str
    assignment_epoch: int


class Token(NamedTuple):
    """The fencing token of a task's work: it never goes back for one task.

    Tokens are compared as pairs: a later grant beats any generation of an earlier one.
    """

    grant_epoch: int
    """The group epoch at which the task was granted to its worker."""
    generation: int
    """The generation of the task's config."""

    def __str__(self) -> str:
        """Return the form that is fit for a folder's name."""
        return f"{self.grant_epoch}-{self.generation}"


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The config of one task, and the generation of TaskConfigs that last changed it."""

    config: Mapping[str, str]
    generation: int


class RunState(Enum):
    """The state of a connector or a task, in Connect's words."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


class ErrorClass(Enum):
    """Who has to fix an error: the first word of a status's text."""

    CONFIG = "config"
    """Whoever wrote the config: it is not tried again."""

    INPUT = "input"
    """Whoever made the data that cannot be read, or written as it is."""

    OUTSIDE = "outside"
    """Whoever runs what is read from or written to; it may come back by itself."""

    BUG = "bug"
    """Whoever wrote the code: a plugin's, or ours."""

    @classmethod
    def of(cls, reason: str) -> "ErrorClass | None":
        """Return the class of the error in a status; None: it has no error."""
        word, is_told, _ = reason.partition(": ")
        return next((each for each in cls if is_told and each.value == word), None)


class AutoRestart(NamedTuple):
    """How often a worker has restarted something that failed, and when last (wall clock, ms).

    What the restart window has forgiven is not counted.
    """

    times: int = 0
    last_ms: int = 0


NEVER_RESTARTED = AutoRestart()

BATCHES_RUN = "batches run"
"""The reason in the status that marks the first batch under a token."""
NOTE = "note: "
"""How the reason in the status of something that runs begins if nothing is wrong."""

Key = tuple[str | int, ...]
"""What tells a fact of the log from others of its kind."""


CONNECT = "connect"
"""The protocol type of groups of Connect's workers, as they say it when they join."""


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """A protocol that a classic member offers: its name, and the member's metadata in it."""

    name: str
    metadata: bytes

    @property
    def size(self) -> int:
        """How many bytes it has, the name included."""
        return len(self.name) + len(self.metadata)


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """The offers of a member of a connect group that speaks the classic protocol."""

    protocols: tuple[ClassicProtocol, ...]
    """What it offered when it joined last, its first choice first."""
    protocol: str
    """The protocol that it was told to use."""
    spoke: str = ""
    """What it spoke when it joined last; empty: it was new."""


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member of a group of Kafka's classic protocol, with what the generation gives it."""

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]
    """What it offers, its first choice first."""
    instance_id: str | None = None
    """The name of its static seat; None: it is a dynamic member."""
    client_id: str = ""
    client_host: str = ""
    assignment: bytes = b""
    """What the leader gave it, as the leader wrote it."""
    url: str = ""
    """Where its REST interface is, if it is a worker of Connect."""
    assigned: Grants = field(default_factory=dict[Resource, int])
    """What a worker of Connect runs by now, each since the generation that gave it, unbroken."""
    pending: Grants = field(default_factory=dict[Resource, int])
    """What it was told to revoke, and named when it joined last."""
    returns: int = 0
    """How often another process took its static seat over, and its work, within a generation."""


LONGEST_TOPIC: Final = 249
"""Characters of a topic's name."""


def is_topic_name(text: str) -> bool:
    """Return whether a text can be the name of a topic, or its id, and part of a key of the log."""
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return 0 < len(text) <= LONGEST_TOPIC and "\0" not in text
