"""Waits for states of connectors and workers: they ask again and again until it is so."""

import time
from typing import Final, Literal

from ...replies.live.awaited import Awaited, describe_backlog, describe_lack, work_of
from ...replies.node import WorkerDescription
from ..sending.errors import ClientError, WaitTimeoutError
from ..sending.exchange import NodeExchange
from .connectors import get_progress, get_status, list_connectors
from .workers import list_workers

AwaitedWord = Literal["running", "paused", "stopped", "failed", "caught-up", "deleted"]
ONE_MINUTE: Final = 60.0
LOOK_SECONDS: Final = 0.2
"""The time between two looks."""


async def wait(
    node: NodeExchange, name: str, for_: AwaitedWord = "running", timeout: float = ONE_MINUTE
) -> None:
    """Wait until a connector is in a state, at most `timeout` seconds.

    It is `running` with all its tasks; `caught-up` if there was nothing left to read when they last
    looked. Raises `WaitTimeoutError`, which says what it does instead.
    """
    awaited, until = Awaited(for_), time.monotonic() + timeout
    while lack := await _look(node, name, awaited):
        if time.monotonic() >= until:
            is_not = awaited.describe(is_so=False)
            raise WaitTimeoutError(f"connector {name} {is_not} after {timeout:g} s: {lack}")
        await node.pause(LOOK_SECONDS)


async def wait_until_drained(node: NodeExchange, worker: str, timeout: float = ONE_MINUTE) -> None:
    """Wait until a worker has no work, at most `timeout` seconds; raises `WaitTimeoutError`."""
    until = time.monotonic() + timeout
    names = {name for each in (await node.send(list_workers())).workers for name in _names_of(each)}
    if worker not in names:
        raise ClientError(f"there is no worker {worker}: nothing was waited for")
    while left := work_of(await _find(node, worker)):
        if time.monotonic() >= until:
            has = " ".join(left)
            raise WaitTimeoutError(f"worker {worker} still has after {timeout:g} s: {has}")
        await node.pause(LOOK_SECONDS)


async def _find(node: NodeExchange, worker: str) -> WorkerDescription | None:
    workers = (await node.send(list_workers())).workers
    return next((each for each in workers if worker in _names_of(each)), None)


def _names_of(worker: WorkerDescription) -> tuple[str, str]:
    return worker.name, worker.worker_id


async def _look(node: NodeExchange, name: str, awaited: Awaited) -> str:
    """Return what a connector does instead of being in a state; "" if it is in it."""
    if awaited is Awaited.DELETED:
        return "it is still there" if name in await node.send(list_connectors()) else ""
    lack = describe_lack(await node.send(get_status(name)), awaited)
    if lack or awaited is not Awaited.CAUGHT_UP:
        return lack
    return describe_backlog(await node.send(get_progress(name)))
