"""Requests and responses with Kafka's field names, over a listener's sockets."""
# pyright: basic

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fairlead_tests.conformance.frames import (
    Frame,
    build,
    message_class,
    read_frame,
    spell,
    write_frame,
)
from fairlead_tests.kafka_listener.behind import Behind, behind
from fairlead_tests.kafka_listener.served import Client, Served, listening


def asking(api: int, version: int, fields: dict[str, Any]) -> bytes:
    """Encode a request."""
    kind = message_class("request", api, version)
    header = kind.__header_schema__(
        request_api_key=api, request_api_version=version, correlation_id=7, client_id="c"
    )
    return write_frame(Frame(header, build(kind, fields)))


def told(api: int, version: int, frame: bytes) -> Any:
    """Decode a response."""
    read = read_frame(frame, message_class("response", api, version))
    assert read.header.correlation_id == 7
    return spell(read.message)


async def ask(client: Client, api: int, version: int, **fields: Any) -> Any:
    """Send a request, and return the fields of the response."""
    return told(api, version, await client.asks(asking(api, version, fields)))


def between(folder: Path, play: Callable[[Served, Behind], Awaitable[Any]]) -> None:
    """Play against a listener with such a broker behind it."""

    async def run() -> None:
        async with behind() as broker, listening(folder, broker.port) as served:
            await play(served, broker)

    asyncio.run(run())
