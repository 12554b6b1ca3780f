"""What a supervisor keeps of each actor that it answers for, and when that starts again.

Beside it `Deaths`: what the group has to be told of those that were members of it.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from ...actors.backoff import Backoff
from ...actors.door.actor import Address
from ...actors.messages.orders import EndMember
from ..cluster.messages import ProcessView
from ..cluster.spec import WorkerTraits
from .processes import NodeProcess
from .silence import GroupCare

BEGIN_SECONDS = 20.0
"""How long a process that does not begin keeps others from being started."""
STUCK_SECONDS = 120.0
"""How long a worker's process may take to begin before another one is started in its place."""
HEALTHY_SECONDS = 60.0
"""How long a process must have lived for its next end to count as the first."""


@dataclass(slots=True)
class ChildProcess:
    """One actor that the supervisor answers for, through all of its processes."""

    kind: str
    name: str
    address: Address | None = None
    pid: int | None = None
    process: NodeProcess | None = None
    """Which process it is, and what has to be known of it once it has ended."""
    state: str = "starting"
    has_run: bool = False
    """Whether any of its processes ever did what it is there for."""
    restarts: int = 0
    failures: int = 0
    started_at: float = 0.0
    start_at: float = 0.0
    detail: str = ""
    tied_to: int | None = None
    traits: WorkerTraits | None = None
    """What sets a worker apart, where that is not what does so for all of its node."""
    is_wanted: bool = True
    end: str = ""
    """Why this process of it is being ended, if it is: else it ends by itself."""
    kill_at: float | None = None
    """When it is to be killed, if it has not ended by then."""
    care: GroupCare | None = None
    """What is known of the silence of its process; a group has one."""

    def is_to_start(self, now: float) -> bool:
        """Tell whether its next process is due: its first, or one that has rested."""
        if self.address is not None or not self.is_wanted:
            return False
        return self.state == "starting" or (self.state == "backing-off" and now >= self.start_at)

    def begins(self, now: float) -> bool:
        """Tell whether its process has been started and may still begin what it is there for."""
        is_starting = self.state == "starting" and self.address is not None
        return is_starting and now < self.started_at + BEGIN_SECONDS

    def is_stuck(self, now: float) -> bool:
        """Tell whether its process should have begun long ago, and is not being ended yet."""
        is_starting = self.state == "starting" and self.address is not None
        return is_starting and not self.end and now >= self.started_at + STUCK_SECONDS

    def starts(self, address: Address, now: float) -> None:
        """Take note of its next process."""
        self.address, self.state, self.started_at = address, "starting", now
        self.end, self.kill_at = "", None

    def runs(self, pid: int | None) -> None:
        """Take note that it does what it is there for."""
        self.pid, self.detail, self.has_run = pid, "", True
        if self.state == "starting":
            self.state = "running"

    def back_off(self, now: float, backoff_ms: Backoff[int]) -> bool:
        """Let it rest before it starts again, the longer the more often; tell if not at all.

        After its first end only a worker rests that had just been started.
        """
        was_healthy = now - self.started_at > HEALTHY_SECONDS
        if was_healthy:
            self.failures = 0
        is_light = self.failures == 0 and (was_healthy or self.kind != "worker")
        self.failures += 1
        delay_ms = 0 if is_light else backoff_ms.pause(self.failures)
        self.restarts += 1
        self.state, self.start_at = "backing-off", now + delay_ms / 1000
        return is_light

    def view(self, url: str) -> ProcessView:
        """Return what others are told of it."""
        member_id = self.process.member_id if self.process else ""
        silent_ms = 0 if self.care is None else round(self.care.silence.seconds * 1000)
        return ProcessView(
            self.name,
            self.pid,
            url,
            self.state,
            self.restarts,
            self.detail,
            member_id,
            silent_ms,
        )


REMEMBERED: Final = 64
"""How many of the last reports are repeated; a report that is repeated changes nothing."""


class Deaths:
    """The members that have ended with their processes, as a supervisor reports them to its group.

    A member's work may go elsewhere once nothing of it runs: neither its process nor its engine.
    What was said is said again to each new process of the group, which may not have written it.
    """

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._ending: list[tuple[NodeProcess, int]] = []
        """Workers whose process has ended, with the wall clock of it; an engine may still run."""
        self._reported: deque[EndMember] = deque(maxlen=REMEMBERED)
        """The last reports, for a new process of the group."""

    @property
    def is_waiting(self) -> bool:
        """Whether there is anything to report."""
        return bool(self._ending)

    def add(self, process: NodeProcess, ended_ms: int) -> None:
        """Take note of a worker whose process has ended; its engine may still be ending.

        `ended_ms` is wall clock, 0 where nobody saw it.
        """
        if process.member_id:
            self._ending.append((process, ended_ms))

    def take_ended(self) -> list[tuple[NodeProcess, EndMember]]:
        """Return the reports that are due, and take them for said."""
        ended = [each for each in self._ending if not each[0].is_alive]
        self._ending = [each for each in self._ending if each not in ended]
        due = [
            (each, EndMember(self._group_id, each.member_id, each.incarnation, ended_ms))
            for each, ended_ms in ended
        ]
        self._reported.extend(report for _, report in due)
        return due

    def repeated(self) -> tuple[EndMember, ...]:
        """Return what was said before, for a group that may not have heard it."""
        return tuple(self._reported)
