"""A buffered TCP connection to a client or to a broker, as an asyncio protocol.

It differs from asyncio's own streams in two ways. While the read buffer is empty, `on_data` may
consume new bytes at once, so that no task has to wake up. And a callback can be registered for
the next input.

`FrameReceiver` receives the rest of a request, within a budget for large ones. Small requests need
no share of it: whoever announces large ones and sends nothing keeps nobody's usual calls waiting. A
large one that arrives slowly loses its place to those that wait.

`Relay` copies a broker's response to a client. Bytes are written to the client when they arrive. If
the client reads too slowly (back-pressure), they stay in the buffer of the broker's stream, and a
task copies them later.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, cast

from ..wire.bounds import CONTENDED_SECONDS, PIECE, SMALL, Budget, BudgetShare

MOST_UNREAD = 2 * PIECE
"""The approximate size of the read buffer in bytes; reading pauses when it is full."""

Serve = Callable[["Stream"], Coroutine[Any, Any, None]]


def consume_nothing(_: bytes) -> bool:
    """Leave all bytes in the read buffer."""
    return False


class Stream(asyncio.Protocol):
    """One connection; one task at a time may read from it."""

    transport: asyncio.Transport

    def __init__(self, serve: Serve | None = None, *, waits_for_tls: bool = False) -> None:
        """`serve` runs as a task once the connection is open; None: there is no such task.

        With `waits_for_tls` nothing is read before `start_tls`.
        """
        self._serve, self._waits_for_tls = serve, waits_for_tls
        self._task: asyncio.Task[None] | None = None
        self.on_data: Callable[[bytes], bool] = consume_nothing
        """Called with new bytes if the read buffer is empty; returns whether it consumed them."""
        self._unread = bytearray()
        self.has_ended = False
        """Whether the other end has closed its side: no more bytes arrive."""
        self._is_paused = False
        """Whether reading from the socket is paused, because the read buffer is full."""
        self._reading: asyncio.Future[None] | None = None
        """Wakes the reading task."""
        self._is_full = False
        """Whether the write buffer is full (back-pressure)."""
        self._writing: asyncio.Future[None] | None = None
        """Wakes the writing task."""
        self._on_input: Callable[[], None] | None = None
        """The callback of `notify_on_input`."""

    # -- callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the task."""
        self.transport = cast("asyncio.Transport", transport)  # it is a stream
        self.transport.set_write_buffer_limits(PIECE)
        if self._waits_for_tls:
            self.transport.pause_reading()
        if self._serve is not None:
            self._task = asyncio.create_task(self._serve(self))

    def data_received(self, data: bytes) -> None:
        """Pass the bytes to `on_data`, or append them to the read buffer."""
        if not self._unread and self.on_data(data):
            return
        self._unread += data
        if len(self._unread) > MOST_UNREAD and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        """Keep the other direction open for pending responses, except with TLS."""
        self.has_ended = True
        self._wake_reader()
        return self.transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake all waiting tasks."""
        del exc  # the reason makes no difference
        self.has_ended, self._is_full = True, False
        self._wake_reader()
        self._wake_writer()

    def pause_writing(self) -> None:
        """Set `is_full`."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Reset `is_full`, and wake the writing task."""
        self._is_full = False
        self._wake_writer()

    # -- methods for tasks

    async def start_tls(self, context: ssl.SSLContext, seconds: float) -> None:
        """Encrypt the connection, as a server; raises `ssl.SSLError`, `OSError`, `TimeoutError`."""
        loop = asyncio.get_running_loop()
        encrypted = await loop.start_tls(
            self.transport, self, context, server_side=True, ssl_handshake_timeout=seconds
        )
        if encrypted is None:
            raise ConnectionResetError
        self.transport = encrypted
        self.transport.set_write_buffer_limits(PIECE)

    @property
    def certificate(self) -> bytes | None:
        """The certificate of the other end in DER; None: it has none, or there is no TLS."""
        encryption = self.transport.get_extra_info("ssl_object")
        return encryption.getpeercert(binary_form=True) if encryption else None

    @property
    def is_full(self) -> bool:
        """Whether the write buffer is full, since the other end reads too slowly."""
        return self._is_full

    @property
    def is_readable(self) -> bool:
        """Whether there are unread bytes, or the other end has closed its side."""
        return bool(self._unread) or self.has_ended

    async def read(self, most: int) -> bytes:
        """Wait for input and return it, at most `most` bytes; b"" at the end of the stream."""
        while not self.is_readable:
            await self.wait()
        return self.read_now(most)

    async def wait(self) -> None:
        """Wait until bytes are added to the read buffer, the stream ends, or `wake` is called."""
        self._reading = asyncio.get_running_loop().create_future()
        try:
            await self._reading
        finally:
            self._reading = None

    def wake(self) -> None:
        """Wake the reading task."""
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    async def read_exactly(self, size: int) -> bytes:
        """Return `size` bytes; raises `asyncio.IncompleteReadError` if the stream ends before."""
        pieces, left = list[bytes](), size
        while left:
            pieces.append(piece := await self.read(left))
            if not piece:
                raise asyncio.IncompleteReadError(b"".join(pieces), size)
            left -= len(piece)
        return b"".join(pieces)

    async def write(self, data: bytes) -> None:
        """Write, and wait while the write buffer is full; raises `OSError`."""
        self.transport.write(data)
        await self.drain()

    async def drain(self) -> None:
        """Wait while the write buffer is full; raises `OSError`."""
        while self._is_full:
            self._writing = asyncio.get_running_loop().create_future()
            try:
                await self._writing
            finally:
                self._writing = None
        if self.transport.is_closing():
            raise ConnectionResetError

    def notify_on_input(self, callback: Callable[[], None]) -> None:
        """Call back once, at the next input or at the end of the stream; maybe now."""
        if self._unread or self.has_ended:
            callback()
        else:
            self._on_input = callback

    def read_now(self, most: int) -> bytes:
        """Return the unread bytes, at most `most`."""
        with memoryview(self._unread) as unread:
            found = bytes(unread[:most])
        del self._unread[:most]
        if self._is_paused and len(self._unread) <= PIECE:
            self._is_paused = False
            self.transport.resume_reading()
        return found

    def _wake_reader(self) -> None:
        self.wake()
        callback, self._on_input = self._on_input, None
        if callback is not None:
            callback()

    def _wake_writer(self) -> None:
        if self._writing is not None and not self._writing.done():
            self._writing.set_result(None)


class FrameReceiver:
    """Receives the requests of one connection, one at a time."""

    def __init__(self, stream: Stream, budget: Budget) -> None:
        """Share the budget for large requests of all connections that have not arrived whole."""
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


class Relay:
    """The copy of one response from a broker to a client."""

    def __init__(self, broker: Stream, client: Stream, size: int) -> None:
        """Start to copy a response of `size` bytes."""
        self.left = size
        """The number of bytes that are not copied yet."""
        self._broker, self._client = broker, client
        broker.on_data = self._copy

    async def read(self) -> bytes:
        """Return the next bytes to write, b"" if all are copied; raises `EOFError`."""
        if not self._broker.is_readable:
            await self._broker.wait()
        piece = self._broker.read_now(min(self.left, PIECE))
        if self.left and not piece:
            raise EOFError
        self.left -= len(piece)
        return piece

    def _copy(self, data: bytes) -> bool:
        client = self._client
        if len(data) > self.left or client.is_full or client.transport.is_closing():
            return False
        client.transport.write(data)
        self.left -= len(data)
        if not self.left:
            self._broker.wake()
        return True
