"""The line to the node that owns a group: it carries messages there, and hands back the answers.

A thread of the actor's process has all connections (`connection`); the actor gives it messages and
takes answers when the line's descriptor has input. Both ends prove by a certificate that they are
nodes. The owner may be another one at any time: then all messages under way are given up, as are
those of a connection that fails. Whether an answer may be delivered says `delivery`.
"""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Final, NamedTuple, Self, TypeGuard

from ....actors.transport.actor import Address
from ....actors.transport.ports import HostPort
from ...cluster.kafka_security import KAFKA_TLS, KafkaSecurity
from ...kafka.client.stream import Stream
from ...kafka.wire.calls.carried import CarriedRequest
from ...security.kafka.principal_mapping import MappingRule, map_subject, parse_mapping
from ...security.tls import ClientTls, subject_of, tls_settings
from .connection import Lane, LineAnswer, OwnerConnection, OwnerRefused, lane_of

LOGGER = logging.getLogger(__name__)
DIAL_SECONDS: Final = 3.0
SWEEP_SECONDS: Final = 0.5
"""The interval at which connections are checked for late answers."""
NO_OWNER: Final = "the node that owns the group is not known yet"
_LOST_HOST: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 3_000),
)
"""The options by which the connection to a host that has vanished ends after about 3 s."""


class LineSecurity(NamedTuple):
    """How a node proves that it is one, and whom it takes for one."""

    tls: ClientTls
    rules: Sequence[MappingRule]
    nodes: frozenset[str]

    @classmethod
    def open(cls, spec: KafkaSecurity) -> Self:
        """Read the files of a listener's settings, and again when they change.

        Raises `TlsRefusedError`.
        """
        tls = ClientTls(tls_settings(spec.tls, KAFKA_TLS))
        return cls(tls, parse_mapping(spec.principal_rules), frozenset(spec.nodes))

    def flaw_in(self, certificate: bytes | None) -> str:
        """Return why the other end is no node; "" if it is one."""
        if certificate is None:
            return "it has no certificate"
        name = map_subject(self.rules, subject_of(certificate))
        return "" if f"User:{name}" in self.nodes else f"members.principal has no User:{name}"


class OwnerLine:
    """The connections of one node to the owner of its group."""

    def __init__(self, security: LineSecurity) -> None:
        """Start the thread; there is no owner before `move`."""
        self._security = security
        self._owner: HostPort | None = None
        self._connections: dict[tuple[str, Lane], OwnerConnection] = {}
        """By sender and lane."""
        self._answers: SimpleQueue[LineAnswer] = SimpleQueue()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """It has input while there are answers."""
        self._last_why = ""
        """Why messages were given up last; "": they are answered."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="owner line", daemon=True)
        self._thread.start()

    # -- what the actor calls

    @staticmethod
    def carries(message: object) -> TypeGuard[CarriedRequest]:
        """Return whether a message is one that nodes send to an owner."""
        return isinstance(message, CarriedRequest)

    def send(self, message: CarriedRequest, sender: Address) -> None:
        """Send a message to the owner; its end is among the answers in any case."""
        self._loop.call_soon_threadsafe(self._send, message, sender)

    def move(self, owner: HostPort | None) -> None:
        """Send to this node from now on; None: no owner is known."""
        self._loop.call_soon_threadsafe(self._move, owner)

    def fileno(self) -> int:
        """Return the descriptor that has input while there are answers."""
        return self._bell

    def answers(self) -> Iterator[LineAnswer]:
        """Yield the answers since the last call, in the order in which they arrived."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while not self._answers.empty():
            yield self._answers.get()

    def close(self) -> Sequence[LineAnswer]:
        """Close all connections, and end the thread; return the end of all messages under way."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        left = [*self.answers()]
        os.close(self._bell)
        return left

    # -- what runs in the thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._sweep)
        self._loop.run_forever()
        for each in self._connections.values():
            each.close("this node turns to no other one any more")
        self._loop.run_until_complete(asyncio.sleep(0))  # transports and tasks hear of it
        self._loop.close()

    def _send(self, message: CarriedRequest, sender: Address) -> None:
        key = str(sender), lane_of(message)
        if (connection := self._connections.get(key)) is None:
            dial = partial(self._dial, self._owner)
            connection = self._connections[key] = OwnerConnection(key[1], dial, self._deliver)
        connection.send(message, sender)

    def _move(self, owner: HostPort | None) -> None:
        if owner == self._owner:
            return
        LOGGER.info("the owner of the group is %s", f"{owner.host}:{owner.port}" if owner else "?")
        self._owner, former = owner, self._connections
        self._connections = {}
        for each in former.values():
            each.close("another node owns the group now")

    def _sweep(self) -> None:
        now = time.monotonic()
        for key, each in [*self._connections.items()]:
            each.close_if_late(now)
            if each.is_unused(now):
                each.close("")
                del self._connections[key]
        self._loop.call_later(SWEEP_SECONDS, self._sweep)

    async def _dial(self, owner: HostPort | None) -> Stream:
        """Connect to the owner; raises `OSError`, `TimeoutError`, `OwnerRefused`."""
        if owner is None:
            raise OwnerRefused(NO_OWNER)
        async with asyncio.timeout(DIAL_SECONDS):
            context = self._security.tls.context()
            _, stream = await self._loop.create_connection(Stream, *owner, ssl=context)
        if flaw := self._security.flaw_in(stream.certificate):
            stream.transport.abort()
            raise OwnerRefused(f"{owner.host}:{owner.port} is no node of this cluster: {flaw}")
        plain = stream.transport.get_extra_info("socket")
        for option in _LOST_HOST:
            plain.setsockopt(*option)
        return stream

    def _deliver(self, answer: LineAnswer) -> None:
        if answer.why and answer.why != self._last_why:
            LOGGER.warning("messages to the owner of the group are given up: %s", answer.why)
        self._last_why = answer.why
        self._answers.put(answer)
        os.eventfd_write(self._bell, 1)
