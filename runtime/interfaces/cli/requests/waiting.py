"""Waiting until connectors or workers are in a state."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from ...replies.connectors import ConnectorState, ConnectorStateInfo, TaskState
from ...replies.live.awaited import Awaited, describe_backlog, describe_lack, work_of
from ...replies.node import WorkerList
from ...replies.progress import ConnectorProgressInfo
from ..adapters.parameters import Option
from ..output.phrases import format_first
from ..output.printing import Failed, Misused, say
from ..output.progress import show_progress
from .client import Client
from .grammar import Kind
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


AWAITED: Final[Mapping[Kind, frozenset[Awaited]]] = {
    Kind.CONNECTOR: frozenset(Awaited) - {Awaited.DRAINED},
    Kind.WORKER: frozenset({Awaited.RUNNING, Awaited.DRAINED, Awaited.DELETED}),
}
"""The states of the objects of a kind."""


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
    kind: Kind = Kind.CONNECTOR,
    is_patient: bool = True,
) -> None:
    """Return when all connectors or workers are in a state; raises `Failed` at the end of the time.

    Unless `is_patient`, also as soon as the state of one cannot come without somebody's help.
    """
    left = dict.fromkeys(names, "")
    total = len(left)
    with show_progress(f"{kind.plural}: {awaited}", total) as advance:
        until = time.monotonic() + timeout_ms / 1000
        while left:
            is_over = time.monotonic() >= until
            _look(client, left, awaited, kind, is_patient=is_patient)
            advance(total - len(left))
            if left and is_over:
                after = f"{awaited.describe(is_so=False)} after {timeout_ms / 1000:g} s"
                raise Failed("\n".join(f"{kind} {each} {after}: {left[each]}" for each in left))
            if left:
                time.sleep(LOOK_SECONDS)


def _look(
    client: Client, left: dict[str, str], awaited: Awaited, kind: Kind, *, is_patient: bool
) -> None:
    """Remove what is in a state, and keep what the others lack; as `wait_for`."""
    for name in [*left]:
        left[name] = missing = _MISSING[kind](client, name, awaited)
        if not missing:
            say(f"{kind} {name} {awaited.describe(is_so=True)}")
            del left[name]
        elif (
            kind is Kind.CONNECTOR and not is_patient and (remedy := _remedy(client, name, awaited))
        ):
            wanted = awaited.value.replace("-", " ")
            raise Failed(f"connector {name} will not be {wanted}: {missing}; {remedy}")


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
    left = dict.fromkeys(workers, -1)
    total = len(left)
    with show_progress("workers without work", total) as advance:
        until = time.monotonic() + timeout_ms / 1000
        while left:
            _look_at_workers(client, left)
            advance(total - len(left))
            if left and time.monotonic() >= until:
                told = ", ".join(f"{worker} has {count}" for worker, count in left.items())
                raise Failed(f"after {timeout_ms / 1000:g} s of draining work is left: {told}")
            if left:
                time.sleep(LOOK_SECONDS)


def _look_at_workers(client: Client, left: dict[str, int]) -> None:
    """Remove the workers that have no work, and print what the others have, if that is news."""
    there = {each.worker_id: each for each in client.get(WorkerList, "workers").workers}
    for worker, before in [*left.items()]:
        held = work_of(there.get(worker))
        if not held:
            say(f"worker {worker} has no work")
            del left[worker]
        elif len(held) != before:
            say(f"worker {worker} still has {format_first(held)}")
            left[worker] = len(held)


def _remedy(client: Client, name: str, awaited: Awaited) -> str:
    """Return what somebody has to do before the state can come; "" if it may come by itself."""
    if awaited in {Awaited.DELETED, Awaited.FAILED}:
        return ""
    status = client.get(ConnectorStateInfo, "connectors", name, "status")
    state = status.connector.state
    if awaited is not Awaited.STOPPED and state == "STOPPED":
        return f"start it: `fairlead resume {name}`"
    if awaited not in {Awaited.RUNNING, Awaited.CAUGHT_UP}:
        return ""
    if state == "PAUSED" and not status.connector.reason:  # nobody has resumed it
        return f"start it: `fairlead resume {name}`"
    failed = [each for each in _states_of(status) if each.state == "FAILED"]
    if any(RESTARTS not in each.trace for each in failed):
        again = f"`fairlead restart {name} --only-failed --include-tasks`"
        return f"it does not restart by itself: mend what is wrong, then {again}"
    return ""


def is_at_rest(client: Client, name: str) -> bool:
    """Return whether a connector is paused or stopped, so that its new config starts nothing."""
    state = client.get(ConnectorStateInfo, "connectors", name, "status").connector.state
    return state in {Awaited.PAUSED.upper(), Awaited.STOPPED.upper()}


def _states_of(status: ConnectorStateInfo) -> tuple[ConnectorState | TaskState, ...]:
    return (status.connector, *status.tasks)


def _what_is_missing(client: Client, name: str, awaited: Awaited) -> str:
    """Return what a connector does instead; "" if it is in the awaited state."""
    if awaited is Awaited.DELETED:
        return "it is still there" if name in client.get(list[str], "connectors") else ""
    lack = describe_lack(client.get(ConnectorStateInfo, "connectors", name, "status"), awaited)
    if lack or awaited is not Awaited.CAUGHT_UP:
        return lack
    return describe_backlog(client.get(ConnectorProgressInfo, "connectors", name, "progress"))


def _what_a_worker_lacks(client: Client, name: str, awaited: Awaited) -> str:
    """Return what a worker does instead; "" if it is in the awaited state."""
    workers = client.get(WorkerList, "workers").workers
    worker = next((each for each in workers if name in {each.name, each.worker_id}), None)
    member = worker.member if worker else None
    if awaited is Awaited.DELETED:
        return "it is still there" if worker else ""
    if awaited is Awaited.DRAINED:
        left = work_of(worker)
        return f"it has {format_first(left)}" if left else ""
    if member is None:
        process = worker.process if worker else None
        return f"its process is {process.state}" if process else "there is no such worker"
    return "" if member.state == "STABLE" else f"it is {member.state}"


_MISSING: Final[Mapping[Kind, Callable[[Client, str, Awaited], str]]] = {
    Kind.CONNECTOR: _what_is_missing,
    Kind.WORKER: _what_a_worker_lacks,
}
"""What is asked about objects of a kind."""
