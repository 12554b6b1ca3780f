"""When the supervisor gives up the node's assignor process, and what it says of its end.

One that is given up aborts by itself if it can, so that its log has the stack of where it
was; if it can not, it is killed. What it has started ends with it.
"""

import logging
import os
import signal
from contextlib import suppress

from ..cluster.process_group import deed_of, kill_group, kill_rest
from .charges import Charge

LOGGER = logging.getLogger(__name__)

OPEN_SECONDS = 30.0
"""How long an assignor process may take at most to load what it runs."""

ABORT_SECONDS = 0.5
"""How long it has to write down where it is, before it is killed."""

SEE_LOG = "logs/assignor.log may tell more"


def opens_too_slowly(charge: Charge, rebalance_timeout_ms: int, now: float) -> bool:
    """Tell whether this is an assignor process that should have loaded everything by now."""
    if charge.kind != "assignor" or charge.state != "starting" or charge.end:
        return False
    return now >= charge.started_at + min(OPEN_SECONDS, rebalance_timeout_ms / 1000)


def give_up(charge: Charge, why: str, now: float) -> None:
    """Have a process end that can not be talked to; its end has another one started."""
    deed = deed_of(charge.pid) if charge.pid is not None else ""
    while_so = f" while {deed}" if deed else ""
    charge.end = f"process {charge.pid} was killed{while_so}: {why}; {SEE_LOG}"
    LOGGER.error("the assignor is replaced: %s", charge.end)
    if charge.pid is not None:
        charge.kill_at = now + ABORT_SECONDS
        with suppress(ProcessLookupError):
            os.kill(charge.pid, signal.SIGABRT)


def kill_if_due(charge: Charge, now: float) -> None:
    """Kill a process that was given up, and is still there."""
    if charge.kill_at is not None and charge.pid is not None and now >= charge.kill_at:
        kill_group(charge.pid)


def end(charge: Charge) -> None:
    """Kill a process, and what it has started: nobody is left who could ask it anything."""
    if charge.pid is not None:
        charge.end = charge.end or "the node ends"
        kill_group(charge.pid)


def note_end(charge: Charge) -> str:
    """Take note of a process that has ended; return why it could not load, if it had not yet."""
    if charge.pid is not None:
        kill_rest(charge.pid)
    if charge.state != "starting":
        charge.detail = charge.end or f"process {charge.pid} ended by itself; {SEE_LOG}"
        return ""
    charge.failures = max(charge.failures, 1)  # it is to rest: another try hardly helps
    charge.detail = charge.end or f"its process ended while it loaded the assignors; {SEE_LOG}"
    return charge.detail
