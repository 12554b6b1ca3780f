"""The connection of one client: requests are answered one at a time, in order, as by a broker.

Requests of group APIs are served here. All others are proxied to a broker, on a connection of this
client's own that is opened at its first use. Proxied frames are copied in pieces, and never in
memory as a whole, except for responses that are rewritten.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ...actors.transport.ports import HostPort
from .broker_responses import (
    MapBroker,
    find_group_coordinator,
    is_for_groups,
    rewrite_response,
)
from .client.stream import FrameReceiver, Relay, Stream
from .client.timeout import ConnectionState, ConnectionTimeout
from .counts import Counts
from .groups import Groups
from .synchronous import LastRequest, SynchronousHeartbeats
from .upstream import BrokerUnavailable, Upstream
from .wire.bounds import (
    FRAME_SECONDS,
    IDLE_SECONDS,
    LONGEST_DECODED,
    LONGEST_FRAME,
    LONGEST_REWRITTEN,
    PIECE,
    SHORTEST_FRAME,
    SLOWEST,
    Budgets,
    BudgetShare,
    FrameRefused,
)
from .wire.dispatch import answer_of
from .wire.frames import (
    HEAD,
    LENGTH,
    Head,
    is_known,
    read_head,
    read_request,
    read_response,
    write_response,
)
from .wire.lengths import expects_answer
from .wire.served import (
    CONNECT_HEARTBEAT,
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    HEARTBEAT,
    PRODUCE,
    REWRITTEN,
    SERVED,
    is_served,
)

LOGGER = logging.getLogger(__name__)
FIRST_BYTES: Final = 4_096
"""The size of the first part of a Produce, in bytes: `acks` is in it, after the ids."""
HEARTBEATS: Final = frozenset({HEARTBEAT, CONSUMER_GROUP_HEARTBEAT, CONNECT_HEARTBEAT})
"""The APIs whose requests a group may hold (long poll)."""


class ListenerPort:
    """The settings that all connections of one port share."""

    def __init__(
        self, here: HostPort, brokers: Sequence[HostPort], map_broker: MapBroker, *, lists: bool
    ) -> None:
        """Share the group coordinator's address `here`; without `lists` ListGroups is empty."""
        self.here, self.brokers, self.map_broker, self.lists = here, brokers, map_broker, lists


class ClientConnection:
    """One client's connection, from its first byte to its last."""

    def __init__(
        self,
        stream: Stream,
        shared: ListenerPort,
        groups: Groups,
        budgets: Budgets,
        counts: Counts,
    ) -> None:
        self._stream = stream
        self._shared, self._groups, self._counts = shared, groups, counts
        self._budget, self._receiver = budgets.answering, FrameReceiver(stream, budgets.receiving)
        self._upstream = Upstream(shared.brokers)
        self.address = str(stream.transport.get_extra_info("peername")[0])
        self._limit, self._last = ConnectionTimeout(), LastRequest()
        self._task: asyncio.Task[None] | None = None
        self._heartbeats = SynchronousHeartbeats(stream, self._last, self._limit, groups, counts)

    async def serve(self) -> None:
        """Answer requests until the client disconnects, or sends an invalid request."""
        self._task = asyncio.current_task()
        try:
            while await self._answer_next():
                pass
        except FrameRefused as refused:
            self._counts.count_refusal(refused, self.address)
        except BrokerUnavailable as away:
            self._counts.warn("the broker cannot be reached", str(away))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass  # the client or the broker has disconnected, or the listener stops
        finally:
            self._heartbeats.close()
            self._upstream.close()
            self._stream.transport.abort()

    def close(self) -> None:
        """Close the connection at once, and cancel its task."""
        self._stream.transport.abort()
        if self._task is not None:
            self._task.cancel()

    def close_if_late(self, now: float) -> None:
        """Close the connection if its timeout is over."""
        if self._limit.is_over(now) or self._receiver.is_late(now):
            state = self._limit.state
            if state is not ConnectionState.IDLE:
                reason = "slow reader" if state is ConnectionState.WRITING else "half-sent"
                self._counts.count_refusal(FrameRefused(reason, state.value), self.address)
            self.close()

    async def _answer_next(self) -> bool:
        """Answer the next request; return False if the client has disconnected instead."""
        start = await self._stream.read(LENGTH.size)
        await self._heartbeats.wait_for_answer()
        if not start:
            return False
        self._limit.wait_for(ConnectionState.READING, FRAME_SECONDS)
        if len(start) < LENGTH.size:
            start += await self._stream.read_exactly(LENGTH.size - len(start))
        (length,) = LENGTH.unpack(start)
        if not SHORTEST_FRAME <= length <= LONGEST_FRAME:
            raise FrameRefused("length", str(length))
        self._limit.wait_for(ConnectionState.READING, FRAME_SECONDS + length / SLOWEST)
        head = read_head(first := await self._stream.read_exactly(HEAD.size))
        self._counts.count_request(head.api)
        if not (is_served(head.api, head.version) and is_known(head.api)):
            raise FrameRefused("unknown call", f"{head.api} in version {head.version}")
        if head.api in SERVED:
            await self._serve_here(head, length, first)
        elif head.api in REWRITTEN and head.version <= REWRITTEN[head.api][1]:
            await self._rewrite(head, length, first)
        else:
            await self._proxy(head, length, first)
        self._limit.wait_for_request()
        return True

    # -- requests that are served here

    async def _serve_here(self, head: Head, length: int, first: bytes) -> None:
        _check_decoded(length)
        frame, received = await self._receiver.read(first, length)
        try:
            await self._budget.take(length)
        finally:
            received.give_back()
        share = BudgetShare(self._budget, length)
        try:
            parsed = self._last.read(head, frame, f"/{self.address}")
            del frame
            # The workers' group leaves some requests unanswered: the client times out before this.
            seconds = IDLE_SECONDS if head.api == CONNECT_HEARTBEAT else 0.0
            self._limit.wait_for(ConnectionState.ANSWERING, seconds)
            on_hold = partial(self._hold, share, head.api)
            replies = await self._groups.ask(parsed.calls, on_hold, lists=self._shared.lists)
        finally:
            share.give_back()
        await self._write(write_response(head, answer_of(parsed.request, replies)))

    def _hold(self, share: BudgetShare, api: int, end_hold: Callable[[], None]) -> None:
        """Return the memory of a held request; a heartbeat is held until its client sends more."""
        share.give_back()
        if api in HEARTBEATS:
            self._stream.notify_on_input(end_hold)

    # -- responses that are rewritten

    async def _rewrite(self, head: Head, length: int, first: bytes) -> None:
        """Forward a request, and rewrite the response.

        The broker validates the request, which may have librdkafka's unused bytes.
        """
        _check_decoded(length)
        frame, received = await self._receiver.read(first, length)
        received.give_back()
        if head.api == FIND_COORDINATOR:
            request = read_request(head, frame)
            if is_for_groups(request):
                await self._write(
                    write_response(head, find_group_coordinator(request, self._shared.here))
                )
                return
        broker = await self._upstream.open()
        self._limit.wait_for(ConnectionState.ANSWERING)
        await broker.write(LENGTH.pack(length) + frame)
        size = await _length_from(broker, LONGEST_REWRITTEN)
        message = read_response(head, await _all_from(broker, size))
        rewritten = rewrite_response(head.api, message, self._shared.here, self._shared.map_broker)
        await self._write(write_response(head, rewritten))

    # -- requests that are proxied

    async def _proxy(self, head: Head, length: int, first: bytes) -> None:
        broker = await self._upstream.open()
        left, is_answered = length - len(first), True
        if head.api == PRODUCE:
            more = await self._stream.read_exactly(min(left, FIRST_BYTES))
            first, left = first + more, left - len(more)
            is_answered = expects_answer(head.version, first)
        await broker.write(LENGTH.pack(length) + first)
        await _copy(self._stream, broker, left)
        self._limit.wait_for(ConnectionState.ANSWERING)
        if is_answered:
            size = await _length_from(broker, 1 << 31)
            self._stream.transport.write(LENGTH.pack(size))
            relay = Relay(broker, self._stream, size)
            while relay.left:
                piece = await _piece_from(relay)
                await self._write(piece)
                self._limit.wait_for(ConnectionState.ANSWERING)

    async def _write(self, data: bytes) -> None:
        """Write, and wait while the client does not read (back-pressure)."""
        self._limit.wait_for(ConnectionState.WRITING, FRAME_SECONDS)
        await self._stream.write(data)


def _check_decoded(length: int) -> None:
    if length > LONGEST_DECODED:
        raise FrameRefused("too long to decode", f"{length} bytes")


async def _copy(client: Stream, broker: Stream, size: int) -> None:
    """Copy `size` bytes in pieces."""
    while size:
        piece = await client.read(min(size, PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(piece, size)
        size -= len(piece)
        await broker.write(piece)


async def _length_from(broker: Stream, most: int) -> int:
    """Return the length of the broker's response."""
    try:
        (size,) = LENGTH.unpack(await broker.read_exactly(LENGTH.size))
    except asyncio.IncompleteReadError:
        raise BrokerUnavailable("it has closed the connection") from None
    except struct.error:
        raise BrokerUnavailable("it does not speak Kafka's protocol") from None
    if not LENGTH.size <= size < most:
        raise FrameRefused("answer of the broker", f"{size} bytes")
    return int(size)


async def _all_from(broker: Stream, size: int) -> bytes:
    try:
        return await broker.read_exactly(size)
    except asyncio.IncompleteReadError:
        raise BrokerUnavailable("it has closed the connection") from None


async def _piece_from(relay: Relay) -> bytes:
    try:
        return await relay.read()
    except EOFError:
        raise BrokerUnavailable("it has closed the connection in the middle of an answer") from None
