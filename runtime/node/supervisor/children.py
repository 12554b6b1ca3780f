"""The supervisor's state of each child process, and its restarts under back-off."""

import logging
import time
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Final

from ....actors.messages.orders import ReleaseSeats
from ....actors.shards.actor import ShardOpened
from ....actors.shards.host_actor import GroupOpened, OpenGroup, Ping
from ....actors.timing import Backoff
from ....actors.transport.actor import Actor, Address
from ....events.log.process import kill, process_of
from ...cluster.figures import figures_file
from ...cluster.messages import (
    AssignorsOpen,
    AssignorUp,
    EngineRuns,
    OwnerAt,
    ProcessView,
    Whereabouts,
    WorkerGone,
    WorkerSays,
    WorkerUp,
)
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec
from ...processes.liveness import GroupProbe
from ..assignors.serving import Served
from ..door.actor import ClusterGroupActor, OpenOnNode, load_libraries
from ..process_files import NodeProcess, ProcessFiles

LOGGER = logging.getLogger(__name__)
HEALTHY_SECONDS = 60.0
"""How long a process must have run for its failure count to be reset."""
ROLE_SECONDS: Final = 1.0
"""How long a process of a group must have run for its end to count as a change of role."""
TICK_SECONDS: Final = 0.2
"""The pause between two looks at a child that starts, ends, or has not answered yet."""

_DIES_IN_OPENING = (
    "its process ended each time while it opened its logs; `fairlead log verify` checks them"
)

REPORTS = (
    GroupOpened
    | OwnerAt
    | ShardOpened
    | AssignorUp
    | AssignorsOpen
    | WorkerUp
    | WorkerSays
    | WorkerGone
    | EngineRuns
)
"""Reports of children: one may arrive after its sender has ended and was replaced."""


@dataclass(frozen=True, slots=True)
class Host:
    """The part of the supervisor that its children use: actor, the node's spec, process files."""

    actor: Actor
    node: NodeSpec
    files: ProcessFiles


@dataclass(slots=True)
class ChildProcess:
    """One child actor of the supervisor, with the restarts of its process.

    Times are seconds on the monotonic clock.
    """

    kind: ClassVar[str]
    actor: ClassVar[type[Actor]]
    may_retry_at_once: ClassVar[bool] = True
    """Whether the first restart is immediate, without back-off."""

    name: str
    address: Address | None = None
    """None while it has no process."""
    pid: int | None = None
    process: NodeProcess | None = None
    """The record of its process in the run folder."""
    state: str = "starting"
    """starting, running, leaving or backing-off."""
    has_run: bool = False
    """Whether any of its processes was ever ready."""
    restarts: int = 0
    """The number of restarts so far."""
    failures: int = 0
    """How many of its processes ended in a row within `HEALTHY_SECONDS`."""
    started_at: float = 0.0
    start_at: float = 0.0
    """When to start its next process, while it is backing off."""
    detail: str = ""
    """A note for operators, such as why its last process ended."""
    end: str = ""
    """Why the supervisor ends this process; empty if it does not."""

    def is_to_start(self, now: float) -> bool:
        """Return whether to start a process now: the first, or the next after the back-off."""
        if self.address is not None:
            return False
        return self.state == "starting" or (self.state == "backing-off" and now >= self.start_at)

    def idle_seconds(self, now: float) -> float:
        """Return the time until its next check, unless it reports something or ends."""
        if self.address is None and self.state == "backing-off" and now < self.start_at:
            return self.start_at - now
        # What is due may have to wait until others have begun, whose reports come after timers.
        is_watched = self.address is None or self.state == "starting" or self.end
        return TICK_SECONDS if is_watched else inf

    def start_if_due(self, host: Host) -> None:
        """Start its first process, or the next one if the back-off is over."""
        if self.is_to_start(time.monotonic()):
            self.start(host)

    @property
    def is_starting(self) -> bool:
        """Whether its process has been started and is not ready yet."""
        return self.state == "starting" and self.address is not None

    def start(self, host: Host) -> None:
        """Start its next process, and send the first message to it."""
        self.address = host.actor.create(self.actor, self.name)
        self.state, self.started_at, self.end = "starting", time.monotonic(), ""
        if (pid := host.actor.pid_of(self.address)) is not None:
            self.know(NodeProcess(self.kind, self.name, process_of(pid)), host)
        host.actor.send(self.address, self.order(host.node))

    def order(self, node: NodeSpec) -> object:
        """Return the first message to a new process."""
        raise NotImplementedError

    def know(self, process: NodeProcess, host: Host) -> None:
        """Store the record of its process, also in the run folder for the next supervisor."""
        self.process = process
        host.files.write(process)

    def stop(self, host: Host) -> None:
        """Kill its process."""
        if self.process is None:
            host.actor.stop(self.address)
        else:
            kill(self.process.process)

    def runs(self, pid: int | None) -> None:
        """Mark its process as ready."""
        self.pid, self.detail, self.has_run = pid, "", True
        if self.state == "starting":
            self.state = "running"

    def note_end(self) -> str:
        """Record why its process ended; return the error if the node cannot start because of it."""
        return ""

    def has_ended(self) -> NodeProcess | None:
        """Clear the state of a process that has ended, and return its record."""
        process = self.process
        self.address = self.pid = self.process = None
        self.detail = self.end or self.detail
        return process

    def log_end(self, pid: int | None, *, is_ending: bool) -> None:
        """Log that a process of it has ended: a warning, unless it was to, or the node ends."""
        is_meant = is_ending or self.state == "leaving"
        told = self.detail or ("it had to go" if is_meant else "it left no reason")
        level = logging.INFO if is_meant else logging.WARNING
        LOGGER.log(level, "%s %s (pid %s) ended: %s", self.kind, self.name, pid, told)

    def back_off(self, backoff_ms: Backoff[int]) -> bool:
        """Schedule a restart after the back-off delay; return whether it is immediate."""
        now = time.monotonic()
        was_healthy = now - self.started_at > HEALTHY_SECONDS
        if was_healthy:
            self.failures = 0
        is_light = self.failures == 0 and (was_healthy or self.may_retry_at_once)
        self.failures += 1
        delay_ms = 0 if is_light else backoff_ms.pause(self.failures)
        self.restarts += 1
        self.state, self.start_at = "backing-off", now + delay_ms / 1000
        return is_light

    @property
    def silent_ms(self) -> int:
        """How long it has not answered its liveness probe."""
        return 0

    def view(self, url: str = "") -> ProcessView:
        """Return its state for `status` and REST."""
        member_id = self.process.member_id if self.process else ""
        return ProcessView(
            self.name,
            self.pid,
            url,
            self.state,
            self.restarts,
            self.detail,
            member_id,
            self.silent_ms,
        )


@dataclass(slots=True)
class GroupChild(ChildProcess):
    """The process of the workers' group."""

    kind = "group"
    actor = ClusterGroupActor
    probe: GroupProbe | None = None
    """The liveness probe of its process; None while that is being killed."""
    failed_openings: int = 0
    """How many of its processes in a row ended without a word while they opened the logs."""
    may_change_roles: bool = False
    """Whether another node may own the group."""
    has_failed: bool = False
    """Whether its process has said that it fails."""

    def start(self, host: Host) -> None:
        """Start its next process, with a new liveness probe."""
        self.probe = GroupProbe(host.node.answer_timeout_ms / 1000, time.monotonic())
        self.may_change_roles, self.has_failed = host.node.store is not None, False
        if host.node.store is not None:
            load_libraries(host.node.store, host.node.kafka.security if host.node.kafka else None)
        ChildProcess.start(self, host)

    def back_off(self, backoff_ms: Backoff[int]) -> bool:
        """Schedule a restart; where roles change, the end of a process is no failure as a rule."""
        has_lived = time.monotonic() - self.started_at > ROLE_SECONDS and not self.has_failed
        if self.may_change_roles and self.state == "running" and has_lived:
            self.failures = 0
        return ChildProcess.back_off(self, backoff_ms)

    def whereabouts(self, group_id: str) -> Whereabouts:
        """Return the address of a group: None if it is another group, or not running."""
        if group_id != self.name or self.state != "running":
            return Whereabouts(group_id, None, detail=self.detail)
        return Whereabouts(group_id, self.address, self.pid)

    def release_seats(self, host: Host) -> None:
        """Send the node's static members to the group: it ends the seats of all others."""
        node = host.node
        if node.node_id:
            named = frozenset(filter(None, map(node.instance_id, node.workers)))
            order = ReleaseSeats(node.group_id, node.node_id, named, node.place)
            host.actor.send(self.address, order)

    def give_up(self, host: Host) -> None:
        """End its process where another node is to own the group from now on."""
        if self.may_change_roles and self.address is not None:
            host.actor.stop(self.address)

    def order(self, node: NodeSpec) -> object:
        """Return the first message to a new process: which group to open."""
        figures = figures_file(RunFolder(node.data_dir).metrics, self.kind, self.name)
        folder = node.group_folder(self.name)
        logs = self.has_run, figures, node.retention, node.store
        order = OpenGroup(self.name, folder, node.settings, *logs)
        served = Served(node.assignors, node.assignor_log, order)
        return OpenOnNode(served, node.kafka.security if node.kafka else None, node.place)

    def note_end(self) -> str:
        """Return an error if process after process ends without a word while it opens the logs.

        Some damage of a log makes LMDB end the process by a signal, so that it reports nothing.
        """
        is_silent = not self.end and self.detail in {"", _DIES_IN_OPENING}
        self.failed_openings = self.failed_openings + 1 if self.is_starting and is_silent else 0
        if self.failed_openings <= 1:  # somebody may have killed this one
            return ""
        self.detail = _DIES_IN_OPENING
        return f"{self.kind} {self.name}: {self.detail}"

    def idle_seconds(self, now: float) -> float:
        """Return the time until its next check: the next liveness ping."""
        rest = ChildProcess.idle_seconds(self, now)
        if self.probe is None or self.address is None:
            return rest
        return min(rest, self.probe.idle_seconds(now) or TICK_SECONDS)

    def look(self, host: Host) -> None:
        """Send a liveness ping when one is due, and kill a process that does not answer in time."""
        probe, process = self.probe, self.process
        if probe is None or process is None or self.address is None:
            return
        if probe.look(time.monotonic(), process.process.pid, is_starting=self.is_starting):
            host.actor.send(self.address, Ping())
        if probe.silence.is_over:
            self.end = f"it was killed: {probe.silence}"
            LOGGER.error("%s is replaced: %s", process, self.end)
            self.probe = None
            self.stop(host)

    @property
    def silent_ms(self) -> int:
        """How long it has not answered its liveness probe."""
        return 0 if self.probe is None else round(self.probe.silence.seconds * 1000)
