"""One client: its requests are answered one at a time and in order, as a broker does it.

Group calls are answered here. All else goes to the broker on a connection of this client's own,
which is made when it is first needed, and comes back in pieces: none is ever held whole, but what
is changed on its way.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from .amend import HostPort, Mapped, amend, asks_for_group, coordinator_of
from .client.relay import Relay
from .client.stream import Stream
from .client.wait_limit import ConnectionState, WaitLimit
from .counts import Counts
from .groups import Groups
from .synchronous import LastSaid, SynchronousHeartbeats
from .upstream import BrokerAway, Upstream
from .wire.bounds import (
    FRAME_SECONDS,
    IDLE_SECONDS,
    LONGEST_AMENDED,
    LONGEST_DECODED,
    LONGEST_FRAME,
    PIECE,
    SHORTEST_FRAME,
    SLOWEST,
    Budget,
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
    AMENDED,
    CONNECT_HEARTBEAT,
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    HEARTBEAT,
    PRODUCE,
    SERVED,
    is_served,
)

LOGGER = logging.getLogger(__name__)
FIRST_BYTES: Final = 4_096
"""So much of a Produce tells whether it is answered: its ids come before that."""
HEARTBEATS: Final = frozenset({HEARTBEAT, CONSUMER_GROUP_HEARTBEAT, CONNECT_HEARTBEAT})


class ListenerPort:
    """What all connections of one port have in common."""

    def __init__(
        self, here: HostPort, brokers: Sequence[HostPort], mapped: Mapped, *, lists: bool
    ) -> None:
        """Take where all groups are; `lists` tells whether this port names them in a list."""
        self.here, self.brokers, self.mapped, self.lists = here, brokers, mapped, lists


class ClientConnection:
    """One client's connection, from its first byte to its last."""

    def __init__(
        self,
        stream: Stream,
        shared: ListenerPort,
        groups: Groups,
        budget: Budget,
        counts: Counts,
    ) -> None:
        self._stream = stream
        self._shared, self._groups, self._budget, self._counts = shared, groups, budget, counts
        self._upstream = Upstream(shared.brokers)
        self.address = str(stream.transport.get_extra_info("peername")[0])
        self._limit, self._last = WaitLimit(), LastSaid()
        self._task: asyncio.Task[None] | None = None
        self._heartbeats = SynchronousHeartbeats(stream, self._last, self._limit, groups, counts)

    async def serve(self) -> None:
        """Answer requests until the client has gone, or has sent what is refused."""
        self._task = asyncio.current_task()
        try:
            while await self._answer_next():
                pass
        except FrameRefused as refused:
            self._counts.refuse(refused, self.address)
        except BrokerAway as away:
            self._counts.complain("the broker cannot be reached", str(away))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass  # one of the two has gone in the middle of something, or we are ending
        finally:
            self._heartbeats.close()
            self._upstream.close()
            self._stream.transport.abort()

    def end(self) -> None:
        """Close it, whatever it does."""
        self._stream.transport.abort()
        if self._task is not None:
            self._task.cancel()

    def end_if_late(self, now: float) -> None:
        """Close it if its client has been waited for for too long."""
        if self._limit.is_over(now):
            state = self._limit.state
            if state is not ConnectionState.IDLE:
                reason = "slow reader" if state is ConnectionState.WRITING else "half-sent"
                self._counts.refuse(FrameRefused(reason, state.value), self.address)
            self.end()

    async def _answer_next(self) -> bool:
        """Answer the next request; False: the client has hung up instead."""
        start = await self._stream.read(LENGTH.size)
        await self._heartbeats.settle()
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
        self._counts.count(head.api)
        if not (is_served(head.api, head.version) and is_known(head.api)):
            raise FrameRefused("unknown call", f"{head.api} in version {head.version}")
        if head.api in SERVED:
            await self._answer_here(head, length, first)
        elif head.api in AMENDED and head.version <= AMENDED[head.api][1]:
            await self._amend(head, length, first)
        else:
            await self._pass_on(head, length, first)
        self._limit.wait_for_request()
        return True

    # -- what is answered here

    async def _answer_here(self, head: Head, length: int, first: bytes) -> None:
        _check_decoded(length)
        await self._budget.take(length)
        held = BudgetShare(self._budget, length)
        try:
            frame = first + await self._stream.read_exactly(length - len(first))
            asked = self._last.read(head, frame, f"/{self.address}")
            del frame
            # The workers' group leaves some requests unanswered: then the client gives up first.
            seconds = IDLE_SECONDS if head.api == CONNECT_HEARTBEAT else 0.0
            self._limit.wait_for(ConnectionState.ANSWERING, seconds)
            wait = partial(self._let_wait, held, head.api)
            replies = await self._groups.ask(asked.calls, wait, lists=self._shared.lists)
        finally:
            held.give_back()
        await self._write(write_response(head, answer_of(asked.request, replies)))

    def _let_wait(self, held: BudgetShare, api: int, end_hold: Callable[[], None]) -> None:
        """Wait with an answer: for news with a heartbeat's, until its client sends more or goes."""
        held.give_back()
        if api in HEARTBEATS:
            self._stream.tell_next(end_hold)

    # -- what the broker answers, and is changed on its way

    async def _amend(self, head: Head, length: int, first: bytes) -> None:
        """Have the broker answer; what is asked is its matter, librdkafka's idle bytes as well."""
        _check_decoded(length)
        frame = first + await self._stream.read_exactly(length - len(first))
        if head.api == FIND_COORDINATOR:
            request = read_request(head, frame)
            if asks_for_group(request):
                await self._write(write_response(head, coordinator_of(request, self._shared.here)))
                return
        broker = await self._upstream.open()
        self._limit.wait_for(ConnectionState.ANSWERING)
        await broker.write(LENGTH.pack(length) + frame)
        size = await _length_from(broker, LONGEST_AMENDED)
        message = read_response(head, await _all_from(broker, size))
        told = amend(head.api, message, self._shared.here, self._shared.mapped)
        await self._write(write_response(head, told))

    # -- what is passed on

    async def _pass_on(self, head: Head, length: int, first: bytes) -> None:
        broker = await self._upstream.open()
        left, is_answered = length - len(first), True
        if head.api == PRODUCE:
            more = await self._stream.read_exactly(min(left, FIRST_BYTES))
            first, left = first + more, left - len(more)
            is_answered = expects_answer(head.version, first)
        await broker.write(LENGTH.pack(length) + first)
        await _pump(self._stream, broker, left)
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
        """Write, and wait as long as the client has not taken what was written before."""
        self._limit.wait_for(ConnectionState.WRITING, FRAME_SECONDS)
        await self._stream.write(data)


def _check_decoded(length: int) -> None:
    if length > LONGEST_DECODED:
        raise FrameRefused("too long to decode", f"{length} bytes")


async def _pump(client: Stream, broker: Stream, size: int) -> None:
    """Pass on so many bytes in pieces."""
    while size:
        piece = await client.read(min(size, PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(piece, size)
        size -= len(piece)
        await broker.write(piece)


async def _length_from(broker: Stream, most: int) -> int:
    """Return the length of the broker's answer."""
    try:
        (size,) = LENGTH.unpack(await broker.read_exactly(LENGTH.size))
    except asyncio.IncompleteReadError:
        raise BrokerAway("it has closed the connection") from None
    except struct.error:
        raise BrokerAway("it does not speak Kafka's protocol") from None
    if not LENGTH.size <= size < most:
        raise FrameRefused("answer of the broker", f"{size} bytes")
    return int(size)


async def _all_from(broker: Stream, size: int) -> bytes:
    try:
        return await broker.read_exactly(size)
    except asyncio.IncompleteReadError:
        raise BrokerAway("it has closed the connection") from None


async def _piece_from(relay: Relay) -> bytes:
    try:
        return await relay.read()
    except EOFError:
        raise BrokerAway("it has closed the connection in the middle of an answer") from None
