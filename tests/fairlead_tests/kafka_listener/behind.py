"""A fake broker behind a listener, without Java: it replays recorded responses."""
# pyright: basic

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fairlead_tests.conformance.frames import Frame, build, message_class, write_frame

FETCH, LIST_OFFSETS = 1, 2


@dataclass
class Behind:
    """Responds by API and version, with the correlation id of the request."""

    answers: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """The responses without their correlation id."""
    seen: list[bytes] = field(default_factory=list)
    """The requests, without their lengths."""
    port: int = 0

    def says(self, api: int, version: int, fields: dict[str, Any]) -> None:
        """Set the response to an API."""
        kind = message_class("response", api, version)
        header = kind.__header_schema__(correlation_id=0)
        frame = write_frame(Frame(header, build(kind, fields)))
        self.answers[api, version] = frame[4:]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client; requests without a recorded response get none."""
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                frame = await reader.readexactly(size)
                self.seen.append(frame)
                api, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
                answer = self.answers.get((api, version))
                if answer is not None:
                    told = frame[4:8] + answer
                    writer.write(len(told).to_bytes(4) + told)
                    await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


@asynccontextmanager
async def behind() -> AsyncIterator[Behind]:
    """Serve at a free port."""
    broker = Behind()
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    broker.port = server.sockets[0].getsockname()[1]
    try:
        yield broker
    finally:
        server.close()
        await asyncio.sleep(0.01)  # its connections hear of their ends
