"""A way to the brokers behind: a connection with any of them, made when it is first needed."""
# pyright: basic

import asyncio
from collections.abc import Sequence
from typing import Any

from .amend import HostPort
from .client.stream import Stream
from .wire.bounds import FRAME_SECONDS
from .wire.frames import LENGTH, Head, Request, make, read_response, request_class, write_request


class BrokerAway(Exception):  # noqa: N818  # says what happened
    """The broker behind cannot be reached, or has closed the connection."""


class Upstream:
    """A client's own connection with a broker behind; made when it is first needed."""

    def __init__(self, brokers: Sequence[HostPort]) -> None:
        """Take the brokers any of which will do."""
        self._brokers = brokers
        self._stream: Stream | None = None

    async def open(self) -> Stream:
        """Return it; raises `BrokerAway`."""
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
            raise BrokerAway(", ".join(failed))
        return self._stream

    async def ask(self, api: int, version: int, **fields: Any) -> Any:
        """Ask something of our own, and return the answer; raises `BrokerAway` and others."""
        head = Head(api, version, 0)
        stream = await self.open()
        message = make(request_class(api, version), **fields)
        frame = write_request(Request(head, "fairlead", message))
        await stream.write(LENGTH.pack(len(frame)) + frame)
        (size,) = LENGTH.unpack(await stream.read_exactly(LENGTH.size))
        return read_response(head, await stream.read_exactly(size))

    def close(self) -> None:
        """Close it."""
        if self._stream is not None:
            self._stream.transport.abort()
