"""The connection to a shard: its packets, and its pending calls when the stream ends."""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from fairlead.actors.messages.classic import ClassicHeartbeat, ClassicHeartbeatReply
from fairlead.actors.messages.commands import DescribeTraffic
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    EndHold,
    GroupCalls,
    GroupReplies,
    NodeCall,
    pack_numbers,
)
from fairlead.actors.transport.ports import HostPort
from fairlead.actors.transport.stream import StreamEndedError
from fairlead.runtime.kafka.client.reply_handler import CallLost, RepeatedCall
from fairlead.runtime.kafka.shard_connection import OpenStream, ShardConnection

HOST = 7
OF_NODE = NodeCall("connect", DescribeTraffic("connect"))
SECONDS = 60.0


class LocalStream:
    """One end of a stream within this process; the connection has one, the test the other."""

    def __init__(self, signal: socket.socket) -> None:
        self._signal = signal
        self.other: LocalStream
        self.received: deque[object] = deque()

    def fileno(self) -> int:
        return self._signal.fileno()

    def send(self, message: object) -> bool:
        self.other.received.append(message)
        self._signal.send(b".")
        return True

    def flush(self) -> bool:
        return True

    def receive(self) -> object | None:
        try:
            data = self._signal.recv(1)
        except ConnectionResetError:
            data = b""
        if not data:
            raise StreamEndedError("the other end has hung up")
        return self.received.popleft()

    def close(self) -> None:
        self._signal.close()

    async def packet(self) -> GroupCalls:
        """Return the next packet with calls."""
        async with asyncio.timeout(SECONDS):
            while True:
                while not self.received:
                    await asyncio.sleep(0.001)
                packet = self.received.popleft()
                assert isinstance(packet, GroupCalls)
                if packet.calls or packet.kept or packet.repeated or packet.dropped:
                    return packet
                self.send(GroupReplies(packet.number))


class LocalLookup:
    """A lookup that finds a new process each time."""

    def __init__(self) -> None:
        self.opened: deque[LocalStream] = deque()
        self.ends: list[LocalStream] = []
        self.is_there = True
        self.owner: HostPort | None = None
        """The listener of the node that has the shard; None: it is this one."""

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


class Handler:
    """Records its callbacks."""

    def __init__(self) -> None:
        self.called: list[object] = []
        self.end_hold: Callable[[], None] | None = None

    def answer(self, reply: Any) -> None:
        self.called.append(reply)

    def repeat_answer(self) -> None:
        self.called.append("again")

    def fail(self, error: Error) -> None:
        self.called.append(error)

    def hold(self, end_hold: Callable[[], None]) -> None:
        self.end_hold = end_hold

    async def next(self) -> object:
        async with asyncio.timeout(SECONDS):
            while not self.called:
                await asyncio.sleep(0.001)
            return self.called.pop(0)


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


def test_calls_before_an_acknowledgement_share_the_next_packet() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        handlers = [Handler() for _ in range(4)]
        shard.start()
        process = await lookup.process()
        first = [
            shard.send(beat(name), handler) for name, handler in zip("ab", handlers, strict=False)
        ]
        packet = await process.packet()
        assert [each.number for each in packet.calls] == first
        later = [
            shard.send(beat(name), handler) for name, handler in zip("cd", handlers, strict=False)
        ]
        await asyncio.sleep(0.02)
        assert not process.received
        process.send(GroupReplies(packet.number))
        assert [each.number for each in (await process.packet()).calls] == later

    play(steps)


def test_a_repeated_call_is_sent_once_on_each_stream() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        repeated, handler = RepeatedCall(beat("m")), Handler()
        shard.start()
        process = await lookup.process()
        shard.repeat(repeated, handler)
        packet = await process.packet()
        (call,) = packet.kept
        reply = ClassicHeartbeatReply(Error.NONE, number=call.number)
        process.send(GroupReplies(packet.number, (reply,)))
        assert await handler.next() == reply
        shard.repeat(repeated, handler)
        packet = await process.packet()
        assert (packet.kept, packet.repeated) == ((), pack_numbers([call.number]))
        process.send(GroupReplies(packet.number, (), packet.repeated))
        assert await handler.next() == "again"
        process.close()
        process = await lookup.process()
        shard.repeat(repeated, handler)
        packet = await process.packet()
        assert [each.member_id for each in packet.kept if isinstance(each, ClassicHeartbeat)] == [
            "m"
        ]
        shard.drop(repeated)
        process.send(GroupReplies(packet.number))
        shard.send(beat("n"), handler)
        assert (await process.packet()).dropped == pack_numbers([packet.kept[0].number])

    play(steps)


def test_the_answer_to_a_call_that_was_given_up_goes_to_nobody() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        gone, waiting = Handler(), Handler()
        shard.start()
        process = await lookup.process()
        number = shard.send(beat("m"), gone)
        packet = await process.packet()
        shard.cancel(number)
        answer = ClassicHeartbeatReply(Error.NONE, number=number)
        process.send(GroupReplies(packet.number, (answer,)))
        shard.send(beat("n"), waiting)
        packet = await process.packet()
        answer = replace(answer, number=packet.calls[0].number)
        process.send(GroupReplies(packet.number, (answer,)))
        assert (await waiting.next(), gone.called) == (answer, [])

    play(steps)


def test_accepted_and_other_calls_fail_with_different_errors_when_a_stream_ends() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        taken, sent, waiting = Handler(), Handler(), Handler()
        sent_of_node, waiting_of_node = Handler(), Handler()
        shard.start()
        process = await lookup.process()
        shard.send(beat("taken"), taken)
        process.send(GroupReplies((await process.packet()).number))
        shard.send(beat("sent"), sent)
        shard.send(OF_NODE, sent_of_node)
        await process.packet()
        shard.send(beat("waiting"), waiting)
        shard.send(OF_NODE, waiting_of_node)
        lookup.is_there = False
        process.close()
        assert await taken.next() is Error.NOT_COORDINATOR
        assert await sent.next() is Error.COORDINATOR_NOT_AVAILABLE
        assert await waiting.next() is Error.COORDINATOR_NOT_AVAILABLE
        assert await sent_of_node.next() is Error.COORDINATOR_NOT_AVAILABLE
        assert await waiting_of_node.next() is Error.COORDINATOR_LOAD_IN_PROGRESS

    play(steps)


def test_without_a_process_clients_are_told_to_retry() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        lookup.is_there = False
        with pytest.raises(CallLost, match=Error.COORDINATOR_NOT_AVAILABLE.value):
            await shard.ask(beat("m"))
        with pytest.raises(CallLost, match=Error.COORDINATOR_LOAD_IN_PROGRESS.value):
            await shard.ask(OF_NODE)

    play(steps)


def test_where_another_node_has_the_shard_clients_are_told_to_look_for_it() -> None:
    async def steps(connection: ShardConnection, lookup: LocalLookup) -> None:
        lookup.is_there, lookup.owner = False, HostPort("h2", 9094)
        with pytest.raises(CallLost) as lost:
            await connection.ask(beat("m"))
        assert lost.value.error is Error.NOT_COORDINATOR

    play(steps)


def test_a_held_call_ends_when_its_client_sends_another_request() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        repeated, handler = RepeatedCall(beat("m")), Handler()
        shard.start()
        process = await lookup.process()
        shard.repeat(repeated, handler)
        process.send(GroupReplies((await process.packet()).number))
        async with asyncio.timeout(SECONDS):
            while handler.end_hold is None:
                await asyncio.sleep(0.001)
        handler.end_hold()
        assert (await process.packet()).calls == (EndHold("g", repeated.number),)

    play(steps)


def test_a_host_without_calls_sends_empty_packets() -> None:
    async def steps(shard: ShardConnection, lookup: LocalLookup) -> None:
        shard.start()
        process = await lookup.process()
        for number in (1, 2):
            async with asyncio.timeout(SECONDS):
                while not process.received:
                    await asyncio.sleep(0.01)
            assert process.received.popleft() == GroupCalls(HOST, number)
            process.send(GroupReplies(number))

    play(steps)
