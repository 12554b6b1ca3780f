"""What a connection repeats: the same heartbeat is not read anew, nor its answer written anew.

Two requests that differ in nothing but their number ask the same, and two answers that tell the
same have the same bytes behind theirs. Members say so for hours: most that a listener hears is so.
"""
# pyright: basic

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ...actors.messages.classic import ClassicHeartbeatReply
from ...actors.messages.consumers import ConsumerGroupHeartbeatReply
from ...actors.messages.groups import PackedCall
from .wire.dispatch import answer_of, calls_of
from .wire.frames import HEAD, LENGTH, Head, Request, read_request, write_response

NUMBERS: Final = LENGTH.size + LENGTH.size
"""Where an answer goes on behind its length and its number."""
LONGEST: Final = 512
"""Bytes of what is kept of a request: others are read each time."""


class AskedCalls(NamedTuple):
    """A request, and the calls that it makes."""

    request: Request
    calls: Sequence[PackedCall]


class LastSaid:
    """The last request of a connection, and its last answer, as far as either may come again."""

    def __init__(self) -> None:
        self._kind = (-1, -1)
        self._said = b""
        """What stood behind the number of the last request."""
        self._asked: AskedCalls | None = None
        self._told: object = None
        """What the last answer told, where it may be told again."""
        self._answer = b""
        """What stood behind its number."""

    def read(self, head: Head, frame: bytes, client_host: str) -> AskedCalls:
        """Return what a frame asks; raises `FrameRefused`."""
        is_same = head[:2] == self._kind and frame.endswith(self._said)
        if self._asked is not None and is_same and len(frame) == HEAD.size + len(self._said):
            return self._asked
        request = read_request(head, frame)
        asked = AskedCalls(request, calls_of(request, client_host))
        self._asked = asked if len(frame) <= LONGEST else None
        self._kind, self._said, self._told = head[:2], frame[HEAD.size : LONGEST], None
        return asked

    def write(self, head: Head, asked: AskedCalls, replies: Sequence[Any]) -> bytes:
        """Return the answer to that request, with its length."""
        told = _heartbeat_told(replies[0]) if len(replies) == 1 else None
        if told is None or told != self._told:
            frame = write_response(head, answer_of(asked.request, replies))
            self._told, self._answer = told, frame[NUMBERS:]
            return frame
        size = LENGTH.size + len(self._answer)
        return LENGTH.pack(size) + LENGTH.pack(head.number) + self._answer


def _heartbeat_told(reply: object) -> object:
    """Return all that the answer to a heartbeat tells that has no news; None for any other."""
    if isinstance(reply, ClassicHeartbeatReply):
        return reply.error
    if isinstance(reply, ConsumerGroupHeartbeatReply) and reply.assignment is None:
        seat = reply.member_id, reply.member_epoch, reply.message
        return reply.error, seat, reply.heartbeat_interval_ms, reply.throttle_time_ms
    return None
