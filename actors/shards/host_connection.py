"""An actor's connection to the host (the listener process): packets of calls, and their replies.

A host has one stream. It sends calls in packets. The available replies to a packet are sent back at
once, the others later. When the stream ends, its pending calls are dropped, and the host opens a
new one.
"""

import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..messages.groups import (
    GroupCalls,
    GroupReplies,
    PackedCall,
    PackedReply,
    StreamAt,
    pack_numbers,
    unpack_numbers,
)
from ..transport.stream import MessageStream, StreamEndedError, StreamPort
from .packets import ReplyQueue

UNSENT_SECONDS: Final = 0.005
"""The retry interval while the host's stream is full."""


@dataclass(frozen=True, slots=True)
class SendRest:
    """To the actor itself: try to send the rest to the host."""


class _KeptCall:
    """A call that the host repeats by its number, and the last reply."""

    __slots__ = ("call", "reply")

    def __init__(self, call: PackedCall) -> None:
        self.call = call
        self.reply: PackedReply | None = None


class HostConnection:
    """The connection to the current host; replies for former hosts are dropped."""

    def __init__(
        self, on_new_host: Callable[[], None], wake_after: Callable[[float, SendRest], None]
    ) -> None:
        """`on_new_host` is called when one connects; `wake_after` delivers a `SendRest`."""
        self._on_new_host, self._wake_after = on_new_host, wake_after
        self.number = 0
        """The number of the current host."""
        self._port: StreamPort | None = None
        self._stream: MessageStream | None = None
        """The host's stream, None without a host."""
        self._received = self._acknowledged = 0
        """The last packet handled, and the last one acknowledged to the host."""
        self._kept: dict[int, _KeptCall] = {}
        """The repeated calls, by number."""
        self._outbox = ReplyQueue()
        """The replies to send next."""
        self._same: list[int] = []
        """The numbers of repeated calls whose reply is unchanged, to send next."""
        self._is_blocked = False
        """Whether the stream is full (back-pressure), and a retry is scheduled."""

    def address(self, epoch: int) -> StreamAt:
        """Return the address of this process's stream port, with its epoch."""
        self._port = self._port or StreamPort()
        return StreamAt(self._port.number, epoch)

    @property
    def watched(self) -> Sequence[int]:
        """The descriptors to watch for input."""
        return self._port.watched if self._port else ()

    @property
    def has_input(self) -> bool:
        """Whether there are unread bytes of the host."""
        if self._stream is None or self._stream.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        return bool(poll.poll(0))

    def read(self, readable: Sequence[int]) -> Iterator[list[Any]]:
        """Yield the calls of each packet that has arrived; they have to be handled now."""
        assert self._port is not None  # noqa: S101  # its descriptors are read
        for stream, message in self._port.receive(readable):
            if not isinstance(message, GroupCalls) or message.host < self.number:
                self._port.close(stream)
                continue
            if stream is not self._stream:
                self._switch_to(message.host, stream)
            self._received = message.number
            yield self._calls_of(message)

    def _switch_to(self, host: int, stream: MessageStream) -> None:
        """Make a host the current one, and drop the calls of the former one."""
        if self._stream is not None and self._port is not None:
            self._port.close(self._stream)
        self.number, self._stream = host, stream
        self._received = self._acknowledged = 0
        self._kept.clear()
        self._same.clear()
        self._outbox.clear()
        self._on_new_host()

    def _calls_of(self, packet: GroupCalls) -> list[PackedCall]:
        kept = self._kept
        for call in packet.kept:
            kept[call.number] = _KeptCall(call)
        repeated = [kept[number].call for number in unpack_numbers(packet.repeated)]
        for number in unpack_numbers(packet.dropped):
            kept.pop(number, None)
        return [*packet.calls, *packet.kept, *repeated]

    def send_replies(self, replies: Iterable[Any]) -> None:
        """Send replies, and acknowledge the packets that were handled."""
        new: list[Any] = []
        for reply in replies:
            kept = self._kept.get(reply.number)
            if kept is None:
                new.append(reply)
            elif kept.reply is reply or kept.reply == reply:
                self._same.append(reply.number)
            else:
                kept.reply = reply
                new.append(reply)
        self._outbox.add(new)
        self._send()

    def send_rest(self) -> None:
        """Send the bytes that the stream did not accept before."""
        self._is_blocked = False
        self._send()

    def _send(self) -> None:
        stream, port = self._stream, self._port
        if stream is None or port is None:
            self._outbox.clear()
            return
        try:
            while self._outbox or self._same or self._acknowledged != self._received:
                if self._is_blocked or not stream.flush():
                    self._wait()
                    return
                replies, same = tuple(self._outbox.pop_message()), pack_numbers(self._same)
                self._same.clear()
                if not self._outbox:  # else further messages follow
                    self._acknowledged = self._received
                stream.send(GroupReplies(self._acknowledged, replies, same))
            if not stream.flush():
                self._wait()
        except StreamEndedError:
            port.close(stream)
            self._stream = None
            self._outbox.clear()

    def _wait(self) -> None:
        """Retry sending after `UNSENT_SECONDS`."""
        if not self._is_blocked:
            self._is_blocked = True
            self._wake_after(UNSENT_SECONDS, SendRest())
