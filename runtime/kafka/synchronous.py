"""Heartbeats that come again are answered without the task of their connection, and are read once.

A task has to be woken for each request, and once more for its answer. A heartbeat that is, but for
its number, the one that its connection has said last needs neither: what comes in one piece, while
nothing else is under way, is handed on where it comes in, and answered where the reply comes in.
All else is the task's; what comes after a heartbeat waits until that is answered, as it does there.
Members say the same for hours: most that a listener hears is so.
"""
# pyright: basic

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ...actors.messages.errors import Error
from ...actors.messages.groups import PackedCall
from .client.reply_taker import KeptCall
from .client.stream import Stream
from .client.wait_limit import ConnectionState, WaitLimit
from .counts import Counts
from .groups import Groups, refuse_lost
from .line import ShardLine
from .wire.dispatch import answer_of, calls_of
from .wire.frames import HEAD, LENGTH, Head, Request, read_head, read_request, write_response

LOGGER = logging.getLogger(__name__)
BEHIND_NUMBER: Final = LENGTH.size + HEAD.size
"""Bytes of a request with its length up to its number, which is the last of its head."""
BEFORE_NUMBER: Final = BEHIND_NUMBER - LENGTH.size
"""Those before that tell which call it is."""
LONGEST: Final = 512
"""Bytes of what is kept of a request: others are read each time."""


class AskedCalls(NamedTuple):
    """A request, and the calls that it makes."""

    request: Request
    calls: Sequence[PackedCall]


class LastSaid:
    """The last request of a connection, as far as it may come again."""

    def __init__(self) -> None:
        self._start = b""
        """What stood before the number of the request: its length, and which call it is."""
        self._said = b""
        """What stood behind that number."""
        self._asked: AskedCalls | None = None

    def read(self, head: Head, frame: bytes, client_host: str) -> AskedCalls:
        """Return what a frame asks; raises `FrameRefused`."""
        data = LENGTH.pack(len(frame)) + frame
        if (asked := self.find(data)) is not None:
            return asked
        request = read_request(head, frame)
        asked = AskedCalls(request, calls_of(request, client_host))
        self._asked = asked if len(frame) <= LONGEST else None
        self._start, self._said = data[:BEFORE_NUMBER], data[BEHIND_NUMBER:][:LONGEST]
        return asked

    def find(self, data: bytes) -> AskedCalls | None:
        """Return what was asked last, if these bytes are that request once more and no others."""
        is_same = data[BEHIND_NUMBER:] == self._said and data.startswith(self._start)
        return self._asked if is_same else None


class SynchronousHeartbeats:
    """Those of one connection; a `ReplyTaker` of the line to their group."""

    def __init__(
        self, stream: Stream, last: LastSaid, limit: WaitLimit, groups: Groups, counts: Counts
    ) -> None:
        self._stream, self._last, self._limit = stream, last, limit
        self._groups, self._counts = groups, counts
        self._found: AskedCalls | None = None
        """What was said last as often as twice."""
        self._line: ShardLine | None = None
        """Where that goes; None: it is the task's."""
        self._kept: KeptCall | None = None
        self._head = b""
        """Key, version and number of the one that is not answered yet; none: all are."""
        self._answer = b"", b""
        """What was answered last, before and behind the number."""
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
            self._forget()
            self._found, self._line = asked, self._groups.line_of(asked.calls)
        if self._line is None:
            return False
        if self._kept is None:
            self._kept = KeptCall(asked.calls[0])
        self._counts.count(asked.request.head.api)
        self._limit.wait_for(ConnectionState.ANSWERING)
        self._head = data[LENGTH.size : BEHIND_NUMBER]
        self._line.repeat(self._kept, self)
        return True

    async def settle(self) -> None:
        """Wait until none is unanswered."""
        if self._head:
            self._settled = asyncio.get_running_loop().create_future()
            await self._settled
            self._settled = None

    def close(self) -> None:
        """Await no answer any more."""
        self._forget()

    def _forget(self) -> None:
        """Never repeat again what was repeated until now."""
        kept, self._kept = self._kept, None
        if kept is not None and self._line is not None:
            self._line.drop(kept)

    # -- what the line tells

    def answer(self, reply: Any) -> None:
        """Write the answer; an error on the way ends this connection, and no other."""
        assert self._found is not None  # noqa: S101  # it was asked
        try:
            frame = write_response(read_head(self._head), answer_of(self._found.request, [reply]))
        except Exception:
            LOGGER.exception("an answer could not be written")
            self._stream.transport.abort()
            frame = b""
        self._answer = frame[: LENGTH.size], frame[2 * LENGTH.size :]
        self.answer_again()

    def answer_again(self) -> None:
        """Write the answer of before, which has the number of its own request."""
        start, rest = self._answer
        self._stream.transport.write(b"".join((start, self._head[-LENGTH.size :], rest)))
        self._head = b""
        if self._settled is None:
            self._limit.wait_for_request()
        elif not self._settled.done():  # the task has a part of the next request already
            self._settled.set_result(None)

    def lose(self, error: Error) -> None:
        """Have the client ask again."""
        self._forget()
        if self._head and self._found is not None:
            self.answer(refuse_lost(self._found.calls[0], error))

    def let_wait(self, end_hold: Callable[[], None]) -> None:
        """Wait for news, until the client sends more or goes."""
        self._stream.tell_next(end_hold)
