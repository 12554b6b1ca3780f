"""The ports of the listener: one for groups, and one for each broker behind it.

Broker n is reached at the listener's port + 1 + n. So the port of a broker depends only on its id,
and is the same after restarts and in all responses. Of many nodes, clients are sent to the ports of
the one that owns the groups (`broker.responses`).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from ...actors.transport.ports import HostPort
from .broker.login import BrokerSecurity
from .broker.responses import Broker, brokers_of
from .broker.upstream import BrokerUnavailable, Upstream
from .client.stream import Stream
from .connection import ClientConnection, ListenerPort
from .counts import Counts
from .groups import Groups
from .security.access import ListenerAccess
from .wire.bounds import BUDGET, RECEIVING, Budget, Budgets, FrameRefused
from .wire.served import METADATA

LOGGER = logging.getLogger(__name__)
BACKLOG: Final = 1_024
SWEEP_SECONDS: Final = 1.0
"""The interval at which connections are checked for timeouts."""
METADATA_VERSION: Final = 9
NOT_ASKED: Final = (
    "include_cluster_authorized_operations",
    "include_topic_authorized_operations",
)
"""The optional parts of a Metadata request."""
LARGEST_PORT: Final = 65_535
PAUSE_SECONDS: Final = 1.0
"""The retry interval while no broker can be reached."""


class Limits(NamedTuple):
    """The maximum numbers of connections: in total, and from one address."""

    connections: int
    of_address: int
    """The maximum number of connections from one address."""


class Listener:
    """All ports, and their connections."""

    def __init__(
        self,
        groups: Groups,
        counts: Counts,
        limits: Limits,
        access: ListenerAccess,
    ) -> None:
        self._groups, self._counts, self._limits, self._access = groups, counts, limits, access
        self._budgets = Budgets(Budget(RECEIVING), Budget(BUDGET))
        self._connections: set[ClientConnection] = set()
        self._of_address: Counter[str] = Counter()
        """The number of connections by client address."""
        self._servers: list[asyncio.Server] = []
        self._of_brokers: dict[int, ListenerPort] = {}
        """The ports of brokers that are open or being opened, by number."""
        self._opening: set[asyncio.Task[None]] = set()

    async def open(
        self, bind: HostPort, advertised: HostPort, bootstrap: Sequence[HostPort]
    ) -> None:
        """Open the port for groups, which clients know as `advertised`. Raises `OSError`."""
        self._bind, self._advertised = bind, advertised
        await self._listen(
            bind.port, ListenerPort(advertised, bootstrap, self.address_of, lists=True)
        )

    async def open_broker_ports(self, bootstrap: Sequence[HostPort]) -> None:
        """Open the ports of all brokers, if there are any, as soon as one can be reached."""
        brokers: list[Broker] = []
        while bootstrap and not brokers:
            try:
                brokers = await _ask_for_brokers(bootstrap, self._access.upstream)
                for broker in brokers:
                    self.address_of(broker)
            except (BrokerUnavailable, FrameRefused, asyncio.IncompleteReadError, OSError) as error:
                self._counts.warn("the broker cannot be reached:", str(error))
                await asyncio.sleep(PAUSE_SECONDS)

    async def sweep(self) -> None:
        """Close connections whose timeout is over; runs until it is cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = time.monotonic()
            for each in [*self._connections]:
                each.close_if_late(now)

    async def follow_files(self) -> None:
        """Read the files of access again when they change; runs until it is cancelled."""
        while True:
            try:
                self._tell_certificate_end()
                if self._access.refresh():
                    self.renew_rights()
            except Exception:
                LOGGER.exception("the files of who has access are as before; it is tried again")
            await asyncio.sleep(SWEEP_SECONDS)

    def _tell_certificate_end(self) -> None:
        """Tell the metrics the end of the certificate, as its file is now."""
        if (tls := self._access.tls) is not None:
            tls.context()
            self._counts.tell_certificate_end(tls.not_after)

    def renew_rights(self) -> None:
        """Look up the rights of each client at its next request."""
        for each in self._connections:
            each.renew_rights()

    async def close(self) -> None:
        """Close all ports and connections."""
        await asyncio.gather(*self._opening)
        for server in self._servers:
            server.close()
        for each in [*self._connections]:
            each.close()
        while self._connections:
            await asyncio.sleep(0)

    def address_of(self, broker: Broker) -> HostPort:
        """Return the address at which clients reach a broker, and open its port if needed.

        If the broker advertises a new address, new connections go there.
        """
        port = self._bind.port + 1 + broker.broker_id
        if port > LARGEST_PORT:
            raise FrameRefused(
                "broker's id",
                f"{broker.broker_id} leads to no port: `fairlead docs kafka-clients`",
            )
        at, shared = HostPort(broker.host, broker.port), self._of_brokers.get(port)
        if shared is None:
            shared = ListenerPort(self._advertised, [at], self.address_of, lists=False)
            self._of_brokers[port] = shared
            opening = asyncio.create_task(self._open_port(port, shared))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
        elif [*shared.brokers] != [at]:
            LOGGER.info("broker %d has moved to %s:%d", broker.broker_id, *at)
            shared.brokers = [at]
        node = self._groups.owner or self._advertised
        return HostPort(node.host, node.port + 1 + broker.broker_id)

    async def _open_port(self, port: int, shared: ListenerPort) -> None:
        (broker,) = shared.brokers
        try:
            await self._listen(port, shared)
            LOGGER.info("broker %s:%d is reached at port %d", *broker, port)
        except OSError as error:
            del self._of_brokers[port]  # the next response that names the broker tries again
            self._counts.warn(f"port {port} is taken, broker {broker} not reached:", str(error))

    async def _listen(self, port: int, shared: ListenerPort) -> None:
        is_encrypted = self._access.tls is not None
        make = partial(Stream, partial(self._accept, shared), waits_for_tls=is_encrypted)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(make, self._bind.host, port, backlog=BACKLOG)
        self._servers.append(server)

    async def _accept(self, shared: ListenerPort, stream: Stream) -> None:
        shares = shared, self._groups, self._budgets, self._counts, self._access
        client = ClientConnection(stream, *shares)
        if self._exceeds_limits(client):
            stream.transport.abort()
            return
        self._connections.add(client)
        self._of_address[client.address] += 1
        self._counts.count_connection(1)
        try:
            await client.serve()
        finally:
            self._connections.discard(client)
            self._of_address[client.address] -= 1
            self._counts.count_connection(-1)

    def _exceeds_limits(self, client: ClientConnection) -> bool:
        limits, address = self._limits, client.address
        if len(self._connections) >= limits.connections:
            refused = FrameRefused("too many connections", f"there are {limits.connections}")
        elif self._of_address[address] >= limits.of_address:
            refused = FrameRefused("too many connections", f"{limits.of_address} of this address")
        else:
            return False
        self._counts.count_refusal(refused, address)
        return True


async def _ask_for_brokers(bootstrap: Sequence[HostPort], security: BrokerSecurity) -> list[Broker]:
    """Return all brokers, according to one of them."""
    upstream = Upstream(bootstrap, security)
    try:
        asked = dict.fromkeys(NOT_ASKED, False)
        return brokers_of(await upstream.ask(METADATA, METADATA_VERSION, topics=(), **asked))
    finally:
        upstream.close()
