"""Where the listener listens: one port for groups, and one more for each broker behind.

Broker n is reached at the listener's own port + 1 + n: brokers are told apart by ports that follow
from their ids alone, so that they stay the same over restarts and wherever they are told of.
"""

import asyncio
import logging
import ssl
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from .amend import Broker, HostPort, brokers_of
from .client.stream import Stream
from .connection import ClientConnection, ListenerPort
from .counts import Counts
from .groups import Groups
from .upstream import BrokerAway, Upstream
from .wire.bounds import BUDGET, Budget, FrameRefused
from .wire.served import METADATA

LOGGER = logging.getLogger(__name__)
BACKLOG: Final = 1_024
SWEEP_SECONDS: Final = 1.0
"""How often connections are looked at whose clients keep us waiting."""
METADATA_VERSION: Final = 9
NOT_ASKED: Final = (
    "include_cluster_authorized_operations",
    "include_topic_authorized_operations",
)
"""What a Metadata may ask beside."""
LARGEST_PORT: Final = 65_535
PAUSE_SECONDS: Final = 1.0


class Limits(NamedTuple):
    """How many connections there may be, of all clients and of one address."""

    connections: int
    of_address: int


class Listener:
    """All ports, and the connections on them."""

    def __init__(
        self, groups: Groups, counts: Counts, limits: Limits, encryption: ssl.SSLContext | None
    ) -> None:
        self._groups, self._counts, self._limits, self._tls = groups, counts, limits, encryption
        self._budget = Budget(BUDGET)
        self._connections: set[ClientConnection] = set()
        self._of_address: Counter[str] = Counter()
        self._servers: list[asyncio.Server] = []
        self._of_brokers: dict[int, ListenerPort] = {}
        """By port, those that are open or about to be."""
        self._opening: set[asyncio.Task[None]] = set()

    async def open(self, at: HostPort, told: HostPort, bootstrap: Sequence[HostPort]) -> None:
        """Listen for groups; clients are told `told`. Raises `OSError`."""
        self._at, self._told = at, told
        await self._listen(at.port, ListenerPort(told, bootstrap, self.place_of, lists=True))

    async def learn_brokers(self, bootstrap: Sequence[HostPort]) -> None:
        """Open the ports of the brokers that there are, as soon as one can be asked."""
        brokers: list[Broker] = []
        while not brokers:
            try:
                brokers = await _ask_for_brokers(bootstrap)
                for broker in brokers:
                    self.place_of(broker)
            except (BrokerAway, FrameRefused, asyncio.IncompleteReadError, OSError) as error:
                self._counts.complain("the broker cannot be reached:", str(error))
                await asyncio.sleep(PAUSE_SECONDS)

    async def sweep(self) -> None:
        """Close connections whose clients keep us waiting for too long; without end."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = time.monotonic()
            for each in [*self._connections]:
                each.end_if_late(now)

    async def close(self) -> None:
        """Take no more connections, and end those that there are."""
        await asyncio.gather(*self._opening)
        for server in self._servers:
            server.close()
        for each in [*self._connections]:
            each.end()
        while self._connections:
            await asyncio.sleep(0)

    def place_of(self, broker: Broker) -> HostPort:
        """Return where clients reach a broker; its port is opened if it is not yet.

        One that has moved is reached where it says it is now, by whoever comes from now on.
        """
        port = self._at.port + 1 + broker.broker_id
        if port > LARGEST_PORT:
            raise FrameRefused("broker's id", f"{broker.broker_id} leads to no port: see README")
        at, shared = HostPort(broker.host, broker.port), self._of_brokers.get(port)
        if shared is None:
            shared = ListenerPort(self._told, [at], self.place_of, lists=False)
            self._of_brokers[port] = shared
            opening = asyncio.create_task(self._open_port(port, shared))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
        elif [*shared.brokers] != [at]:
            LOGGER.info("broker %d has moved to %s:%d", broker.broker_id, *at)
            shared.brokers = [at]
        return HostPort(self._told.host, self._told.port + 1 + broker.broker_id)

    async def _open_port(self, port: int, shared: ListenerPort) -> None:
        (broker,) = shared.brokers
        try:
            await self._listen(port, shared)
            LOGGER.info("broker %s:%d is reached at port %d", *broker, port)
        except OSError as error:
            del self._of_brokers[port]  # whoever names the broker next has it tried again
            self._counts.complain(f"port {port} is taken, broker {broker} not reached:", str(error))

    async def _listen(self, port: int, shared: ListenerPort) -> None:
        make = partial(Stream, partial(self._accept, shared))
        loop = asyncio.get_running_loop()
        server = await loop.create_server(make, self._at.host, port, backlog=BACKLOG, ssl=self._tls)
        self._servers.append(server)

    async def _accept(self, shared: ListenerPort, stream: Stream) -> None:
        client = ClientConnection(stream, shared, self._groups, self._budget, self._counts)
        if self._is_one_too_many(client):
            stream.transport.abort()
            return
        self._connections.add(client)
        self._of_address[client.address] += 1
        self._counts.open(1)
        try:
            await client.serve()
        finally:
            self._connections.discard(client)
            self._of_address[client.address] -= 1
            self._counts.open(-1)

    def _is_one_too_many(self, client: ClientConnection) -> bool:
        limits, address = self._limits, client.address
        if len(self._connections) >= limits.connections:
            refused = FrameRefused("too many connections", f"there are {limits.connections}")
        elif self._of_address[address] >= limits.of_address:
            refused = FrameRefused("too many connections", f"{limits.of_address} of this address")
        else:
            return False
        self._counts.refuse(refused, address)
        return True


async def _ask_for_brokers(bootstrap: Sequence[HostPort]) -> list[Broker]:
    """Return the brokers that one of them tells of."""
    upstream = Upstream(bootstrap)
    try:
        asked = dict.fromkeys(NOT_ASKED, False)
        return brokers_of(await upstream.ask(METADATA, METADATA_VERSION, topics=(), **asked))
    finally:
        upstream.close()
