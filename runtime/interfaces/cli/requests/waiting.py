"""Waiting until connectors are in a state."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from ...replies.connectors import ConnectorState, ConnectorStateInfo, TaskState
from ...replies.node import WorkerList
from ..adapters.parameters import Option
from ..output.phrases import format_first
from ..output.printing import Failed, Misused, say
from .client import Client
from .options import RemoteOptions

UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
DURATION: Final = re.compile(rf"(\d{{1,9}})({'|'.join(UNITS_MS)})", re.ASCII)
LONGEST_MS: Final = (1 << 31) - 1
LOOK_SECONDS: Final = 0.2
"""The time between two requests of a wait."""

Timeout = Annotated[
    str, Option("--timeout", metavar="TIME", help="How long to wait: 90s, 10m or 2h.")
]
RESTARTS: Final = "; restarts in "
"""What the trace of a failure says if another attempt follows."""
ONE_MINUTE: Final = "60s"


class Awaited(StrEnum):
    """The states that a command can wait for."""

    RUNNING = "running"
    """The connector runs, and all its tasks, of which there is one at least."""
    PAUSED = "paused"
    STOPPED = "stopped"
    """It is stopped, and all that it committed is published."""
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class WaitOptions(RemoteOptions):
    """A cluster, and whether a command waits for the end of what it begins."""

    wait: Annotated[bool, Option("--wait", help="Return only when it is done.")] = False
    timeout: Timeout = ONE_MINUTE

    def timeout_ms(self) -> int | None:
        """Return how long to wait, None for not at all; raises `Misused`."""
        longest = parse_duration(self.timeout)
        return longest if self.wait else None


def parse_duration(duration: str) -> int:
    """Return a duration such as 10m in milliseconds; raises `Misused`."""
    found = DURATION.fullmatch(duration.strip())
    told = int(found[1]) * UNITS_MS[found[2]] if found else -1
    if not 0 <= told <= LONGEST_MS:
        raise Misused(f"{duration!r} is no time, or too long a one: write 90s, 10m or 2h")
    return told


def wait_for(
    client: Client,
    names: Iterable[str],
    awaited: Awaited,
    timeout_ms: int,
    *,
    is_patient: bool = True,
) -> None:
    """Return when all connectors are in a state; raises `Failed` at the end of the time.

    Unless `is_patient`, also as soon as the state of one cannot come without somebody's help.
    """
    until = time.monotonic() + timeout_ms / 1000
    left = dict.fromkeys(names, "")
    while left:
        is_over = time.monotonic() >= until
        for name in [*left]:
            left[name] = missing = _what_is_missing(client, name, awaited)
            if not missing:
                say(f"connector {name} is {awaited}")
                del left[name]
            elif not is_patient and (remedy := _remedy(client, name, awaited)):
                raise Failed(f"connector {name} will not be {awaited}: {missing}; {remedy}")
        if left and is_over:
            after = f"is not {awaited} after {timeout_ms / 1000:g} s"
            raise Failed("\n".join(f"connector {each} {after}: {left[each]}" for each in left))
        if left:
            time.sleep(LOOK_SECONDS)


def make_wait(
    client: Client, awaited: Awaited, timeout_ms: int | None
) -> Callable[[Iterable[str]], None] | None:
    """Return a wait for connectors, as `wait_for`; None if there is no time for it."""
    if timeout_ms is None:
        return None
    return lambda names: wait_for(client, names, awaited, timeout_ms)


def wait_until_empty(client: Client, workers: Iterable[str], timeout_ms: int) -> None:
    """Wait until workers have no work; print the amount of each whenever it changes.

    Raises `Failed` at the end of the time, with what is left.
    """
    until = time.monotonic() + timeout_ms / 1000
    left = dict.fromkeys(workers, -1)
    while left:
        there = {each.worker_id: each for each in client.get(WorkerList, "workers").workers}
        for worker, before in [*left.items()]:
            member = there[worker].member if worker in there else None
            held = [*member.assigned, *member.pending_revocation] if member else []
            if not held:
                say(f"worker {worker} has no work")
                del left[worker]
            elif len(held) != before:
                say(f"worker {worker} still has {format_first([each.id for each in held])}")
                left[worker] = len(held)
        if left and time.monotonic() >= until:
            told = ", ".join(f"{worker} has {count}" for worker, count in left.items())
            raise Failed(f"after {timeout_ms / 1000:g} s of draining work is left: {told}")
        if left:
            time.sleep(LOOK_SECONDS)


def _remedy(client: Client, name: str, awaited: Awaited) -> str:
    """Return what somebody has to do before the state can come; "" if it may come by itself."""
    if awaited is Awaited.DELETED:
        return ""
    status = client.get(ConnectorStateInfo, "connectors", name, "status")
    state = status.connector.state
    if awaited is not Awaited.STOPPED and state == "STOPPED":
        return f"start it: `fairlead resume {name}`"
    if awaited is not Awaited.RUNNING:
        return ""
    if state == "PAUSED" and not status.connector.reason:  # nobody has resumed it
        return f"start it: `fairlead resume {name}`"
    states: tuple[ConnectorState | TaskState, ...] = (status.connector, *status.tasks)
    failed = [each for each in states if each.state == "FAILED"]
    if any(RESTARTS not in each.trace for each in failed):
        again = f"`fairlead restart {name} --only-failed --include-tasks`"
        return f"it does not restart by itself: mend what is wrong, then {again}"
    return ""


def is_at_rest(client: Client, name: str) -> bool:
    """Return whether a connector is paused or stopped, so that its new config starts nothing."""
    state = client.get(ConnectorStateInfo, "connectors", name, "status").connector.state
    return state in {Awaited.PAUSED.upper(), Awaited.STOPPED.upper()}


def _what_is_missing(client: Client, name: str, awaited: Awaited) -> str:
    """Return what a connector does instead; "" if it is in the awaited state."""
    if awaited is Awaited.DELETED:
        return "it is still there" if name in client.get(list[str], "connectors") else ""
    status = client.get(ConnectorStateInfo, "connectors", name, "status")
    tasks = () if awaited is Awaited.STOPPED else status.tasks
    states: tuple[ConnectorState | TaskState, ...] = (status.connector, *tasks)
    for state in states:
        if state.state != awaited.value.upper():
            return f"{state.state} {state.trace or state.reason}".strip()
    return "" if status.tasks or awaited is not Awaited.RUNNING else "it has no tasks yet"
