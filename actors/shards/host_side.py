"""An actor's connection to the host (the listener process): packets of calls, and their replies.

A host has one stream. It sends the calls of one tick as one packet, whose available replies are
sent back at once, the others later. When the stream ends, its pending calls are dropped: the host
opens a new one.
"""

import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..door.stream import MessageStream, StreamEndedError, StreamPort
from ..messages.groups import (
    GroupCalls,
    GroupReplies,
    PackedCall,
    PackedReply,
    StreamAt,
    pack_numbers,
    unpack_numbers,
)
from .packets import Undelivered

UNSENT_SECONDS: Final = 0.005
"""The retry interval while the host's stream is full."""


@dataclass(frozen=True, slots=True)
class SendRest:
    """To the actor itself: try to send the rest to the host."""


class _KeptCall:
    """A call that the host repeats by its number, and the last reply."""

    __slots__ = ("call", "told")

    def __init__(self, call: PackedCall) -> None:
        self.call = call
        self.told: PackedReply | None = None


class HostSide:
    """The current host; replies for former hosts are dropped."""

    def __init__(
        self, begun: Callable[[], None], wake_after: Callable[[float, SendRest], None]
    ) -> None:
        """`begun` is called when a new host connects; `wake_after` delivers a `SendRest`."""
        self._begun, self._wake_after = begun, wake_after
        self.number = 0
        """The number of the current host."""
        self._port: StreamPort | None = None
        self._stream: MessageStream | None = None
        """The host's stream, None without a host."""
        self._taken = self._told_taken = 0
        """The last packet handled, and the last one acknowledged to the host."""
        self._kept: dict[int, _KeptCall] = {}
        """By number."""
        self._outbox = Undelivered()
        """The replies to send next."""
        self._same: list[int] = []
        """The numbers of repeated calls whose reply is unchanged, to send next."""
        self._is_late = False
        """Whether the stream is full."""

    def place(self, epoch: int) -> StreamAt:
        """Return the address of this process's stream port, with its epoch."""
        self._port = self._port or StreamPort()
        return StreamAt(self._port.number, epoch)

    @property
    def watched(self) -> Sequence[int]:
        """The descriptors to watch for input."""
        return self._port.watched if self._port else ()

    @property
    def has_news(self) -> bool:
        """Whether the host has said something that is not read yet."""
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
                self._begin(message.host, stream)
            self._taken = message.number
            yield self._calls_of(message)

    def _begin(self, host: int, stream: MessageStream) -> None:
        """Make a host the current one, and drop the calls of the former one."""
        if self._stream is not None and self._port is not None:
            self._port.close(self._stream)
        self.number, self._stream = host, stream
        self._taken = self._told_taken = 0
        self._kept.clear()
        self._same.clear()
        self._outbox.clear()
        self._begun()

    def _calls_of(self, packet: GroupCalls) -> list[PackedCall]:
        kept = self._kept
        for call in packet.kept:
            kept[call.number] = _KeptCall(call)
        repeated = [kept[number].call for number in unpack_numbers(packet.repeated)]
        for number in unpack_numbers(packet.dropped):
            kept.pop(number, None)
        return [*packet.calls, *packet.kept, *repeated]

    def say(self, replies: Iterable[Any]) -> None:
        """Send replies, and acknowledge the packets that were handled."""
        new: list[Any] = []
        for reply in replies:
            kept = self._kept.get(reply.number)
            if kept is None:
                new.append(reply)
            elif kept.told is reply or kept.told == reply:
                self._same.append(reply.number)
            else:
                kept.told = reply
                new.append(reply)
        self._outbox.add(new)
        self._tell()

    def send_rest(self) -> None:
        """Send what the stream did not accept before."""
        self._is_late = False
        self._tell()

    def _tell(self) -> None:
        stream, port = self._stream, self._port
        if stream is None or port is None:
            self._outbox.clear()
            return
        try:
            while self._outbox or self._same or self._told_taken != self._taken:
                if self._is_late or not stream.flush():
                    self._wait()
                    return
                replies, same = tuple(self._outbox.take()), pack_numbers(self._same)
                self._same.clear()
                if not self._outbox:  # else further messages follow
                    self._told_taken = self._taken
                stream.send(GroupReplies(self._told_taken, replies, same))
            if not stream.flush():
                self._wait()
        except StreamEndedError:
            port.close(stream)
            self._stream = None
            self._outbox.clear()

    def _wait(self) -> None:
        """Retry sending after `UNSENT_SECONDS`."""
        if not self._is_late:
            self._is_late = True
            self._wake_after(UNSENT_SECONDS, SendRest())
