"""When the supervisor gives up the node's assignor process, and what it says of its end.

One that is given up aborts by itself if it can, so that its log has the stack of where it
was; if it cannot, it is killed. What it has started ends with it.
"""

import logging
import os
import signal
from contextlib import suppress

from ..cluster.process_group import deed_of, kill_group, kill_rest
from .children import ChildProcess

LOGGER = logging.getLogger(__name__)

OPEN_SECONDS = 30.0
"""How long an assignor process may take at most to load what it runs."""

ABORT_SECONDS = 0.5
"""How long it has to write down where it is, before it is killed."""

SEE_LOG = "logs/assignor.log may tell more"


def opens_too_slowly(child: ChildProcess, rebalance_timeout_ms: int, now: float) -> bool:
    """Tell whether this is an assignor process that should have loaded everything by now."""
    if child.kind != "assignor" or child.state != "starting" or child.end:
        return False
    return now >= child.started_at + min(OPEN_SECONDS, rebalance_timeout_ms / 1000)


def give_up(child: ChildProcess, why: str, now: float) -> None:
    """Have a process end that cannot be talked to; its end has another one started."""
    deed = deed_of(child.pid) if child.pid is not None else ""
    while_so = f" while {deed}" if deed else ""
    child.end = f"process {child.pid} was killed{while_so}: {why}; {SEE_LOG}"
    LOGGER.error("the assignor is replaced: %s", child.end)
    if child.pid is not None:
        child.kill_at = now + ABORT_SECONDS
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGABRT)


def kill_if_due(child: ChildProcess, now: float) -> None:
    """Kill a process that was given up, and is still there."""
    if child.kill_at is not None and child.pid is not None and now >= child.kill_at:
        kill_group(child.pid)


def end(child: ChildProcess) -> None:
    """Kill a process, and what it has started: nobody is left who could ask it anything."""
    if child.pid is not None:
        child.end = child.end or "the node ends"
        kill_group(child.pid)


def note_end(child: ChildProcess) -> str:
    """Take note of a process that has ended; return why it could not load, if it had not yet."""
    if child.pid is not None:
        kill_rest(child.pid)
    if child.state != "starting":
        child.detail = child.end or f"process {child.pid} ended by itself; {SEE_LOG}"
        return ""
    child.failures = max(child.failures, 1)  # it is to rest: another try hardly helps
    child.detail = child.end or f"its process ended while it loaded the assignors; {SEE_LOG}"
    return child.detail
