"""When the supervisor gives up the node's assignor process, and how it reports its end.

A process that is given up is told to abort, so that its log has its stack; if it does not, it is
killed. The processes that it has started end with it.
"""

import logging
import os
import signal
from contextlib import suppress

from .assignors.isolation import deed_of, kill_group, kill_rest
from .children import ChildProcess

LOGGER = logging.getLogger(__name__)

OPEN_SECONDS = 30.0
"""How long an assignor process may take at most to load its assignors."""

ABORT_SECONDS = 0.5
"""How long it has to log its stack, before it is killed."""

SEE_LOG = "logs/assignor.log may tell more"


def opens_too_slowly(child: ChildProcess, rebalance_timeout_ms: int, now: float) -> bool:
    """Tell whether a process is an assignor's, and should have loaded everything by now."""
    if child.kind != "assignor" or child.state != "starting" or child.end:
        return False
    return now >= child.started_at + min(OPEN_SECONDS, rebalance_timeout_ms / 1000)


def give_up(child: ChildProcess, why: str, now: float) -> None:
    """Have a process abort that does not answer; once it has ended another one is started."""
    activity = deed_of(child.pid) if child.pid is not None else ""
    while_so = f" while {activity}" if activity else ""
    child.end = f"process {child.pid} was killed{while_so}: {why}; {SEE_LOG}"
    LOGGER.error("the assignor is replaced: %s", child.end)
    if child.pid is not None:
        child.kill_at = now + ABORT_SECONDS
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGABRT)


def kill_if_due(child: ChildProcess, now: float) -> None:
    """Kill a process that was given up and has not aborted in time."""
    if child.kill_at is not None and child.pid is not None and now >= child.kill_at:
        kill_group(child.pid)


def end(child: ChildProcess) -> None:
    """Kill a process, and what it has started, as the node ends."""
    if child.pid is not None:
        child.end = child.end or "the node ends"
        kill_group(child.pid)


def note_end(child: ChildProcess) -> str:
    """Record the end of a process; return why it could not load, if it ended before it had."""
    if child.pid is not None:
        kill_rest(child.pid)
    if child.state != "starting":
        child.detail = child.end or f"process {child.pid} ended by itself; {SEE_LOG}"
        return ""
    child.failures = max(child.failures, 1)  # it waits: another try hardly helps
    child.detail = child.end or f"its process ended while it loaded the assignors; {SEE_LOG}"
    return child.detail
