"""Who reads a log from its beginning: one thread, so that all others go on being answered.

What became of a group's epochs is told of its whole log, which may take seconds. One request
at a time is told, as plans are made; those that wait take no thread from other requests.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, TypeVar

from .errors import ApiError

WAIT_SECONDS: Final = 60
"""How long a request waits for its turn: a client waits for 90 s at most."""

T = TypeVar("T")


class Stories:
    """A thread that does what takes long, one after the other."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="stories")
        self._wait_seconds = wait_seconds

    async def tell(self, story: Callable[[], T]) -> T:
        """Return what a story comes to, in its turn; raises `ApiError` if that does not come."""
        turn = self._thread.submit(story)
        told = asyncio.wrap_future(turn)
        try:
            done, _ = await asyncio.wait([told], timeout=self._wait_seconds)
            if not done and turn.cancel():
                busy = "other epochs are being told of: try again in a moment"
                raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
            return await told
        finally:
            told.cancel()  # nobody waits for it any more: what has not begun need not begin

    def close(self) -> None:
        """Begin nothing more; what is being told ends when its log is closed."""
        self._thread.shutdown(wait=False, cancel_futures=True)
