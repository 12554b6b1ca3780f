"""A test host of a shard process, with one stream."""

import select
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fairlead.actors.messages.groups import (
    FindStream,
    GroupCalls,
    GroupReplies,
    PackedCall,
    StreamAt,
    pack_numbers,
    unpack_numbers,
)
from fairlead.actors.transport.actor import Address
from fairlead.actors.transport.stream import MessageStream, StreamEndedError, dial
from fairlead_tests.actor_system import Running

SECONDS = 60.0


class StreamHost:
    """A host with one stream."""

    def __init__(self, stream: MessageStream, number: int, epoch: int) -> None:
        self.stream, self.number, self.epoch = stream, number, epoch
        self._packets = 0

    def asks(
        self,
        *calls: PackedCall,
        kept: tuple[PackedCall, ...] = (),
        repeated: tuple[int, ...] = (),
        dropped: tuple[int, ...] = (),
    ) -> GroupReplies:
        """Send a packet, and return all messages up to its acknowledgement."""
        self.says(*calls, kept=kept, repeated=repeated, dropped=dropped)
        told = self.hears()
        while told.taken < self._packets:
            more = self.hears()
            told = GroupReplies(more.taken, told.replies + more.replies, told.same + more.same)
        return told

    def says(
        self,
        *calls: PackedCall,
        kept: tuple[PackedCall, ...] = (),
        repeated: tuple[int, ...] = (),
        dropped: tuple[int, ...] = (),
    ) -> None:
        """Send a packet."""
        self._packets += 1
        again = pack_numbers(repeated), pack_numbers(dropped)
        assert self.stream.send(GroupCalls(self.number, self._packets, calls, kept, *again))

    def hears(self) -> GroupReplies:
        """Return the next message; raises `StreamEndedError`."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            select.select([self.stream], [], [], SECONDS)
            told = self.stream.receive()
            if told is not None:
                assert isinstance(told, GroupReplies)
                return told
        raise AssertionError("nothing is told")

    def has_ended(self) -> bool:
        """Return whether the process closes the stream without a message."""
        try:
            self.hears()
        except StreamEndedError:
            return True
        return False


@contextmanager
def stream_host(running: Running, actor: Address, number: int = 7) -> Generator[StreamHost]:
    """Connect a host to an actor."""
    at: Any = running.system.ask(actor, FindStream(), SECONDS)
    assert isinstance(at, StreamAt), at
    stream = dial(at.port, running.address.key, running.address.host, SECONDS)
    try:
        yield StreamHost(stream, number, at.epoch)
    finally:
        stream.close()


def in_order(*calls: PackedCall) -> tuple[PackedCall, ...]:
    """Return calls with the numbers 1, 2, …"""
    return tuple(replace(call, number=at) for at, call in enumerate(calls, 1))


def same_of(told: GroupReplies) -> list[int]:
    """Return the numbers of calls with an unchanged reply."""
    return [*unpack_numbers(told.same)]
