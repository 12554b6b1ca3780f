"""The values a group is made of.

All of them are frozen: a decision can be weighed against a group without any fear that
the weighing alters it. The words are those of the protocol.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

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
        """Tell a task from a connector."""
        return self.task != CONNECTOR


Resources = frozenset[Resource]
NOTHING: Resources = frozenset()

Grants = Mapping[Resource, int]
"""Resources, each with its grant epoch: the member epoch at which its holder was granted it."""


class MemberState(IntEnum):
    """How far a member has come on its way to the target; the numbers are those on disk."""

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


class GroupState(Enum):
    """What a group is doing; computed from its epochs and members, never stored."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class Why(Enum):
    """What made a group epoch rise."""

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
    OPERATOR = "operator"
    UNKNOWN = "unknown"
    """A cause that a later version wrote."""


class Scope(Enum):
    """What an operator's order is about."""

    WORKER = "worker"
    RESOURCE = "resource"


class Cause(NamedTuple):
    """Why something happened, and to whom: `session-expired W2`."""

    why: Why
    subject: str = ""

    def __str__(self) -> str:
        """Return the form in which causes stand in logs, stories and the CLI."""
        return f"{self.why.value} {self.subject}".rstrip()


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
    generation: int

    def __str__(self) -> str:
        """Return the form that is fit for a folder's name."""
        return f"{self.grant_epoch}-{self.generation}"


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The config of one task, and the generation of TaskConfigs that last changed it."""

    config: Mapping[str, str]
    generation: int


class RunState(Enum):
    """What a connector or a task is doing, in Connect's words."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


BATCHES_RUN = "batches run"
"""The reason in the status that marks the first batch under a token."""

Key = tuple[str | int, ...]
"""What tells a fact of the log from others of its kind."""

LONGEST_PARTITION = 200
"""Bytes of a source partition that stand in a key; a digest tells the remainder."""

Scalar = str | int | float | bool | None
Document = Mapping[str, Scalar]
"""A source partition or a source offset: a flat JSON object, as in Connect's offsets API."""


def identity(partition: Document) -> str:
    """Return a source partition's one spelling, by which it is known and ordered."""
    return ",".join(f"{key}={partition[key]!r}" for key in sorted(partition))


def spell_partition(partition: Document) -> str:
    """Return a source partition as keys spell it: short, and without the NUL that ends a part."""
    spelled = identity(partition).replace("\0", "\\0")
    packed = spelled.encode()
    if len(packed) <= LONGEST_PARTITION:
        return spelled
    digest = hashlib.blake2b(packed, digest_size=16).hexdigest()
    return packed[:LONGEST_PARTITION].decode(errors="ignore") + "#" + digest


@dataclass(frozen=True, slots=True)
class Advance:
    """One source partition's step: from the logged offset (None: none yet) to a new one."""

    partition: Document
    start: Document | None
    end: Document | None


class CommitId(NamedTuple):
    """Which batch of which task, under which token; batches count from 0 within a token."""

    connector: str
    task: int
    token: Token
    batch: int


class Part(NamedTuple):
    """One file of a batch, by the path that it has once it is published."""

    path: str
    """Relative to the sink's root."""

    bytes: int
    rows: int = -1
    """As the file itself says; -1: its format does not tell."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a batch staged: where it lies, how much it is, and every file of it.

    `staging` is relative to `root`, the sink's own root; a batch without rows has no files.
    """

    root: str
    staging: str
    rows: int
    bytes: int
    files: int
    parts: tuple[Part, ...] = ()
    """The files by name; empty in what was written before they were named."""

    claim: str = ""
    """The claim on the sink under which it was staged; "" if the sink knows none."""


@dataclass(frozen=True, slots=True)
class Lag:
    """What a task has still to read: the ranges of its source (files, say), and their bytes."""

    ranges: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A batch that is to count: its steps on the source's offsets, and what it staged."""

    commit_id: CommitId
    advances: tuple[Advance, ...]
    manifest: Manifest
    rows_in: int
    """Rows that were read for it."""
    lag: Lag | None = None
    """What the source held beyond this batch when the batch was planned; None: not known."""
