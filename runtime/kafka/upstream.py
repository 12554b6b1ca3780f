"""A way to the brokers behind: a connection with any of them, made when it is first needed."""
# pyright: basic

import asyncio
from collections.abc import Sequence
from typing import Any

from .amend import HostPort
from .wire.bounds import FRAME_SECONDS, PIECE
from .wire.frames import LENGTH, Head, Request, make, read_response, request_class, write_request


class BrokerAway(Exception):  # noqa: N818  # says what happened
    """The broker behind cannot be reached, or has closed the connection."""


class Upstream:
    """A client's own connection with a broker behind; made when it is first needed."""

    def __init__(self, brokers: Sequence[HostPort]) -> None:
        """Take the brokers any of which will do."""
        self._brokers = brokers
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return its two ends; raises `BrokerAway`."""
        failed: list[str] = []
        for each in () if self._streams else self._brokers:
            try:
                async with asyncio.timeout(FRAME_SECONDS):
                    self._streams = await asyncio.open_connection(*each, limit=PIECE)
                break
            except (OSError, TimeoutError) as error:
                failed.append(f"{each.host}:{each.port} ({error})")
        if self._streams is None:
            raise BrokerAway(", ".join(failed))
        return self._streams

    async def ask(self, api: int, version: int, **fields: Any) -> Any:
        """Ask something of our own, and return the answer; raises `BrokerAway` and others."""
        head = Head(api, version, 0)
        reader, writer = await self.open()
        message = make(request_class(api, version), **fields)
        frame = write_request(Request(head, "fairlead", message))
        writer.write(LENGTH.pack(len(frame)) + frame)
        (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        return read_response(head, await reader.readexactly(size))

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].transport.abort()
