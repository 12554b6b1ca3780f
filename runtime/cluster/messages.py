"""What the processes of one node are told, and what they tell the supervisor."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...actors.messages.members import NO_COORDINATOR_EPOCH
from ...events.placement import Abilities
from .spec import AssignorSpec, NodeSpec, WorkerTraits

Address = Any

SUPERVISOR: Final = "supervisor"
"""The name under which a node's supervisor is found."""


@dataclass(frozen=True, slots=True)
class StartWorker:
    """To a worker: what it is, and whom it speaks with.

    Where its assignors are it may hear later.
    """

    name: str
    node: NodeSpec
    group: Address
    assignor: "AssignorAt | None"
    traits: WorkerTraits = field(default_factory=WorkerTraits)


@dataclass(frozen=True, slots=True)
class GroupAt:
    """To a worker: the group is served at another address now, by the process of that number."""

    address: Address
    coordinator_epoch: int = NO_COORDINATOR_EPOCH


@dataclass(frozen=True, slots=True)
class AssignorAt:
    """To a worker: where its assignors are from now on, and in which process."""

    address: Address
    pid: int


@dataclass(frozen=True, slots=True)
class OpenAssignors:
    """To the assignor process: what to load, and where it prints."""

    assignors: AssignorSpec
    log_file: Path


@dataclass(frozen=True, slots=True)
class AssignorUp:
    """From the assignor process: it runs, and is about to load what it was told to."""

    pid: int


@dataclass(frozen=True, slots=True)
class AssignorsOpen:
    """From the assignor process: workers can ask it, or why they cannot."""

    pid: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class AssignorHangs:
    """From a worker: this assignor process owes it an answer for too long."""

    pid: int
    worker: str


@dataclass(frozen=True, slots=True)
class Leave:
    """To a worker: stop everything in good order and go; a static one may keep its seat."""

    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class WorkerUp:
    """From a worker: its process runs, and speaks for a member under this incarnation."""

    name: str
    pid: int
    member_id: str
    incarnation: str = ""


@dataclass(frozen=True, slots=True)
class EngineRuns:
    """From a worker: the process of its engine, which ends with it."""

    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class WorkerSays:
    """From a worker: what its operators should know, nothing if all is well again."""

    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class WorkerGone:
    """From a worker: it has left its group, or cannot go on."""

    name: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Begin:
    """To the supervisor: run this node."""

    node: NodeSpec


@dataclass(frozen=True, slots=True)
class Begun:
    """From the supervisor: the group takes commands, or why it cannot be opened."""

    error: str = ""


@dataclass(frozen=True, slots=True)
class AddWorker:
    """To the supervisor: run one more worker, tied to the life of a process.

    What is None is as with all workers of the node: its zone, its tags, its capacity, and what it
    speaks as a classic member (nothing: it is a connect member).
    """

    tied_to: int
    name: str | None = None
    zone: str | None = None
    tags: frozenset[str] | None = None
    capacity: int | None = None
    classic_mode: str | None = None

    def traits(self, node: WorkerTraits) -> WorkerTraits:
        """Return what sets the worker apart, given what does so for all of its node."""
        usual = node.abilities
        tags = usual.tags if self.tags is None else self.tags
        capacity = usual.capacity if self.capacity is None else self.capacity
        mode = node.classic_mode if self.classic_mode is None else self.classic_mode
        return WorkerTraits(self.zone or node.zone, Abilities(capacity, tags), mode)


@dataclass(frozen=True, slots=True)
class WorkerAdded:
    """From the supervisor: the name of the worker, or why there is none."""

    name: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class StopWorker:
    """To the supervisor: let a worker leave, or by force end its process; it is not replaced."""

    name: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class WhereIs:
    """To the supervisor: tell where a group is served."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """From the supervisor: where a group is served; None if it is not, at this moment."""

    group_id: str
    address: Address | None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class WhereAreShards:
    """To the supervisor: tell where the groups of Kafka's clients are served."""


@dataclass(frozen=True, slots=True)
class ShardsAt:
    """From the supervisor: where each shard of them is, by number; None: not at this moment."""

    addresses: tuple[Address | None, ...]


@dataclass(frozen=True, slots=True)
class DescribeNode:
    """To the supervisor: tell which processes there are."""


@dataclass(frozen=True, slots=True)
class ProcessView:
    """One process of the node; `state` is starting, running, leaving or backing-off."""

    name: str
    pid: int | None
    url: str
    state: str
    restarts: int
    detail: str = ""
    member_id: str = ""
    """Which member a worker's latest process is; empty before it said so."""
    silent_ms: int = 0
    """How long a group has owed its supervisor an answer."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """The processes of the node."""

    pid: int
    groups: tuple[ProcessView, ...]
    workers: tuple[ProcessView, ...]
    assignors: tuple[ProcessView, ...]
    shards: tuple[ProcessView, ...] = ()
    """Each has many groups of Kafka's clients."""


@dataclass(frozen=True, slots=True)
class ShutDown:
    """To the supervisor: let all workers leave, and say so when they have."""


@dataclass(frozen=True, slots=True)
class AllLeft:
    """From the supervisor: no worker is left."""


def answer_before_begin(question: object) -> object | None:
    """Return the answer of a supervisor that was not told yet what to run, if one is due."""
    match question:
        case WhereIs(group_id):
            return Whereabouts(group_id, None)
        case WhereAreShards():
            return ShardsAt(())
        case DescribeNode():
            return NodeView(os.getpid(), (), (), ())
        case AddWorker() | StopWorker():
            return WorkerAdded(question.name or "", "the node is not up yet: try again")
        case ShutDown():
            return AllLeft()
        case _:
            return None
