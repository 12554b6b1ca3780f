"""What a supervisor keeps of each actor that it answers for, and when that starts again."""

import logging
import time
from dataclasses import dataclass
from typing import ClassVar

from ...actors.backoff import Backoff
from ...actors.door.actor import Actor, Address
from ...actors.group.actor import OpenGroup, Ping
from ...actors.shards.workers_group import WorkersGroupActor
from ...events.log.process import kill, process_of
from ..cluster.messages import ProcessView, Whereabouts
from ..cluster.spec import NodeSpec
from .liveness import GroupProbe
from .processes import NodeProcess, ProcessFiles

LOGGER = logging.getLogger(__name__)
HEALTHY_SECONDS = 60.0
"""How long a process must have lived for its next end to count as the first."""


@dataclass(frozen=True, slots=True)
class Host:
    """The supervisor, as those know it that it answers for."""

    actor: Actor
    node: NodeSpec
    files: ProcessFiles


@dataclass(slots=True)
class ChildProcess:
    """One actor that the supervisor answers for, through all of its processes.

    Times are seconds on the monotonic clock.
    """

    kind: ClassVar[str]
    actor: ClassVar[type[Actor]]
    may_retry_at_once: ClassVar[bool] = True
    """Whether it starts again without a pause after its first end, soon as that may come."""

    name: str
    address: Address | None = None
    """None while it has no process."""
    pid: int | None = None
    process: NodeProcess | None = None
    """Which process it is, and what has to be known of it once it has ended."""
    state: str = "starting"
    """starting, running, leaving or backing-off."""
    has_run: bool = False
    """Whether any of its processes ever did what it is there for."""
    restarts: int = 0
    failures: int = 0
    """How many of its processes ended in a row, none of them after a healthy life."""
    started_at: float = 0.0
    start_at: float = 0.0
    """When its next process is due, while it is backing off."""
    detail: str = ""
    """What its operators should know of it."""
    end: str = ""
    """Why this process of it is being ended, if it is: else it ends by itself."""

    def is_to_start(self, now: float) -> bool:
        """Tell whether its next process is due: its first, or one that has rested."""
        if self.address is not None:
            return False
        return self.state == "starting" or (self.state == "backing-off" and now >= self.start_at)

    @property
    def is_starting(self) -> bool:
        """Whether its process has been started and does not yet do what it is there for."""
        return self.state == "starting" and self.address is not None

    def start(self, host: Host) -> None:
        """Start its next process, and give it its order."""
        self.address = host.actor.create(self.actor, self.name)
        self.state, self.started_at, self.end = "starting", time.monotonic(), ""
        if (pid := host.actor.pid_of(self.address)) is not None:
            self.know(NodeProcess(self.kind, self.name, process_of(pid)), host)
        host.actor.send(self.address, self.order(host.node))

    def order(self, node: NodeSpec) -> object:
        """Return what its process is told first."""
        raise NotImplementedError

    def know(self, process: NodeProcess, host: Host) -> None:
        """Keep what is known of its process, also for the supervisor that comes after this one."""
        self.process = process
        host.files.write(process)

    def stop(self, host: Host) -> None:
        """End its process, whatever it does."""
        if self.process is None:
            host.actor.stop(self.address)
        else:
            kill(self.process.process)

    def runs(self, pid: int | None) -> None:
        """Take note that it does what it is there for."""
        self.pid, self.detail, self.has_run = pid, "", True
        if self.state == "starting":
            self.state = "running"

    def has_ended(self) -> NodeProcess | None:
        """Take note of the end of its process, and return what was known of that."""
        process = self.process
        self.address = self.pid = self.process = None
        self.detail = self.end or self.detail
        return process

    def back_off(self, backoff_ms: Backoff[int]) -> bool:
        """Let it rest before it starts again, the longer the more often; tell if not at all."""
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
        """For how long it has owed an answer."""
        return 0

    def view(self, url: str = "") -> ProcessView:
        """Return what others are told of it."""
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
    """The group of a node's workers."""

    kind = "group"
    actor = WorkersGroupActor
    probe: GroupProbe | None = None
    """What is known of the silence of its process; None while that is being killed."""

    def start(self, host: Host) -> None:
        """Start its next process, of whose silence nothing is known."""
        self.probe = GroupProbe(host.node.answer_timeout_ms / 1000, time.monotonic())
        ChildProcess.start(self, host)

    def whereabouts(self, group_id: str) -> Whereabouts:
        """Return where a group is served: None if it is not this one, or not at this moment."""
        if group_id != self.name or self.state != "running":
            return Whereabouts(group_id, None)
        return Whereabouts(group_id, self.address, self.pid)

    def order(self, node: NodeSpec) -> object:
        """Return what its process is told first."""
        return OpenGroup(self.name, node.group_folder(self.name), node.settings, self.has_run)

    def look(self, host: Host) -> None:
        """Ask its process whether it is there, and end one that has been silent for too long."""
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
        """For how long it has owed an answer."""
        return 0 if self.probe is None else round(self.probe.silence.seconds * 1000)
