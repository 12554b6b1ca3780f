"""A TLS proxy in front of a local port, like a load balancer, for gRPC."""

import asyncio
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

HOST = "127.0.0.1"
CHUNK = 1 << 16


@contextmanager
def tls_in_front_of(port: int, certificate: Path) -> Generator[int]:
    """Yield a port that speaks TLS, with a file that holds a key and its certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2"])
    loop = asyncio.new_event_loop()
    ready, over = threading.Event(), asyncio.Event()
    ports: list[int] = []

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _join(port, reader, writer)

    async def serve() -> None:
        server = await asyncio.start_server(join, HOST, 0, ssl=context)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await over.wait()
        server.close()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())  # it ends what still goes on

    thread = threading.Thread(target=run, name="tls")
    thread.start()
    ready.wait()
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


async def _join(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward bytes in both directions, until one side ends."""
    inner_reader, inner_writer = await asyncio.open_connection(HOST, port)
    sides = ((reader, inner_writer), (inner_reader, writer))
    ways = [asyncio.ensure_future(_hand_on(*each)) for each in sides]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in ways:
            each.cancel()
        for side in (writer, inner_writer):
            side.transport.abort()


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
