"""The calls of a node's workers to its assignor process, its answers, and the values in both.

A member asks with its member id: the process keeps a set of assignors for each.
"""

from dataclasses import dataclass

from ...events.model import NOTHING, ClientAssignor, Resources
from .computing import Assignment, Snapshot


@dataclass(frozen=True, slots=True)
class Worker:
    """The facts about the worker that an assignor serves.

    Its capacity is relative to that of others, and 0 until its engine can take work.
    """

    name: str
    zone: str | None = None
    tags: frozenset[str] = frozenset()
    capacity: int = 1


@dataclass(frozen=True, slots=True)
class Metadata:
    """An assignor's metadata for its worker; the snapshot has that of every member.

    `version` is how `content` is written, within the assignor's range; other content, or
    another `reason` than 0 (2: a scheduled rebalance is due, 3: asked for by hand), has the
    group compute a new target. The content is at most 64 KiB; where it is a JSON object with
    `capacity` and `tags` (`plain_metadata`), the group knows these of the worker.
    """

    version: int = 0
    reason: int = 0
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The resources assigned to the worker, and the assignor's last message to all.

    `error` is why the last attempt at a target failed, if it did.
    """

    member_id: str
    resources: Resources = NOTHING
    error: str = ""
    version: int = 0
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class DescribeAssignors:
    """A worker asks the assignor process for its assignors' metadata, for its heartbeats."""

    member_id: str
    worker: Worker
    number: int
    """Which of the worker's questions this is; the answer names it."""


@dataclass(frozen=True, slots=True)
class DescribeAssignorsReply:
    """The assignor process answers with the metadata for the worker's heartbeats."""

    number: int
    """That of the question."""
    assignors: tuple[ClientAssignor, ...]
    """In the order of preference."""
    errors: tuple[str, ...] = ()
    """Why others say nothing."""


@dataclass(frozen=True, slots=True)
class ComputeAssignment:
    """A worker has the assignor process compute an assignment of the group's snapshot.

    The snapshot names the assignor.
    """

    snapshot: Snapshot
    member_id: str = ""
    """The member that computes: its set of assignors is asked."""


@dataclass(frozen=True, slots=True)
class ComputeAssignmentReply:
    """The assignor process answers the worker with the assignment, or why there is none."""

    group_epoch: int
    """That of the snapshot."""
    assignment: Assignment | None
    error: str = ""
    snapshot_id: str = ""


@dataclass(frozen=True, slots=True)
class NotifyAssignment:
    """A worker asks the assignor process to call `on_assignment` with its new assignment."""

    assignor: str
    """The assignor's name."""
    assignment: MemberAssignment
    number: int = 0
    """Which of the worker's notices this is; the answer names it."""


@dataclass(frozen=True, slots=True)
class NotifyAssignmentReply:
    """The assignor process answers the worker: the call is over, and it has survived that."""

    number: int
    """That of the notice."""


@dataclass(frozen=True, slots=True)
class ForgetWorker:
    """The supervisor asks the assignor process to drop a worker's state; no answer.

    The worker is gone for good.
    """

    worker: str
    """Its name."""
