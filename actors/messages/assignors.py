"""What the workers of a node ask its assignor process, what it answers, and the values in both.

A member asks with its member id: the process keeps a set of assignors for each.
"""

from dataclasses import dataclass

from ...events.model import NOTHING, ClientAssignor, Resources
from .computing import Assignment, Snapshot


@dataclass(frozen=True, slots=True)
class Worker:
    """What is known of the worker that an assignor speaks for.

    Its capacity is relative to that of others, and 0 until its engine can take work.
    """

    name: str
    zone: str | None = None
    tags: frozenset[str] = frozenset()
    capacity: int = 1


@dataclass(frozen=True, slots=True)
class Metadata:
    """What an assignor says for its worker; every member's comes with the snapshot.

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
    """What the worker was given, and what its assignor's last assignment had to say to all.

    `error` is why the last attempt at a target failed, if it did.
    """

    member_id: str
    resources: Resources = NOTHING
    error: str = ""
    version: int = 0
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class DescribeAssignors:
    """A worker asks the assignor process what its heartbeats are to say of its assignors."""

    member_id: str
    worker: Worker
    number: int
    """Which of the worker's questions this is; the answer names it."""


@dataclass(frozen=True, slots=True)
class DescribeAssignorsReply:
    """The assignor process answers the worker what its heartbeats are to say."""

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
    """A worker has the assignor process call `on_assignment`: its member was given this."""

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
    """The supervisor has the assignor process drop all that it keeps for a worker; no answer.

    The worker is gone for good.
    """

    worker: str
    """Its name."""
