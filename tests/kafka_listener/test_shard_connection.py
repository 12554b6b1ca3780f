"""The connection to a shard: its packets, and its pending calls when the stream ends."""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead.actors.door.stream import StreamEndedError
from fairlead.actors.messages.classic import ClassicHeartbeat, ClassicHeartbeatReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    EndHold,
    GroupCalls,
    GroupReplies,
    pack_numbers,
)
from fairlead.runtime.kafka.client.reply_handler import CallLost, RepeatedCall
from fairlead.runtime.kafka.shard_connection import ShardConnection
from fairlead.runtime.kafka.shard_lookup import OpenStream

HOST = 7
SECONDS = 5.0


class LocalStream:
    """One end of a stream within this process; the connection has one, the test the other."""

    def __init__(self, signal: socket.socket) -> None:
        self._signal = signal
        self.other: LocalStream
        self.came: deque[object] = deque()

    def fileno(self) -> int:
        return self._signal.fileno()

    def send(self, message: object) -> bool:
        self.other.came.append(message)
        self._signal.send(b".")
        return True

    def flush(self) -> bool:
        return True

    def receive(self) -> object | None:
        try:
            has_come = self._signal.recv(1)
        except ConnectionResetError:
            has_come = b""
        if not has_come:
            raise StreamEndedError("the other end has hung up")
        return self.came.popleft()

    def close(self) -> None:
        self._signal.close()

    async def packet(self) -> GroupCalls:
        """Return the next packet that says anything."""
        async with asyncio.timeout(SECONDS):
            while True:
                while not self.came:
                    await asyncio.sleep(0.001)
                said = self.came.popleft()
                assert isinstance(said, GroupCalls)
                if said.calls or said.kept or said.repeated or said.dropped:
                    return said
                self.send(GroupReplies(said.number))


class LocalLookup:
    """Finds a process as often as it is asked."""

    def __init__(self) -> None:
        self.opened: deque[LocalStream] = deque()
        self.ends: list[LocalStream] = []
        self.is_there = True

    def open(self) -> OpenStream | None:
        if not self.is_there:
            return None
        ends = [LocalStream(each) for each in socket.socketpair()]
        for end, other in zip(ends, reversed(ends), strict=True):
            end.other = other
        self.opened.append(ends[1])
        self.ends += ends
        told: Any = ends[0]
        return OpenStream(told, 1)

    async def process(self) -> LocalStream:
        """Return the other end of the next stream."""
        async with asyncio.timeout(SECONDS):
            while not self.opened:
                await asyncio.sleep(0.001)
            return self.opened.popleft()


class Taker:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.end_hold: Callable[[], None] | None = None

    def answer(self, reply: Any) -> None:
        self.told.append(reply)

    def repeat_answer(self) -> None:
        self.told.append("again")

    def fail(self, error: Error) -> None:
        self.told.append(error)

    def hold(self, end_hold: Callable[[], None]) -> None:
        self.end_hold = end_hold

    async def next(self) -> object:
        async with asyncio.timeout(SECONDS):
            while not self.told:
                await asyncio.sleep(0.001)
            return self.told.pop(0)


def beat(member_id: str) -> ClassicHeartbeat:
    return ClassicHeartbeat("g", member_id, 1)


def play(steps: Callable[[ShardConnection, LocalLookup], Awaitable[None]]) -> None:
    async def run() -> None:
        lookup: Any = LocalLookup()
        shard = ShardConnection(lookup, HOST)
        try:
            await steps(shard, lookup)
        finally:
            shard.close()
            await asyncio.sleep(0)
            for each in lookup.ends:
                each.close()

    asyncio.run(run())


def test_what_comes_while_a_packet_is_under_way_travels_with_the_next() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        takers = [Taker() for _ in range(4)]
        shard.start()
        process = await lookup.process()
        first = [shard.send(beat(name), taker) for name, taker in zip("ab", takers, strict=False)]
        packet = await process.packet()
        assert [each.number for each in packet.calls] == first
        later = [shard.send(beat(name), taker) for name, taker in zip("cd", takers, strict=False)]
        await asyncio.sleep(0.02)
        assert not process.came
        process.send(GroupReplies(packet.number))
        assert [each.number for each in (await process.packet()).calls] == later

    play(steps)


def test_a_kept_call_is_told_once_by_each_stream() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        kept, taker = RepeatedCall(beat("m")), Taker()
        shard.start()
        process = await lookup.process()
        shard.repeat(kept, taker)
        packet = await process.packet()
        (call,) = packet.kept
        reply = ClassicHeartbeatReply(Error.NONE, number=call.number)
        process.send(GroupReplies(packet.number, (reply,)))
        assert await taker.next() == reply
        shard.repeat(kept, taker)
        packet = await process.packet()
        assert (packet.kept, packet.repeated) == ((), pack_numbers([call.number]))
        process.send(GroupReplies(packet.number, (), packet.repeated))
        assert await taker.next() == "again"
        process.close()
        process = await lookup.process()
        shard.repeat(kept, taker)
        packet = await process.packet()
        assert [each.member_id for each in packet.kept if isinstance(each, ClassicHeartbeat)] == [
            "m"
        ]
        shard.drop(kept)
        process.send(GroupReplies(packet.number))
        shard.send(beat("n"), taker)
        assert (await process.packet()).dropped == pack_numbers([packet.kept[0].number])

    play(steps)


def test_what_was_taken_and_what_may_not_be_are_lost_each_in_its_way_when_a_stream_ends() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        taken, sent, waiting = Taker(), Taker(), Taker()
        shard.start()
        process = await lookup.process()
        shard.send(beat("taken"), taken)
        process.send(GroupReplies((await process.packet()).number))
        shard.send(beat("sent"), sent)
        await process.packet()
        shard.send(beat("waiting"), waiting)
        lookup.is_there = False
        process.close()
        assert await taken.next() is Error.NOT_COORDINATOR
        assert await sent.next() is Error.COORDINATOR_NOT_AVAILABLE
        assert await waiting.next() is Error.COORDINATOR_NOT_AVAILABLE

    play(steps)


def test_while_no_process_is_found_clients_are_to_ask_again() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        lookup.is_there = False
        with pytest.raises(CallLost, match=Error.COORDINATOR_NOT_AVAILABLE.value):
            await shard.ask(beat("m"))

    play(steps)


def test_a_call_that_is_taken_and_not_answered_waits_until_its_client_asks_more() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        kept, taker = RepeatedCall(beat("m")), Taker()
        shard.start()
        process = await lookup.process()
        shard.repeat(kept, taker)
        process.send(GroupReplies((await process.packet()).number))
        async with asyncio.timeout(SECONDS):
            while taker.end_hold is None:
                await asyncio.sleep(0.001)
        taker.end_hold()
        assert (await process.packet()).calls == (EndHold("g", kept.number),)

    play(steps)


def test_a_host_is_heard_while_nobody_asks_anything() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        shard.start()
        process = await lookup.process()
        for number in (1, 2):
            async with asyncio.timeout(SECONDS):
                while not process.came:
                    await asyncio.sleep(0.01)
            assert process.came.popleft() == GroupCalls(HOST, number)
            process.send(GroupReplies(number))

    play(steps)
