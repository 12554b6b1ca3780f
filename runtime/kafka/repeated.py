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

BEFORE_NUMBER: Final = HEAD.size - LENGTH.size
"""Bytes of a request before its number: they tell which call it is."""
LONGEST: Final = 512
"""Bytes of what is kept of a request: others are read each time."""


class AskedCalls(NamedTuple):
    """A request, and the calls that it makes."""

    request: Request
    calls: Sequence[PackedCall]


class LastSaid:
    """The last request of a connection, and its last answer, as far as either may come again."""

    def __init__(self) -> None:
        self._start = b""
        """What stood before the number of the last request: its length, and which call it is."""
        self._said = b""
        """What stood behind that number."""
        self._asked: AskedCalls | None = None
        self._told: object = None
        """What the last answer told, where it may be told again."""
        self._size = b""
        """The length of that answer."""
        self._answer = b""
        """What stood behind its number."""

    def read(self, head: Head, frame: bytes, client_host: str) -> AskedCalls:
        """Return what a frame asks; raises `FrameRefused`."""
        start, said = LENGTH.pack(len(frame)) + frame[:BEFORE_NUMBER], frame[HEAD.size :]
        if self._asked is not None and start == self._start and said == self._said:
            return self._asked
        request = read_request(head, frame)
        asked = AskedCalls(request, calls_of(request, client_host))
        self._asked = asked if len(frame) <= LONGEST else None
        self._start, self._said, self._told = start, said[:LONGEST], None
        return asked

    def find(self, data: bytes) -> AskedCalls | None:
        """Return what was asked last, if these bytes are that request once more and no others."""
        is_same = data[LENGTH.size + HEAD.size :] == self._said and data.startswith(self._start)
        return self._asked if is_same else None

    def write(self, head: Head, asked: AskedCalls, replies: Sequence[Any]) -> bytes:
        """Return the answer to that request, with its length."""
        told = _heartbeat_told(replies[0]) if len(replies) == 1 else None
        if told is not None and told == self._told:
            return self._size + LENGTH.pack(head.number) + self._answer
        frame = write_response(head, answer_of(asked.request, replies))
        self._told, self._size = told, frame[: LENGTH.size]
        self._answer = frame[2 * LENGTH.size :]
        return frame


def _heartbeat_told(reply: object) -> object:
    """Return all that the answer to a heartbeat tells that has no news; None for any other."""
    if isinstance(reply, ClassicHeartbeatReply):
        return reply.error
    if isinstance(reply, ConsumerGroupHeartbeatReply) and reply.assignment is None:
        seat = reply.member_id, reply.member_epoch, reply.message
        return reply.error, seat, reply.heartbeat_interval_ms, reply.throttle_time_ms
    return None
