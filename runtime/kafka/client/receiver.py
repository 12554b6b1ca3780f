"""Receives the rest of a request, within a budget for large ones.

Small requests need no share of the budget: whoever announces large ones and sends nothing keeps
nobody's usual calls waiting. A large one that arrives slowly loses its place to those that wait.
"""

import time

from ..wire.bounds import CONTENDED_SECONDS, SMALL, Budget, BudgetShare
from .stream import Stream


class FrameReceiver:
    """Receives the requests of one connection, one at a time."""

    def __init__(self, stream: Stream, budget: Budget) -> None:
        """Take the budget for large requests of all connections that have not arrived whole."""
        self._stream, self._budget = stream, budget
        self._since = 0.0
        """Since when a large request is being received, monotonic clock; 0: none is."""

    async def read(self, first: bytes, length: int) -> tuple[bytes, BudgetShare]:
        """Return a whole request that begins with `first`, and its share of the budget."""
        size = length if length > SMALL else 0
        if size:
            await self._budget.take(size)
        share = BudgetShare(self._budget, size)
        self._since = time.monotonic() if size else 0.0
        try:
            return first + await self._stream.read_exactly(length - len(first)), share
        except BaseException:
            share.give_back()
            raise
        finally:
            self._since = 0.0

    def is_late(self, now: float) -> bool:
        """Return whether a large request arrives so slowly that others should not wait for it."""
        is_slow = bool(self._since) and now - self._since >= CONTENDED_SECONDS
        return is_slow and self._budget.is_wanted
