"""Threads for what may take long, so that all other requests go on.

A first explanation reads a group's log from its beginning, which may take seconds. One request
at a time does so; those that wait take no thread from other requests. A config is held against
what it leads to, which may be a mount that hangs or a query that takes for ever: a thread is left
behind with it then, and the request goes on with a warning.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread
from typing import Final, TypeVar

from ....pipeline.connectors.builtin.plugins import Plugin
from ....pipeline.connectors.context import Findings, Outside
from .errors import ApiError

LOGGER = logging.getLogger(__name__)
WAIT_SECONDS: Final = 60
"""How long a request waits for its turn: a client waits for 90 s at most."""


LONGEST_SECONDS: Final = 20.0
"""How long a request waits for what is found."""
MOST_AT_ONCE: Final = 8
"""How many configs are looked at at once, those that were left behind included."""

T = TypeVar("T")


class SerialExecutor:
    """A thread that runs functions in the order in which they were handed in."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="explain")
        self._wait_seconds = wait_seconds

    async def run(self, function: Callable[[], T]) -> T:
        """Return what a function returns; raises `ApiError` if its turn does not come in time."""
        turn = self._thread.submit(function)
        result = asyncio.wrap_future(turn)
        try:
            done, _ = await asyncio.wait([result], timeout=self._wait_seconds)
            if not done and turn.cancel():
                busy = "other epochs are being told of: try again in a moment"
                raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
            return await result
        finally:
            result.cancel()  # nobody waits for it any more: what has not begun need not begin

    def close(self) -> None:
        """Start nothing more; a function that reads a log ends when that is closed."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class OutsideChecks:
    """Asks connector classes what they find; at most so many at once, each within so long."""

    def __init__(self, outside: Outside, seconds: float = LONGEST_SECONDS) -> None:
        self._outside = outside
        self._seconds = seconds
        self._free = Semaphore(MOST_AT_ONCE)
        """How many more configs may be looked at now."""

    def find(self, plugin: Plugin, config: Mapping[str, str]) -> Findings:
        """Return what keeps a sound config from working; never raises, and never waits longer."""
        if not self._free.acquire(timeout=self._seconds):
            return _unchecked("others are being looked at")
        found: SimpleQueue[Findings] = SimpleQueue()
        Thread(target=self._look, args=(plugin, config, found), daemon=True).start()
        try:
            return found.get(timeout=self._seconds)
        except Empty:
            return _unchecked(f"that takes longer than {self._seconds:.0f} s")

    def _look(
        self, plugin: Plugin, config: Mapping[str, str], found: "SimpleQueue[Findings]"
    ) -> None:
        try:
            found.put(plugin.made_by.check_outside(config, self._outside))
        except Exception as error:  # noqa: BLE001  # what others install may fail in any way
            kind = type(error).__name__  # its words may hold a secret
            LOGGER.warning("%s failed to look at what its config leads to: %s", plugin.name, kind)
            found.put(_unchecked(f"the connector class fails ({kind})"))
        finally:
            self._free.release()


def _unchecked(why: str) -> Findings:
    return Findings(warnings=(f"what the config leads to was not looked at: {why}",))
