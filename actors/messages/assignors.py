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
class Introduce:
    """Ask what a member's heartbeats are to say of its assignors; `number` tells the answer."""

    member_id: str
    worker: Worker
    number: int


@dataclass(frozen=True, slots=True)
class Introduced:
    """The answer to `Introduce`: what a member's heartbeats are to say of its assignors."""

    number: int
    """That of the question."""
    assignors: tuple[ClientAssignor, ...]
    """In the order of preference."""
    errors: tuple[str, ...] = ()
    """Why others say nothing."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Compute an assignment of this snapshot, with the assignor that it names."""

    snapshot: Snapshot
    member_id: str = ""
    """The member that computes: its set of assignors is asked."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The answer to `Assign`: the assignment, or why there is none."""

    group_epoch: int
    """That of the snapshot."""
    assignment: Assignment | None
    error: str = ""
    snapshot_id: str = ""


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop all that is kept for a worker, by its name: it is gone for good."""

    worker: str


@dataclass(frozen=True, slots=True)
class Given:
    """Tell an assignor, by its name, what its member was given; `number` tells the answer."""

    assignor: str
    assignment: MemberAssignment
    number: int = 0


@dataclass(frozen=True, slots=True)
class Noted:
    """The answer to `Given`: the assignor was told, and its process has survived that."""

    number: int
