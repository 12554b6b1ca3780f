"""The connection to a Kafka broker behind the listener."""
# pyright: basic

import asyncio
from collections.abc import Sequence
from typing import Any

from ...actors.transport.ports import HostPort
from .client.stream import Stream
from .wire.bounds import FRAME_SECONDS
from .wire.frames import LENGTH, Head, Request, make, read_response, request_class, write_request


class BrokerUnavailable(Exception):  # noqa: N818  # says what happened
    """No broker can be reached, or the broker has closed the connection."""


class Upstream:
    """A connection to any of several brokers, opened at its first use; each client has its own."""

    def __init__(self, brokers: Sequence[HostPort]) -> None:
        """Each of `brokers` is suitable; they are tried in order."""
        self._brokers = brokers
        self._stream: Stream | None = None

    async def open(self) -> Stream:
        """Return the connection, open it if needed; raises `BrokerUnavailable`."""
        failed: list[str] = []
        for each in () if self._stream else self._brokers:
            try:
                async with asyncio.timeout(FRAME_SECONDS):
                    loop = asyncio.get_running_loop()
                    _, self._stream = await loop.create_connection(Stream, *each)
                break
            except (OSError, TimeoutError) as error:
                failed.append(f"{each.host}:{each.port} ({error})")
        if self._stream is None:
            raise BrokerUnavailable(", ".join(failed))
        return self._stream

    async def ask(self, api: int, version: int, **fields: Any) -> Any:
        """Send a request, and return the response; raises `BrokerUnavailable`, and I/O errors."""
        head = Head(api, version, 0)
        stream = await self.open()
        message = make(request_class(api, version), **fields)
        frame = write_request(Request(head, "fairlead", message))
        await stream.write(LENGTH.pack(len(frame)) + frame)
        (size,) = LENGTH.unpack(await stream.read_exactly(LENGTH.size))
        return read_response(head, await stream.read_exactly(size))

    def close(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.transport.abort()
