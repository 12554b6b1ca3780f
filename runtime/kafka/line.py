"""The line to one process of groups: calls go out as they come in, answers come as they exist.

All of it runs in the event loop, over a stream that a thread finds and opens. What has come in
since the last packet was answered travels together: the busier it gets, the more. What is under way
is bounded by the connections, each of which has one request, and by the budget of bytes that they
share.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

from ...actors.door.stream import MessageStream, StreamEndedError
from ...actors.messages.errors import Error
from ...actors.messages.groups import (
    EndHold,
    GroupCalls,
    GroupReplies,
    PackedCall,
    pack_numbers,
    unpack_numbers,
)
from ...actors.shards.packets import numbered
from .client.reply_taker import Asker, KeptCall, ReplyTaker, Wait, no_wait
from .way_in import OpenStream, WayIn

LOGGER = logging.getLogger(__name__)
ASK_SECONDS: Final = 2.0
"""How long a packet may be owed an answer before its clients are to ask again."""
LOST_SECONDS: Final = 10.0
"""And how long before another stream is looked for."""
PAUSE_SECONDS: Final = 0.1
SILENT_SECONDS: Final = 0.4
"""How long nothing may be said: a process of groups takes a host that is silent for one that has
gone, and its members are not heard then."""
MOST_CALLS: Final = 2_000
"""In one packet, but for those that are only repeated."""


class _Packet(NamedTuple):
    """What is under way."""

    number: int
    calls: Sequence[PackedCall]
    repeated: Sequence[KeptCall]
    sent: float
    """When, by the clock of the event loop."""

    def asked(self) -> Iterator[tuple[int, PackedCall]]:
        """Yield what is asked, each with its number."""
        for call in self.calls:
            yield call.number, call
        for kept in self.repeated:
            yield kept.number, kept.call


class ShardLine:
    """Calls to one shard, each with who waits for its answer; used by the event loop alone."""

    def __init__(self, way: WayIn, host: int) -> None:
        """`host` tells this process from earlier ones."""
        self._way, self._host = way, host
        self._loop = asyncio.get_running_loop()
        self._callers: dict[int, ReplyTaker] = {}
        """Who waits for which answer, by number."""
        self._numbers = 0
        self.epoch = -1
        """That of the shard's process that was found last."""
        self._calls: list[PackedCall] = []
        """What is to be sent next."""
        self._kept: list[KeptCall] = []
        """And what is told the first time of what is repeated."""
        self._repeated: list[KeptCall] = []
        """And what the process knows already."""
        self._dropped: list[int] = []
        """The numbers of what is not repeated any more."""
        self._stream: MessageStream | None = None
        self._life = 1
        """The number of the stream, or of the one that is looked for."""
        self._packets = 0
        self._packet: _Packet | None = None
        """What is under way; what comes meanwhile travels with the next."""
        self._is_about_to_send = False
        self._serving: asyncio.Task[None] | None = None
        self._has_ended = asyncio.Event()
        """Whether the stream has."""

    def begin(self) -> None:
        """Have the host be heard from now on; the first call does so as well."""
        if self._serving is None:
            self._serving = self._loop.create_task(self._serve())

    async def ask(self, call: PackedCall, wait: Wait = no_wait) -> Any:
        """Return the reply to a call; raises `Lost`."""
        caller = Asker(self._loop.create_future(), wait)
        number = self.send(call, caller)
        try:
            return await caller.answered
        finally:
            self.forget(number)

    def send(self, call: PackedCall, caller: ReplyTaker) -> int:
        """Send a call, and have the caller told of its answer; return the number of the call."""
        self._numbers += 1
        self._callers[self._numbers] = caller
        self._calls.append(numbered(call, self._numbers))
        self._have_sent()
        return self._numbers

    def repeat(self, kept: KeptCall, caller: ReplyTaker) -> None:
        """Send a call that may have been sent before; it has been answered then."""
        if kept.life == self._life:
            self._repeated.append(kept)
        else:
            self._numbers += 1
            kept.number, kept.life = self._numbers, self._life
            self._kept.append(kept)
        self._callers[kept.number] = caller
        self._have_sent()

    def drop(self, kept: KeptCall) -> None:
        """Never repeat a call again, nor have anybody wait for the answer to it."""
        self.forget(kept.number)
        if kept.life == self._life:
            self._dropped.append(kept.number)
        kept.life = 0

    def forget(self, number: int) -> None:
        """Have nobody wait for the answer to a call any more."""
        self._callers.pop(number, None)

    def close(self) -> None:
        """Let go of the stream."""
        if self._serving is not None:
            self._serving.cancel()

    # -- what goes out

    def _have_sent(self) -> None:
        """Have all travel together that comes until the packet before is answered.

        If none is under way, that is what comes within this tick of the event loop.
        """
        self.begin()
        if self._packet is None and not self._is_about_to_send:
            self._is_about_to_send = True
            self._loop.call_soon(self._send_packet)

    def _send_packet(self) -> None:
        self._is_about_to_send = False
        has_any = self._calls or self._kept or self._repeated
        if has_any and self._stream is not None and self._packet is None:
            self._send()

    def _send(self) -> None:
        """Send what there is, and be it nothing: so the host is heard."""
        assert self._stream is not None  # noqa: S101  # as its callers know
        calls, self._calls = self._calls[:MOST_CALLS], self._calls[MOST_CALLS:]
        kept = [numbered(each.call, each.number) for each in self._kept]
        repeated, dropped = pack_numbers(each.number for each in self._repeated), self._dropped
        self._packets += 1
        under_way = [*calls, *kept], self._repeated, self._loop.time()
        self._packet = _Packet(self._packets, *under_way)
        self._kept, self._repeated, self._dropped = [], [], []
        told = tuple(calls), tuple(kept), repeated, pack_numbers(dropped)
        try:
            if not self._stream.send(GroupCalls(self._host, self._packets, *told)):
                self._loop.add_writer(self._stream, self._send_rest)
        except StreamEndedError as error:
            self._end(error)

    def _send_rest(self) -> None:
        assert self._stream is not None  # noqa: S101  # else nobody calls it
        try:
            if self._stream.flush():
                self._loop.remove_writer(self._stream)
        except StreamEndedError as error:
            self._end(error)

    # -- what comes in

    def _read(self) -> None:
        assert self._stream is not None  # noqa: S101  # else nobody calls it
        try:
            if isinstance(answer := self._stream.receive(), GroupReplies):
                self._take(answer)
        except StreamEndedError as error:
            self._end(error)

    def _take(self, answer: GroupReplies) -> None:
        """Hand on what came; what comes of that may join the next packet."""
        callers = self._callers
        for number in unpack_numbers(answer.same):
            if (caller := callers.pop(number, None)) is not None:
                caller.answer_again()
        for reply in answer.replies:
            if (caller := callers.pop(reply.number, None)) is not None:
                caller.answer(reply)
        if (packet := self._packet) is not None and answer.taken >= packet.number:
            self._packet = None
            for number, call in packet.asked():
                if (caller := callers.get(number)) is not None:
                    end = EndHold(getattr(call, "group_id", ""), number)
                    caller.let_wait(partial(self._end_hold, end))
            self._is_about_to_send = True
            self._loop.call_later(0, self._send_packet)  # timers come after what is readable

    def _end_hold(self, end: EndHold) -> None:
        if end.held in self._callers:
            self._calls.append(end)
            self._have_sent()

    # -- the stream

    async def _serve(self) -> None:
        """Have a stream, and be heard by it; without end."""
        try:
            while True:
                opened = await self._open()
                if opened is None:
                    self._lose_all()
                else:
                    await self._heed(*opened)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._end(StreamEndedError("it is let go of"))

    async def _open(self) -> OpenStream | None:
        """Have a thread find the process, which may block."""
        found = SimpleQueue[OpenStream | None]()
        has_found = asyncio.Event()

        def find() -> None:
            found.put(self._way.open())
            with suppress(RuntimeError):  # the event loop is over
                self._loop.call_soon_threadsafe(has_found.set)

        threading.Thread(target=find, name="find", daemon=True).start()
        await has_found.wait()
        return found.get()

    async def _heed(self, stream: MessageStream, epoch: int) -> None:
        """Use a stream until it has ended."""
        self._stream, self.epoch = stream, epoch
        self._has_ended.clear()
        self._loop.add_reader(stream, self._read)
        self._send()
        while not self._has_ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(SILENT_SECONDS):
                    await self._has_ended.wait()
            if not self._has_ended.is_set():
                self._be_heard()

    def _be_heard(self) -> None:
        """Say something, unless an answer is owed; whose it is is not waited for for ever."""
        packet, now = self._packet, self._loop.time()
        if packet is None:
            self._send()
        elif now - packet.sent > LOST_SECONDS:
            self._end(StreamEndedError("it does not answer"))
        elif now - packet.sent > ASK_SECONDS:
            self._lose(self._unanswered(), Error.COORDINATOR_NOT_AVAILABLE)

    def _end(self, error: StreamEndedError) -> None:
        """Let go of the stream: nobody answers any more what was asked by it."""
        stream, self._stream = self._stream, None
        if stream is not None:
            LOGGER.debug("a stream to the groups has ended: %s", error)
            self._loop.remove_reader(stream)
            self._loop.remove_writer(stream)
            stream.close()
            self._has_ended.set()
            self._lose_all()

    def _lose_all(self) -> None:
        unanswered = self._unanswered()
        self._packet = None
        self._life += 1
        self._dropped.clear()
        taken = self._callers.keys() - unanswered
        self._lose(unanswered, Error.COORDINATOR_NOT_AVAILABLE)
        self._lose(taken, Error.NOT_COORDINATOR)

    def _unanswered(self) -> set[int]:
        """Return the numbers of what no process is known to have taken; nothing else is sent."""
        waiting = *self._calls, *self._kept, *self._repeated
        self._calls, self._kept, self._repeated = [], [], []
        under_way = (number for number, _ in self._packet.asked()) if self._packet else ()
        return {*(each.number for each in waiting), *under_way}

    def _lose(self, numbers: Iterable[int], error: Error) -> None:
        for number in numbers:
            if (caller := self._callers.pop(number, None)) is not None:
                caller.lose(error)
