"""A stream to a client, or to a broker: what has come and nobody has read yet, and what is sent.

It differs from asyncio's own in two ways. What comes while nothing else is unread may be taken at
once, so that no task has to be woken for it; and one can ask to be told of whatever comes next.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from ..wire.bounds import PIECE

MOST_UNREAD = 2 * PIECE
"""Bytes that are read ahead, about; then the other end has to wait."""

Serve = Callable[["Stream"], Coroutine[Any, Any, None]]


def _take_nothing(_: bytes) -> bool:
    return False


class Stream(asyncio.Protocol):
    """One connection, and who reads from it: one task at a time."""

    transport: asyncio.Transport

    def __init__(self, serve: Serve | None = None) -> None:
        """Take what is run as a task of its own once it is connected, if anything is."""
        self._serve = serve
        self._task: asyncio.Task[None] | None = None
        self.take: Callable[[bytes], bool] = _take_nothing
        """Is handed what comes while nothing is unread, and tells whether it has taken that."""
        self._unread = bytearray()
        self.has_ended = False
        """Whether nothing comes any more."""
        self._is_held_up = False
        """Whether the other end has to wait before it may send more."""
        self._reading: asyncio.Future[None] | None = None
        self._is_full = False
        """Whether the other end does not take what it is sent."""
        self._writing: asyncio.Future[None] | None = None
        self._told: Callable[[], None] | None = None

    # -- what asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast("asyncio.Transport", transport)  # it is a stream
        self.transport.set_write_buffer_limits(PIECE)
        if self._serve is not None:
            self._task = asyncio.create_task(self._serve(self))

    def data_received(self, data: bytes) -> None:
        """Have it taken at once, or read."""
        if not self._unread and self.take(data):
            return
        self._unread += data
        if len(self._unread) > MOST_UNREAD and not self._is_held_up:
            self._is_held_up = True
            self.transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        """Let the other end have its answers all the same, where that is possible."""
        self.has_ended = True
        self._wake_reader()
        return self.transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Have nobody wait for it any more."""
        del exc  # that it has gone is all that matters
        self.has_ended, self._is_full = True, False
        self._wake_reader()
        self._wake_writer()

    def pause_writing(self) -> None:
        """Learn that too much is not taken."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Learn that enough is taken."""
        self._is_full = False
        self._wake_writer()

    # -- what its task does

    @property
    def is_full(self) -> bool:
        """Whether the other end does not take what it is sent."""
        return self._is_full

    @property
    def has_news(self) -> bool:
        """Whether anything is unread, or nothing comes any more."""
        return bool(self._unread) or self.has_ended

    async def read(self, most: int) -> bytes:
        """Return what there is once there is anything, at most so many bytes; nothing: it ended."""
        while not self.has_news:
            await self.wait()
        return self.read_now(most)

    async def wait(self) -> None:
        """Wait until more has come that nobody took, nothing comes any more, or it is woken."""
        self._reading = asyncio.get_running_loop().create_future()
        try:
            await self._reading
        finally:
            self._reading = None

    def wake(self) -> None:
        """Have its reader wait no longer."""
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    async def read_exactly(self, size: int) -> bytes:
        """Return so many bytes; raises `asyncio.IncompleteReadError` if it ends before."""
        pieces, left = list[bytes](), size
        while left:
            pieces.append(piece := await self.read(left))
            if not piece:
                raise asyncio.IncompleteReadError(b"".join(pieces), size)
            left -= len(piece)
        return b"".join(pieces)

    async def write(self, data: bytes) -> None:
        """Write, and wait as long as too much of it is not taken; raises `OSError`."""
        self.transport.write(data)
        await self.drain()

    async def drain(self) -> None:
        """Wait as long as too much of what was written is not taken; raises `OSError`."""
        while self._is_full:
            self._writing = asyncio.get_running_loop().create_future()
            try:
                await self._writing
            finally:
                self._writing = None
        if self.transport.is_closing():
            raise ConnectionResetError

    def tell_next(self, told: Callable[[], None]) -> None:
        """Have it told once that more has come, or nothing comes any more; maybe now."""
        if self._unread or self.has_ended:
            told()
        else:
            self._told = told

    def read_now(self, most: int) -> bytes:
        """Return what there is, at most so many bytes."""
        with memoryview(self._unread) as unread:
            found = bytes(unread[:most])
        del self._unread[:most]
        if self._is_held_up and len(self._unread) <= PIECE:
            self._is_held_up = False
            self.transport.resume_reading()
        return found

    def _wake_reader(self) -> None:
        self.wake()
        told, self._told = self._told, None
        if told is not None:
            told()

    def _wake_writer(self) -> None:
        if self._writing is not None and not self._writing.done():
            self._writing.set_result(None)
