"""What the processes of one node are told, and what they tell the supervisor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ...actors.assignors.built_in import balanced
from ...actors.backoff import Backoff
from ...actors.group.state.settings import GroupSettings
from ...actors.messages.heartbeat import NO_COORDINATOR_EPOCH
from ...actors.worker.instructions import Timing
from ...events.placement.abilities import ORDINARY, Abilities
from ..connectors.reach import NO_LIMITS, Reach

Address = Any

RESTART_BACKOFF_MS: Final = Backoff(1_000, 30_000)


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """How a worker runs tasks: `kind` is spark or noop, `heap` as Java spells it."""

    kind: str
    cores: int = 1
    heap: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    grace_ms: int = 5_000


def assignor_log(data_dir: Path) -> Path:
    """Return where what assignors print is kept, and where one was when it was ended."""
    return data_dir / "logs" / "assignor.log"


@dataclass(frozen=True, slots=True)
class AssignorSpec:
    """What computes for the workers: names in the order of preference, and their settings.

    `conf` is handed to each assignor; `memory_bytes` is all that their process may take.
    """

    names: tuple[str, ...] = (balanced.NAME,)
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class WorkerTraits:
    """What sets a worker apart from others: the zone that it is in, and what it can take."""

    zone: str | None = None
    abilities: Abilities = ORDINARY


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """All that a node runs; times in milliseconds, `place` is the host and port of its REST."""

    data_dir: Path
    group_id: str
    place: str
    workers: tuple[str, ...]
    settings: GroupSettings
    timing: Timing
    engine: EngineSpec
    backoff_ms: Backoff[int] = RESTART_BACKOFF_MS
    """How long a process that ended rests before it is started again."""
    server_assignor: str | None = None
    """Which assignor the group itself runs for these workers; None: they compute."""
    instance: str = ""
    """What makes this node's own workers static members, if anything."""
    traits: WorkerTraits = WorkerTraits()
    """What sets this node's workers apart, where nothing else is said of one."""
    assignors: AssignorSpec = field(default_factory=AssignorSpec)
    reach: Reach = NO_LIMITS
    """What connectors may reach on this node."""
    answer_timeout_ms: int = 30_000
    """How long the supervisor or the group may be silent before its process is replaced."""
    node_id: str = ""
    """What tells this node's former workers from those of others."""

    def group_folder(self, group_id: str) -> Path:
        """Return where the logs of a group lie."""
        return self.data_dir / "groups" / quote(group_id, safe="")

    @property
    def assignor_log(self) -> Path:
        """Return where that of this node is."""
        return assignor_log(self.data_dir)

    def url(self, worker: str) -> str:
        """Return a worker's identity in its group: it outlives the worker's processes."""
        return f"{self.place}/{worker}"

    def instance_id(self, worker: str) -> str | None:
        """Return a worker's static identity; workers that come and go by hand have none."""
        return f"{self.instance}-{worker}" if self.instance and worker in self.workers else None


@dataclass(frozen=True, slots=True)
class StartWorker:
    """To a worker: what it is, and whom it speaks with.

    A worker that is tied to a process leaves when that process is gone. Where its assignors
    are it may hear later.
    """

    name: str
    node: NodeSpec
    group: Address
    assignor: "AssignorAt | None"
    tied_to: int | None = None
    traits: WorkerTraits = WorkerTraits()


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
    """To the assignor process: what to load, how much memory it may take, and where it prints."""

    names: tuple[str, ...]
    conf: Mapping[str, str]
    memory_bytes: int
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

    What is None of its zone, its tags and its capacity is as for all workers of the node.
    """

    tied_to: int
    name: str | None = None
    zone: str | None = None
    tags: frozenset[str] | None = None
    capacity: int | None = None

    def traits(self, node: WorkerTraits) -> WorkerTraits:
        """Return what sets the worker apart, given what does so for all of its node."""
        usual = node.abilities
        tags = usual.tags if self.tags is None else self.tags
        capacity = usual.capacity if self.capacity is None else self.capacity
        return WorkerTraits(self.zone or node.zone, Abilities(capacity, tags))


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


@dataclass(frozen=True, slots=True)
class ShutDown:
    """To the supervisor: let all workers leave, and say so when they have."""


@dataclass(frozen=True, slots=True)
class AllLeft:
    """From the supervisor: no worker is left."""
