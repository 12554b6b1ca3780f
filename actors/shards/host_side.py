"""The host of members, as an actor knows it: its packets of calls, and the answers to them.

A host has one stream: by it the calls of a tick come, and are answered at once, with all that is
known by then; what has to wait follows. When a stream ends, what was asked by it is answered by
nobody any more: the host begins a new one.
"""

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
"""How often a host is looked at that does not take what it is told."""


@dataclass(frozen=True, slots=True)
class SendRest:
    """A host may take more by now."""


class _KeptCall:
    """A call that the host repeats, and what was answered to it last."""

    __slots__ = ("call", "told")

    def __init__(self, call: PackedCall) -> None:
        self.call = call
        self.told: PackedReply | None = None


class HostSide:
    """The latest host that has spoken; what others wait for is said to nobody."""

    def __init__(
        self, begun: Callable[[], None], wake_after: Callable[[float, SendRest], None]
    ) -> None:
        """Take what is to be done once a host begins anew, and how to be woken with `SendRest`."""
        self._begun, self._wake_after = begun, wake_after
        self.number = 0
        """Which host it is."""
        self._port: StreamPort | None = None
        self._stream: MessageStream | None = None
        """That of the host; None: there is none."""
        self._taken = self._told_taken = 0
        """Which of its packets was taken last, and up to which it knows so."""
        self._kept: dict[int, _KeptCall] = {}
        """By number."""
        self._outbox = Undelivered()
        """What the host is to be told next."""
        self._same: list[int] = []
        """And which of its kept calls have the answer of before."""
        self._is_late = False
        """Whether it does not take all that it is told at this moment."""

    def place(self, epoch: int) -> StreamAt:
        """Return where a host reaches this process, whose epoch is given."""
        self._port = self._port or StreamPort()
        return StreamAt(self._port.number, epoch)

    @property
    def watched(self) -> Sequence[int]:
        """The descriptors that may have something to read."""
        return self._port.watched if self._port else ()

    def read(self, readable: Sequence[int]) -> Iterator[list[Any]]:
        """Yield the calls of each packet that has come, to be decided now; there may be none."""
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
        """Take a host for the latest, with nothing that was asked before."""
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
        """Tell the host, which hears of the packets that were taken by now as well."""
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
        """Tell the host what it did not take before."""
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
                if not self._outbox:  # else more of what is known already follows
                    self._told_taken = self._taken
                stream.send(GroupReplies(self._told_taken, replies, same))
            if not stream.flush():
                self._wait()
        except StreamEndedError:
            port.close(stream)
            self._stream = None
            self._outbox.clear()

    def _wait(self) -> None:
        """Go on once the host may take more."""
        if not self._is_late:
            self._is_late = True
            self._wake_after(UNSENT_SECONDS, SendRest())
