"""The supervisor's handle of the assignor process: start, liveness, and end.

A process that hangs gets SIGABRT, so that its stack is in its log, and is killed if it still runs
after `ABORT_SECONDS`. Its child processes end with it.
"""

import logging
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ...cluster.messages import AssignorAt, AssignorHangs, AssignorsOpen, OpenAssignors
from ...cluster.spec import NodeSpec
from ...processes.isolation import kill_group, kill_remaining_group, read_activity
from ..assignors.actor import AssignorActor
from .children import ChildProcess, Host

LOGGER = logging.getLogger(__name__)

ASSIGNOR: Final = "assignor"
"""The name of the one assignor process of a node."""
OPEN_SECONDS: Final = 30.0
"""How long an assignor process may take at most to load its assignors."""
ABORT_SECONDS: Final = 0.5
"""How long a process has to log its stack after SIGABRT, before it is killed."""
SEE_LOG: Final = "logs/assignor.log may tell more"


@dataclass(slots=True)
class AssignorChild(ChildProcess):
    """The process with the assignors of all workers of a node."""

    kind = "assignor"
    actor = AssignorActor
    kill_at: float = 0.0
    """When to kill a process that has been told to end, in monotonic seconds."""

    @property
    def at(self) -> AssignorAt | None:
        """The address that workers send questions to; None while the process is not ready."""
        if self.state != "running" or self.address is None or self.pid is None:
            return None
        return AssignorAt(self.address, self.pid)

    def order(self, node: NodeSpec) -> OpenAssignors:
        """Return the first message to a new process: which assignors to load."""
        return OpenAssignors(node.assignors, node.assignor_log)

    def take_report(self, report: AssignorsOpen, host: Host) -> None:
        """Mark the process as running, or end it if it reports an error."""
        if report.error:
            self.end, self.kill_at = report.error, time.monotonic() + ABORT_SECONDS
            host.actor.stop(self.address)
        else:
            self.pid, self.state = report.pid, "running"  # `detail` keeps why the last one ended

    def look(self, host: Host) -> None:
        """Give up a process that loads for too long; kill one that survived its SIGABRT."""
        now = time.monotonic()
        open_seconds = min(OPEN_SECONDS, host.node.timing.rebalance_timeout_ms / 1000)
        if self.is_starting and not self.end and now >= self.started_at + open_seconds:
            self.give_up(host, "it did not load the assignors in time")
        elif self.end and self.pid is not None and now >= self.kill_at:
            kill_group(self.pid)

    def give_up_hanging(self, host: Host, report: AssignorHangs) -> None:
        """Give up its process if a worker reports that it hangs; ignores a former process."""
        if self.pid == report.pid and self.state == "running" and not self.end:
            self.give_up(host, f"{report.worker} had no answer in time")

    def give_up(self, host: Host, why: str) -> None:
        """Abort a process that does not answer; it is replaced once it has ended."""
        activity = read_activity(self.pid) if self.pid is not None else ""
        while_so = f" while {activity}" if activity else ""
        self.end = f"process {self.pid} was killed{while_so}: {why}; {SEE_LOG}"
        LOGGER.error("the assignor is replaced: %s", self.end)
        if self.pid is None:
            host.actor.stop(self.address)  # it never reported its pid, so it runs no assignor yet
            return
        self.kill_at = time.monotonic() + ABORT_SECONDS
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGABRT)

    def kill(self) -> None:
        """Kill its process and all child processes of that: the node shuts down."""
        if self.pid is not None:
            self.end = self.end or "the node ends"
            kill_group(self.pid)

    def note_end(self) -> str:
        """Record why its process ended; return the error if that was before it was ready."""
        if self.pid is not None:
            kill_remaining_group(self.pid)
        if self.state != "starting":
            self.end = self.end or f"process {self.pid} ended by itself; {SEE_LOG}"
            return ""
        self.failures = max(self.failures, 1)  # no immediate retry: it would hardly help
        self.end = self.end or f"its process ended while it loaded the assignors; {SEE_LOG}"
        return self.end
