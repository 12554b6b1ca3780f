"""What people order of a group: its settings, its workers, where its work may run."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...events.model import Resource


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """End an empty group: nothing of it stays but its history."""

    group_id: str
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigureGroup:
    """Change settings of a group while it runs; None takes one back to the node's."""

    group_id: str
    configs: Mapping[str, str | None]
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Cordon:
    """Give a worker nothing more; with `drain` have it give up what it has as well.

    A worker is named by member id, instance id, url or client id.
    """

    group_id: str
    worker: str
    drain: bool = False
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Let a worker be given work again."""

    group_id: str
    worker: str
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Expect:
    """A worker is expected back in so many milliseconds; its work waits for it until then."""

    group_id: str
    worker: str
    within_ms: int
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Set what a connector's work, or one task, weighs, and on which workers it may run.

    None leaves a value as it is; weight 1 and no pins are how everything starts.
    """

    group_id: str
    resource: Resource
    weight: int | None = None
    pins: tuple[str, ...] | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Have the group's target computed anew."""

    group_id: str
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """End a member's seat: once it has given up what it has, or by force.

    By force it is answered no more, and goes when it must have fenced itself.
    """

    group_id: str
    worker: str
    force: bool = False
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class EndMember:
    """A member's process was seen to end, with the engine that was tied to it.

    The supervisor that started the process says so; it ended at `ended_ms`, wall clock.
    """

    group_id: str
    member_id: str
    incarnation: str
    ended_ms: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseSeats:
    """A node comes up and names its static workers; its other seats wait for nobody."""

    group_id: str
    node: str
    """The id of the node, as its workers' seats tell it."""
    instance_ids: frozenset[str]
    place: str = ""
    """What the urls of its workers begin with: seats of earlier versions do not tell their node."""


OperatorCommand = Cordon | Uncordon | Expect | Place | Rebalance | RemoveMember
