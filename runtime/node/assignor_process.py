"""The node's assignor process, as the supervisor starts it, gives it up, and reports its end.

A process that is given up is told to abort, so that its log has its stack; if it does not, it is
killed. The processes that it has started end with it.
"""

import logging
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ..cluster.messages import AssignorAt, AssignorHangs, AssignorsOpen, OpenAssignors
from ..cluster.spec import NodeSpec
from .assignors.actor import AssignorActor
from .assignors.isolation import deed_of, kill_group, kill_rest
from .children import ChildProcess, Host

LOGGER = logging.getLogger(__name__)

ASSIGNOR: Final = "assignor"
"""The name of the one assignor process: it runs all assignors of the node's workers."""
OPEN_SECONDS: Final = 30.0
"""How long an assignor process may take at most to load its assignors."""
ABORT_SECONDS: Final = 0.5
"""How long it has to log its stack, before it is killed."""
SEE_LOG: Final = "logs/assignor.log may tell more"


@dataclass(slots=True)
class AssignorChild(ChildProcess):
    """The assignors of a node's workers, in a process of their own."""

    kind = "assignor"
    actor = AssignorActor
    kill_at: float = 0.0
    """When a process that is being ended is killed, if it has not ended by then."""

    @property
    def at(self) -> AssignorAt | None:
        """Where assignors are asked, None while there is nobody to ask."""
        if self.state != "running" or self.address is None or self.pid is None:
            return None
        return AssignorAt(self.address, self.pid)

    def order(self, node: NodeSpec) -> OpenAssignors:
        """Return what its process is told first."""
        return OpenAssignors(node.assignors, node.assignor_log)

    def take_report(self, report: AssignorsOpen, host: Host) -> None:
        """Take note that its process can be asked, or end one that cannot go on."""
        if report.error:
            self.end, self.kill_at = report.error, time.monotonic() + ABORT_SECONDS
            host.actor.stop(self.address)
        else:
            self.pid, self.state = report.pid, "running"  # what became of the last one stays told

    def look(self, host: Host) -> None:
        """Give up a process that should have loaded everything by now; kill one that hangs on."""
        now = time.monotonic()
        open_seconds = min(OPEN_SECONDS, host.node.timing.rebalance_timeout_ms / 1000)
        if self.is_starting and not self.end and now >= self.started_at + open_seconds:
            self.give_up(host, "it did not load the assignors in time")
        elif self.end and self.pid is not None and now >= self.kill_at:
            kill_group(self.pid)

    def hangs(self, host: Host, report: AssignorHangs) -> None:
        """Give up its process by a worker's word, if it is still the one that the worker means."""
        if self.pid == report.pid and self.state == "running" and not self.end:
            self.give_up(host, f"{report.worker} had no answer in time")

    def give_up(self, host: Host, why: str) -> None:
        """Have a process abort that does not answer; once it has ended another one is started."""
        activity = deed_of(self.pid) if self.pid is not None else ""
        while_so = f" while {activity}" if activity else ""
        self.end = f"process {self.pid} was killed{while_so}: {why}; {SEE_LOG}"
        LOGGER.error("the assignor is replaced: %s", self.end)
        if self.pid is None:
            host.actor.stop(self.address)  # it has not even heard what to load
            return
        self.kill_at = time.monotonic() + ABORT_SECONDS
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGABRT)

    def kill(self) -> None:
        """Kill its process, and what that has started, as the node ends."""
        if self.pid is not None:
            self.end = self.end or "the node ends"
            kill_group(self.pid)

    def note_end(self) -> str:
        """Take note why its process ended; return why it could not load, if it had not yet."""
        if self.pid is not None:
            kill_rest(self.pid)
        if self.state != "starting":
            self.end = self.end or f"process {self.pid} ended by itself; {SEE_LOG}"
            return ""
        self.failures = max(self.failures, 1)  # it waits: another try hardly helps
        self.end = self.end or f"its process ended while it loaded the assignors; {SEE_LOG}"
        return self.end
