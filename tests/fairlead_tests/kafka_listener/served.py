"""A listener in this event loop, with local groups, and with or without a broker."""
# pyright: basic

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.shards.hosting import HostedGroups
from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.kafka.broker.group_partition import GroupPartitions
from fairlead.runtime.kafka.broker.transactions import Transactions
from fairlead.runtime.kafka.counts import Counts
from fairlead.runtime.kafka.groups import Groups
from fairlead.runtime.kafka.security.access import ListenerAccess
from fairlead.runtime.kafka.server import Limits, Listener
from fairlead.runtime.kafka.topics import Topics
from fairlead.runtime.kafka.wire.bounds import FrameRefused
from fairlead.runtime.kafka.wire.served import BY_PROTOCOL
from fairlead_tests.kafka_listener.local_shard import LocalShard
from fairlead_tests.kafka_listener.local_workers import GROUP, LocalWorkers
from fairlead_tests.shards.driver import AT_ONCE, AnsweringAtOnce

HOST = "127.0.0.1"
SECONDS = 60.0
ENOUGH = Limits(100, 100)
OPEN = ListenerAccess()


@dataclass
class Counted(Counts):
    """The refusals, in order, and how many connections are open."""

    folder: Path
    reasons: list[str] = field(default_factory=list)
    mechanisms: list[str] = field(default_factory=list)
    """Of failed authentications."""
    told: list[str] = field(default_factory=list)
    opened: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.folder)

    def count_connection(self, change: int) -> None:
        """Count a connection that begins or ends."""
        self.opened += change
        super().count_connection(change)

    def count_refusal(self, refused: FrameRefused, address: str) -> None:
        """Record a refusal."""
        self.reasons.append(refused.reason)
        super().count_refusal(refused, address)

    def count_failed_authentication(self, mechanism: str) -> None:
        """Record a client that did not prove who it is."""
        self.mechanisms.append(mechanism)
        super().count_failed_authentication(mechanism)

    def warn(self, what: str, whom: str) -> None:
        """Record a log line."""
        self.told.append(f"{what} {whom}")


@dataclass
class Client:
    """A connection to the listener; frames are without their length."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, frame: bytes) -> None:
        """Send a frame."""
        self.writer.write(len(frame).to_bytes(4) + frame)
        await self.writer.drain()

    async def receive(self) -> bytes:
        """Return the next frame; nothing if the connection was closed."""
        async with asyncio.timeout(SECONDS):
            try:
                size = int.from_bytes(await self.reader.readexactly(4))
                return await self.reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError):
                return b""

    async def asks(self, frame: bytes) -> bytes:
        """Send a frame, and return the next one."""
        await self.send(frame)
        return await self.receive()


@dataclass
class Served:
    """A running listener."""

    port: int
    shard: LocalShard
    counts: Counted
    listener: Any
    topics: Topics
    workers: LocalWorkers
    access: ListenerAccess
    clients: list[Client] = field(default_factory=list)

    async def dial(self, port: int = 0) -> Client:
        """Return a new connection."""
        client = Client(*await asyncio.open_connection(HOST, port or self.port))
        self.clients.append(client)
        return client


@asynccontextmanager
async def listening(  # noqa: PLR0917  # tests name them
    folder: Path,
    broker: int = 9,
    limits: Limits = ENOUGH,
    kind: type[HostedGroups] = AnsweringAtOnce,
    settings: GroupSettings = AT_ONCE,
    access: ListenerAccess = OPEN,
    protocols: Sequence[str] = tuple(BY_PROTOCOL),
) -> AsyncIterator[Served]:
    """Serve at a free port, and end all of it; broker 0: there is none behind."""
    brokers = [HostPort(HOST, broker)] if broker else []
    shard, counts, port = LocalShard(kind, settings), Counted(folder), free_place()
    shards: list[Any] = [shard]  # it has all methods of a connection
    topics = Topics(shards, brokers, counts, access.upstream)
    workers: Any = LocalWorkers()
    partitions = GroupPartitions(brokers, access.upstream)
    open_transactions = partial(Transactions, partitions, counts.warn)
    groups = Groups(shards, topics, GROUP, workers, open_transactions, protocols)
    listener = Listener(groups, counts, limits, access)
    here = HostPort(HOST, port)
    await listener.open(here, here, brokers)
    served = Served(port, shard, counts, listener, topics, workers, access)
    sweeping = asyncio.create_task(listener.sweep())
    try:
        yield served
    finally:
        sweeping.cancel()
        for each in served.clients:
            each.writer.transport.abort()
        await listener.close()
        groups.close()
        counts.close()
        await asyncio.sleep(0.01)  # transports hear of their ends


def free_place() -> int:
    """Return a port that is free, and so are some after it."""
    while True:
        with socket.create_server((HOST, 0)) as first:
            port: int = first.getsockname()[1]
        try:
            for each in range(port, port + 4):
                socket.create_server((HOST, each)).close()
        except OSError:
            continue
        return port
