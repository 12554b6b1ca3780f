"""The connection to a Kafka broker behind the listener."""
# pyright: basic

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from ....actors.transport.ports import HostPort
from ...security.followed_files import FileRefused
from ..client.stream import Stream
from ..wire.bounds import FRAME_SECONDS
from ..wire.frames import LENGTH, Head, Request, make, read_response, request_class, write_request
from .login import UNPROTECTED, BrokerSecurity, LoginRefused


class BrokerUnavailable(Exception):  # noqa: N818  # says what happened
    """No broker can be reached, or the broker has closed the connection."""


class Upstream:
    """A connection to any of several brokers, opened at its first use; each client has its own."""

    def __init__(self, brokers: Sequence[HostPort], security: BrokerSecurity = UNPROTECTED) -> None:
        """Each of `brokers` is suitable; they are tried in order."""
        self._brokers, self._security = brokers, security
        self._stream: Stream | None = None

    async def open(self) -> Stream:
        """Return the connection, open it if needed; raises `BrokerUnavailable`."""
        failed: list[str] = []
        for each in () if self._stream else self._brokers:
            try:
                async with asyncio.timeout(FRAME_SECONDS):
                    self._stream = await self._connect(each)
                break
            except (OSError, EOFError, TimeoutError, LoginRefused, FileRefused) as error:
                failed.append(f"{each.host}:{each.port} ({error})")
        if self._stream is None:
            raise BrokerUnavailable(", ".join(failed) or "kafka.bootstrap.servers is empty")
        return self._stream

    async def _connect(self, broker: HostPort) -> Stream:
        """Return a new connection, on which the node has logged in if it has a user."""
        loop, security = asyncio.get_running_loop(), self._security
        _, stream = await loop.create_connection(Stream, *broker, ssl=security.tls)
        if security.login is not None:
            try:
                await security.login.log_in(partial(_ask, stream))
            except BaseException:
                stream.transport.abort()
                raise
        return stream

    async def ask(self, api: int, version: int, **fields: Any) -> Any:
        """Send a request, and return the response; raises `BrokerUnavailable`, and I/O errors."""
        return await _ask(await self.open(), api, version, **fields)

    def close(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.transport.abort()


async def _ask(stream: Stream, api: int, version: int, **fields: Any) -> Any:
    head = Head(api, version, 0)
    message = make(request_class(api, version), **fields)
    frame = write_request(Request(head, "fairlead", message))
    await stream.write(LENGTH.pack(len(frame)) + frame)
    (size,) = LENGTH.unpack(await stream.read_exactly(LENGTH.size))
    return read_response(head, await stream.read_exactly(size))
