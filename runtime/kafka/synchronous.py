"""Heartbeats that come again are answered without the task of their connection.

A task has to be woken for each request, and once more for its answer. A heartbeat that is, but for
its number, the one that its connection has said last needs neither: what comes in one piece, while
nothing else is under way, is handed on where it comes in, and answered where the reply comes in.
All else is the task's; what comes after a heartbeat waits until that is answered, as it does there.
"""
# pyright: basic

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from ...actors.messages.errors import Error
from .client.stream import Stream
from .client.wait_limit import ConnectionState, WaitLimit
from .counts import Counts
from .groups import Groups, refuse_lost
from .line import ShardLine
from .repeated import AskedCalls, LastSaid
from .wire.bounds import Budget, BudgetShare
from .wire.frames import LENGTH, Head, read_head

LOGGER = logging.getLogger(__name__)


class _Pending(NamedTuple):
    """A heartbeat that is not answered yet."""

    asked: AskedCalls
    head: Head
    line: ShardLine
    number: int
    """By which the line knows it."""


class SynchronousHeartbeats:
    """Those of one connection; a `ReplyTaker` of the line to their group."""

    def __init__(
        self,
        stream: Stream,
        last: LastSaid,
        limit: WaitLimit,
        groups: Groups,
        budget: Budget,
        counts: Counts,
    ) -> None:
        self._stream, self._last, self._limit = stream, last, limit
        self._groups, self._budget, self._counts = groups, budget, counts
        self._found: AskedCalls | None = None
        """What was said last as often as twice."""
        self._line: ShardLine | None = None
        """Where that goes; None: it is the task's."""
        self._pending: _Pending | None = None
        self._share: BudgetShare | None = None
        """Of the heartbeat that no group has taken yet."""
        self._settled: asyncio.Future[None] | None = None
        """What the task waits with for the answer."""
        stream.take = self.take

    def take(self, data: bytes) -> bool:
        """Hand on what has come, if it is the last heartbeat once more; tell whether it is."""
        if self._limit.state is not ConnectionState.IDLE or self._stream.is_full:
            return False
        asked = self._last.find(data)
        if asked is None:
            return False
        if asked is not self._found:
            self._found, self._line = asked, self._groups.line_of(asked.calls)
        line = self._line
        if line is None or not self._budget.take_now(len(data)):
            return False
        head = read_head(data[LENGTH.size :])
        self._counts.count(head.api)
        self._limit.wait_for(ConnectionState.ANSWERING)
        self._share = BudgetShare(self._budget, len(data))
        self._pending = _Pending(asked, head, line, line.send(asked.calls[0], self))
        return True

    async def settle(self) -> None:
        """Wait until none is unanswered."""
        if self._pending is not None:
            self._settled = asyncio.get_running_loop().create_future()
            await self._settled
            self._settled = None

    def close(self) -> None:
        """Await no answer any more."""
        if self._pending is not None:
            self._pending.line.forget(self._pending.number)
        self._give_back()

    # -- what the line tells

    def answer(self, reply: Any) -> None:
        """Write the answer; an error on the way ends this connection, and no other."""
        pending, self._pending = self._pending, None
        self._give_back()
        assert pending is not None  # noqa: S101  # it is answered once
        try:
            self._stream.transport.write(self._last.write(pending.head, pending.asked, [reply]))
        except Exception:
            LOGGER.exception("an answer could not be written")
            self._stream.transport.abort()
        if self._settled is None:
            self._limit.wait_for_request()
        elif not self._settled.done():  # the task has a part of the next request already
            self._settled.set_result(None)

    def lose(self, error: Error) -> None:
        """Have the client ask again."""
        if self._pending is not None:
            self.answer(refuse_lost(self._pending.asked.calls[0], error))

    def let_wait(self, end_hold: Callable[[], None]) -> None:
        """Wait for news, until the client sends more or goes."""
        self._give_back()
        self._stream.tell_next(end_hold)

    def _give_back(self) -> None:
        share, self._share = self._share, None
        if share is not None:
            share.give_back()
