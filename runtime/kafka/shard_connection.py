"""The connection of the listener to the process of one shard: it sends calls, and receives replies.

It runs in the event loop, on a stream that a thread opens. `ShardLookup` asks the supervisor, with
messages of actors, where the process of the shard is: a restart replaces it by another.

Calls are sent in packets, one at a time: calls that arrive before a packet is acknowledged are sent
with the next one. So packets grow with the load. The number of pending calls is limited by the
number of client connections, each of which has one request, and their size by the memory budget of
all requests.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

from ...actors.messages.errors import Error
from ...actors.messages.groups import (
    EndHold,
    FindStream,
    GroupCalls,
    GroupReplies,
    NodeCall,
    PackedCall,
    StreamAt,
    pack_numbers,
    unpack_numbers,
)
from ...actors.shards.packets import with_number
from ...actors.transport.actor import Address
from ...actors.transport.ports import HostPort, SystemAddress
from ...actors.transport.stream import MessageStream, StreamEndedError, dial
from ...actors.transport.system import UnreachableError, connect
from ..cluster.messages import SUPERVISOR, ShardsAt, Whereabouts, WhereAreShards, WhereIs
from ..cluster.run_folder import KeyRefusedError, NoNodeError, RunFolder
from .client.reply_handler import CallInFlight, OnHold, RepeatedCall, ReplyHandler, ignore_hold

LOGGER = logging.getLogger(__name__)
LOOKUP_SECONDS: Final = 2.0
"""The timeout of each question, and of the connection."""
REPLY_SECONDS: Final = 2.0
"""The timeout of a packet, after which its clients are told to retry."""
HUNG_SECONDS: Final = 10.0
"""The timeout after which the process counts as hung, and a new stream is opened."""
PAUSE_SECONDS: Final = 0.1
"""The pause before a new stream is opened."""
ELSEWHERE_SECONDS: Final = 0.5
"""The same while another node has the shard."""
NODES_SECONDS: Final = 2.0
"""The interval at which the nodes are looked up while this one has the shard."""
KEEP_ALIVE_SECONDS: Final = 0.4
"""The longest time without a packet. A shard counts a silent host as disconnected, and suspends the
sessions of all members."""
MOST_CALLS: Final = 2_000
"""The maximum number of calls in a packet, without repeated ones."""


Ask = Callable[[Address, object, float], object]
"""Sends a message to an actor, and returns its answer within some seconds."""
_UNREACHABLE: Final = (
    KeyRefusedError,
    NoNodeError,
    UnreachableError,
    StreamEndedError,
    OSError,
    ValueError,
)


class OpenStream(NamedTuple):
    """A stream to the process of a shard, and the epoch of that process."""

    stream: MessageStream
    epoch: int


class ShardLookup:
    """Finds the current actor of one shard, which a restart replaces by another."""

    def __init__(self, data_dir: Path, shard: int | str) -> None:
        """`shard` is the number of a shard, or the id of the workers' group."""
        self._folder, self._shard = RunFolder(data_dir), shard
        self.owner: HostPort | None = None
        """The listener of the node that has the shards; None: this one, as of the last lookup."""
        self.others: Mapping[str, HostPort] = {}
        """The listeners of the other nodes that live, by name; this one's may be among them."""

    def open(self) -> OpenStream | None:
        """Return a new stream; None: the shard is not running, or does not answer. It may block."""
        try:
            address = self._folder.system_address()
            with _supervisor_at(address) as (ask, supervisor):
                actor = self._find(ask, supervisor)
                at = ask(actor, FindStream(), LOOKUP_SECONDS) if actor is not None else None
            if isinstance(at, StreamAt):
                stream = dial(at.port, address.key, address.host, LOOKUP_SECONDS)
                return OpenStream(stream, at.epoch)
        except _UNREACHABLE as error:
            LOGGER.debug("shard %s cannot be reached: %s", self._shard, error)
        return None

    def look(self) -> None:
        """Look up which nodes there are, and which one has the shards. It may block."""
        with suppress(*_UNREACHABLE), _supervisor_at(self._folder.system_address()) as found:
            self._find(*found)

    def _find(self, ask: Ask, supervisor: Address) -> Address | None:
        shards = ask(supervisor, WhereAreShards(), LOOKUP_SECONDS)
        if not isinstance(shards, ShardsAt):
            return None
        self.owner = _parse_place(shards.at.address)
        others = {name: _parse_place(address) for name, address in shards.at.others}
        self.others = {name: place for name, place in others.items() if place}
        if isinstance(self._shard, str):
            where = ask(supervisor, WhereIs(self._shard), LOOKUP_SECONDS)
            return where.address if isinstance(where, Whereabouts) else None
        return shards.addresses[self._shard] if self._shard < len(shards.addresses) else None


@contextmanager
def _supervisor_at(address: SystemAddress) -> Generator[tuple[Ask, Address]]:
    """Connect to the supervisor of a node; raises what is in `_UNREACHABLE`."""
    system = connect(address)
    try:
        if (supervisor := system.named(SUPERVISOR)) is None:
            raise UnreachableError("the node has no supervisor yet")
        with system.private() as to:
            yield to.ask, supervisor
    finally:
        system.close()


def _parse_place(address: str) -> HostPort | None:
    host, _, port = address.rpartition(":")
    return HostPort(host, int(port)) if host and port.isdigit() else None


class _Packet(NamedTuple):
    """The packet that is not acknowledged yet."""

    number: int
    calls: Sequence[PackedCall]
    repeated: Sequence[RepeatedCall]
    sent: float
    """The time by the clock of the event loop."""

    def numbered_calls(self) -> Iterator[tuple[int, PackedCall]]:
        """Yield all calls, each with its number."""
        for call in self.calls:
            yield call.number, call
        for each in self.repeated:
            yield each.number, each.call


class ShardConnection:
    """The connection to one shard, with its pending calls; only the event loop uses it."""

    def __init__(self, lookup: ShardLookup, host: int) -> None:
        """`host` distinguishes this process from earlier ones."""
        self._lookup, self._host = lookup, host
        self._loop = asyncio.get_running_loop()
        self._handlers: dict[int, ReplyHandler] = {}
        """The handlers of pending calls, by number."""
        self._last_number = 0
        self.epoch = -1
        """The epoch of the shard's process, as of the last lookup."""
        self._calls: list[PackedCall] = []
        """The calls to send next."""
        self._registering: list[RepeatedCall] = []
        """The repeated calls to send next, which the process does not know yet."""
        self._repeated: list[RepeatedCall] = []
        """The repeated calls to send next by their numbers, as the process knows them."""
        self._dropped: list[int] = []
        """The numbers of calls that are not repeated any more, to send next."""
        self._stream: MessageStream | None = None
        self._stream_number = 1
        """The number of the current stream, or of the one that is being opened."""
        self._last_packet = 0
        self._packet: _Packet | None = None
        """The packet that is not acknowledged yet; None: the next one may be sent."""
        self._is_scheduled = False
        """Whether a packet will be sent at the end of this tick."""
        self._running: asyncio.Task[None] | None = None
        self._stream_ended = asyncio.Event()

    @property
    def owner(self) -> HostPort | None:
        """The listener of the node that has this shard; None: this one, or it is not known."""
        return self._lookup.owner

    @property
    def others(self) -> Mapping[str, HostPort]:
        """The listeners of the other nodes that live, by name; this one's may be among them."""
        return self._lookup.others

    async def watch_nodes(self) -> None:
        """Look up which nodes there are, also while the stream is open; ends when cancelled."""
        while True:
            await asyncio.sleep(NODES_SECONDS)
            if self._stream is not None:  # otherwise the stream's own lookups tell
                await asyncio.to_thread(self._lookup.look)

    def start(self) -> None:
        """Connect, and send packets from now on; the first call does so as well."""
        if self._running is None:
            self._running = self._loop.create_task(self._run())

    async def ask(self, call: PackedCall, on_hold: OnHold = ignore_hold) -> Any:
        """Send a call, and return its reply; raises `CallLost`."""
        handler = CallInFlight(self._loop.create_future(), on_hold)
        number = self.send(call, handler)
        try:
            return await handler.answered
        finally:
            self.cancel(number)

    def send(self, call: PackedCall, handler: ReplyHandler) -> int:
        """Send a call whose reply goes to `handler`; return the number of the call."""
        self._last_number += 1
        self._handlers[self._last_number] = handler
        self._calls.append(with_number(call, self._last_number))
        self._schedule_send()
        return self._last_number

    def repeat(self, repeated: RepeatedCall, handler: ReplyHandler) -> None:
        """Send a repeated call; if it was sent before, that has to be answered."""
        if repeated.stream_number == self._stream_number:
            self._repeated.append(repeated)
        else:
            self._last_number += 1
            repeated.number, repeated.stream_number = self._last_number, self._stream_number
            self._registering.append(repeated)
        self._handlers[repeated.number] = handler
        self._schedule_send()

    def drop(self, repeated: RepeatedCall) -> None:
        """Cancel a repeated call, and let the process forget it."""
        self.cancel(repeated.number)
        if repeated.stream_number == self._stream_number:
            self._dropped.append(repeated.number)
        repeated.stream_number = 0

    def cancel(self, number: int) -> None:
        """Discard the reply to a call."""
        self._handlers.pop(number, None)

    def close(self) -> None:
        """Close the stream; pending calls fail."""
        if self._running is not None:
            self._running.cancel()

    # -- sending

    def _schedule_send(self) -> None:
        """Send the next packet once the previous one is acknowledged.

        If there is no such packet, the calls of the current event loop iteration share one.
        """
        self.start()
        if self._packet is None and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._send_packet)

    def _send_packet(self) -> None:
        self._is_scheduled = False
        has_any = self._calls or self._registering or self._repeated
        if has_any and self._stream is not None and self._packet is None:
            self._send()

    def _send(self) -> None:
        """Send a packet; an empty one shows that the host is alive."""
        assert self._stream is not None  # noqa: S101  # as the callers have checked
        calls, self._calls = self._calls[:MOST_CALLS], self._calls[MOST_CALLS:]
        registered = [with_number(each.call, each.number) for each in self._registering]
        repeated, dropped = pack_numbers(each.number for each in self._repeated), self._dropped
        self._last_packet += 1
        sent = [*calls, *registered], self._repeated, self._loop.time()
        self._packet = _Packet(self._last_packet, *sent)
        self._registering, self._repeated, self._dropped = [], [], []
        fields = tuple(calls), tuple(registered), repeated, pack_numbers(dropped)
        try:
            if not self._stream.send(GroupCalls(self._host, self._last_packet, *fields)):
                self._loop.add_writer(self._stream, self._flush)
        except StreamEndedError as error:
            self._close_stream(error)

    def _flush(self) -> None:
        assert self._stream is not None  # noqa: S101  # otherwise nothing calls it
        try:
            if self._stream.flush():
                self._loop.remove_writer(self._stream)
        except StreamEndedError as error:
            self._close_stream(error)

    # -- receiving

    def _read(self) -> None:
        assert self._stream is not None  # noqa: S101  # otherwise nothing calls it
        try:
            if isinstance(answer := self._stream.receive(), GroupReplies):
                self._handle_replies(answer)
        except StreamEndedError as error:
            self._close_stream(error)

    def _handle_replies(self, answer: GroupReplies) -> None:
        """Call the handlers; calls that result from the replies may join the next packet."""
        handlers = self._handlers
        for number in unpack_numbers(answer.same):
            if (handler := handlers.pop(number, None)) is not None:
                handler.repeat_answer()
        for reply in answer.replies:
            if (handler := handlers.pop(reply.number, None)) is not None:
                handler.answer(reply)
        if (packet := self._packet) is not None and answer.taken >= packet.number:
            self._packet = None
            for number, call in packet.numbered_calls():
                if (handler := handlers.get(number)) is not None:
                    end = EndHold(getattr(call, "group_id", ""), number)
                    handler.hold(partial(self._end_hold, end))
            self._is_scheduled = True
            self._loop.call_later(0, self._send_packet)  # timers run after readable sockets

    def _end_hold(self, end: EndHold) -> None:
        if end.held in self._handlers:
            self._calls.append(end)
            self._schedule_send()

    # -- the stream

    async def _run(self) -> None:
        """Keep a stream open; runs until it is cancelled."""
        try:
            while True:
                opened = await self._open()
                if opened is None:
                    self._fail_all()
                else:
                    await self._use_stream(*opened)
                await asyncio.sleep(ELSEWHERE_SECONDS if self.owner else PAUSE_SECONDS)
        finally:
            self._close_stream(StreamEndedError("it is closed"))

    async def _open(self) -> OpenStream | None:
        """Open a stream on a thread, since the lookup may block."""
        opened = SimpleQueue[OpenStream | None]()
        is_done = asyncio.Event()

        def look_up() -> None:
            opened.put(self._lookup.open())
            with suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(is_done.set)

        threading.Thread(target=look_up, name="shard lookup", daemon=True).start()
        await is_done.wait()
        return opened.get()

    async def _use_stream(self, stream: MessageStream, epoch: int) -> None:
        """Use a stream until it ends."""
        self._stream, self.epoch = stream, epoch
        self._stream_ended.clear()
        self._loop.add_reader(stream, self._read)
        self._send()
        while not self._stream_ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    await self._stream_ended.wait()
            if not self._stream_ended.is_set():
                self._keep_alive()

    def _keep_alive(self) -> None:
        """Send an empty packet; if one is not acknowledged, apply its timeouts."""
        packet, now = self._packet, self._loop.time()
        if packet is None:
            self._send()
        elif now - packet.sent > HUNG_SECONDS:
            self._close_stream(StreamEndedError("it does not answer"))
        elif now - packet.sent > REPLY_SECONDS:
            self._fail(self._take_unaccepted(), Error.COORDINATOR_NOT_AVAILABLE)

    def _close_stream(self, error: StreamEndedError) -> None:
        """Close the stream, and let all of its calls fail."""
        stream, self._stream = self._stream, None
        if stream is not None:
            LOGGER.debug("a stream to the groups has ended: %s", error)
            self._loop.remove_reader(stream)
            self._loop.remove_writer(stream)
            stream.close()
            self._stream_ended.set()
            self._fail_all()

    def _fail_all(self) -> None:
        unsent = [each.number for each in self._calls if isinstance(each, NodeCall)]
        self._fail(unsent, Error.COORDINATOR_LOAD_IN_PROGRESS)  # nobody has them
        unaccepted = self._take_unaccepted()
        self._packet = None
        self._stream_number += 1
        self._dropped.clear()
        accepted = self._handlers.keys() - unaccepted
        is_elsewhere = self.owner is not None
        refusal = Error.NOT_COORDINATOR if is_elsewhere else Error.COORDINATOR_NOT_AVAILABLE
        self._fail(unaccepted, refusal)
        self._fail(accepted, Error.NOT_COORDINATOR)

    def _take_unaccepted(self) -> set[int]:
        """Return the numbers of calls without an acknowledgement, and clear the send queues."""
        queued = *self._calls, *self._registering, *self._repeated
        self._calls, self._registering, self._repeated = [], [], []
        sent = (number for number, _ in self._packet.numbered_calls()) if self._packet else ()
        return {*(each.number for each in queued), *sent}

    def _fail(self, numbers: Iterable[int], error: Error) -> None:
        for number in numbers:
            if (handler := self._handlers.pop(number, None)) is not None:
                handler.fail(error)
