"""Runs what reads a whole log one after the other, so that all other requests go on.

A first explanation reads a group's log from its beginning, which may take seconds. One request
at a time does so, in a thread of its own; those that wait take no thread from other requests.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, TypeVar

from ..http.errors import ApiError

WAIT_SECONDS: Final = 60
"""How long a request waits for its turn: a client waits for 90 s at most."""

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
