"""The control messages between the supervisor of a node and its other processes."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...actors.messages.commands import CopiesView, NodeReport
from ...actors.messages.members import NO_COORDINATOR_EPOCH
from ...events.placement import Abilities
from .spec import AssignorSpec, NodeSpec, WorkerTraits

Address = Any

SUPERVISOR: Final = "supervisor"
"""The global name of the supervisor in the actor system."""


@dataclass(frozen=True, slots=True)
class StartWorker:
    """To a worker, first: its configuration, and the addresses of the group and the assignors.

    `assignor` is None while the assignor process is not running; an `AssignorAt` follows.
    """

    name: str
    node: NodeSpec
    group: Address
    assignor: "AssignorAt | None"
    traits: WorkerTraits = field(default_factory=WorkerTraits)


@dataclass(frozen=True, slots=True)
class GroupAt:
    """To a worker: the group has a new address, that of this coordinator epoch."""

    address: Address
    coordinator_epoch: int = NO_COORDINATOR_EPOCH


@dataclass(frozen=True, slots=True)
class AssignorAt:
    """To a worker: the assignor process has a new address."""

    address: Address
    pid: int


@dataclass(frozen=True, slots=True)
class OpenAssignors:
    """To the assignor process: load these assignors, and redirect their output to this file."""

    assignors: AssignorSpec
    log_file: Path


@dataclass(frozen=True, slots=True)
class AssignorUp:
    """From the assignor process: it runs, and is about to load the assignors."""

    pid: int


@dataclass(frozen=True, slots=True)
class AssignorsOpen:
    """From the assignor process: it is ready for workers, or the error that prevents it."""

    pid: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class AssignorHangs:
    """From a worker: this assignor process has not answered within the time limit."""

    pid: int
    worker: str


@dataclass(frozen=True, slots=True)
class Leave:
    """To a worker: shut down gracefully; with `is_temporary` a static member keeps its seat."""

    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class WorkerUp:
    """From a worker: its process runs, for this member and incarnation."""

    name: str
    pid: int
    member_id: str
    incarnation: str = ""


@dataclass(frozen=True, slots=True)
class EngineRuns:
    """From a worker: the process of its engine, which ends with the worker."""

    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class WorkerSays:
    """From a worker: a note for operators, empty once the problem is over."""

    name: str
    detail: str
    since_ms: int | None = None
    """Since when it is so, in ms since 1970; people read the time of day after the detail."""


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
    """From the supervisor: the group accepts commands, or the error why it cannot be opened."""

    error: str = ""
    flaw: str = ""
    """Why it does not follow its store for now; empty: it does, or has none."""


@dataclass(frozen=True, slots=True)
class AddWorker:
    """To the supervisor: run one more worker, for as long as the process `tied_to` lives.

    A field that is None has the node's default.
    """

    tied_to: int
    name: str | None = None
    zone: str | None = None
    tags: frozenset[str] | None = None
    capacity: int | None = None
    classic_mode: str | None = None

    def traits(self, node: WorkerTraits) -> WorkerTraits:
        """Return the traits of the new worker; missing ones are the node's."""
        usual = node.abilities
        tags = usual.tags if self.tags is None else self.tags
        capacity = usual.capacity if self.capacity is None else self.capacity
        mode = node.classic_mode if self.classic_mode is None else self.classic_mode
        return WorkerTraits(self.zone or node.zone, Abilities(capacity, tags), mode)


@dataclass(frozen=True, slots=True)
class WorkerAdded:
    """From the supervisor: the name of the worker, or the error why it was not started."""

    name: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class StopWorker:
    """To the supervisor: stop a worker gracefully, or with `force` kill it; no replacement."""

    name: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class WhereIs:
    """To the supervisor: return the address of a group (`Whereabouts`)."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """From the supervisor: the address of a group, None while it is not served."""

    group_id: str
    address: Address | None
    pid: int | None = None
    """None: the process does not run."""
    detail: str = ""
    """Why it is not served, if that is known."""


@dataclass(frozen=True, slots=True)
class OwnerAt:
    """From this node's process of the group: where Kafka's clients find groups has changed."""

    address: str
    """The listener of the node that owns the group, `host:port`; empty: this one, or none."""
    others: tuple[tuple[str, str], ...] = ()
    """The names of the other nodes that live, each with the address of its listener."""


@dataclass(frozen=True, slots=True)
class GroupGivenUp:
    """From the process of the group: it ends, as this node has given the group up."""

    reason: str


@dataclass(frozen=True, slots=True)
class WhereAreShards:
    """To the supervisor: return the addresses of the group shards (`ShardsAt`)."""


@dataclass(frozen=True, slots=True)
class ShardsAt:
    """From the supervisor: the address of each group shard, by number; None while it is down."""

    addresses: tuple[Address | None, ...]
    at: OwnerAt = OwnerAt("")
    """Where else clients find groups."""


@dataclass(frozen=True, slots=True)
class DescribeOwnership:
    """To this node's process of a group: who owns it, and how far its copies are here."""

    group_id: str


@dataclass(frozen=True, slots=True)
class OwnershipView:
    """From this node's process of a group: who owns the group, as this node sees it."""

    store: str = ""
    """The kind of store in which the group's commits count; empty: the group is on one host."""
    node: str = ""
    """The name of this node; empty without a store."""
    address: str = ""
    """The address of its listener, `host:port`."""
    version: str = ""
    owner: str = ""
    """The name of the node that has claimed the group last; empty: none is known."""
    owner_address: str = ""
    silent_ms: int = 0
    """How long nothing has been heard of the owner; at the owner, how long it heard no store."""
    owner_epoch: int = 0
    """That of its claim; 0: none is known."""
    copies: CopiesView | None = None
    """None: this node owns the group, as far as it knows."""
    nodes: tuple[NodeReport, ...] = ()
    """The nodes that the owner has heard of since it began, and those that this one knew before."""
    flaw: str = ""
    """Why this node does not follow the store for now; empty: it does, or owns the group."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """From this node's process of a group, whose owner did not answer: send the message again."""

    reason: str
    is_sent: bool = False
    """Whether it was sent to a node, which may have carried it out."""


@dataclass(frozen=True, slots=True)
class DescribeNode:
    """To the supervisor: return the state of all processes (`NodeView`)."""


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
    """The member id of a worker's latest process; empty before it is reported."""
    silent_ms: int = 0
    """How long a group has not answered its liveness probe."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """The state of the node's processes, by kind."""

    pid: int
    groups: tuple[ProcessView, ...]
    workers: tuple[ProcessView, ...]
    assignors: tuple[ProcessView, ...]
    shards: tuple[ProcessView, ...] = ()
    """Each serves many groups of Kafka clients."""


@dataclass(frozen=True, slots=True)
class ShutDown:
    """To the supervisor: shut all workers down gracefully, then reply `AllLeft`."""


@dataclass(frozen=True, slots=True)
class AllLeft:
    """From the supervisor: all workers have left."""


def answer_before_begin(question: object) -> object | None:
    """Return the reply of a supervisor that has no `NodeSpec` yet; None for other messages."""
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
