"""Splits the replies to a host into messages of limited size.

One reply may have the offsets of thousands of partitions, and many replies may be due at once.
Replies that do not fit in a message are sent with the next.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Final

from ...events.model import ClassicMember
from ..messages.classic import JoinGroupReply, SyncGroupReply
from ..messages.computing import PrepareReply
from ..messages.errors import Error
from ..messages.groups import (
    ConnectReply,
    DescribeConnectGroupReply,
    DescribeConsumerGroupReply,
    DescribedConsumer,
    DescribedWorker,
    DescribeGroupReply,
    ListGroupsReply,
    NodeReply,
    PackedCall,
    PackedReply,
)
from ..messages.members import HeartbeatReply
from ..messages.offsets import OffsetFetchReply, TopicOffset
from .refusals import DEAD

MOST_BYTES: Final = 48 << 20
"""The maximum size of a message by `size_of`, well below the limit of the transport."""
SMALL: Final = 256
"""The assumed size of a reply without its lists, and of an item in a list, in bytes."""
PARTITION: Final = 40
"""The assumed size of a partition, in bytes."""


def with_number(call: PackedCall, number: int) -> PackedCall:
    """Return a call with its number; faster than `replace`, as it runs for each call."""
    kind: Any = type(call)
    values = [getattr(call, name) for name in _names_but_number(kind)]
    numbered: PackedCall = kind(*values, number=number)
    return numbered


@cache
def _names_but_number(kind: type[PackedCall]) -> Sequence[str]:
    return [each.name for each in fields(kind) if each.name != "number"]


class ReplyQueue:
    """The replies to the host that are not sent yet."""

    def __init__(self) -> None:
        self._replies: list[tuple[int, PackedReply]] = []
        """Each with its size in bytes, as `size_of` estimates it."""

    def __bool__(self) -> bool:
        """Return whether there are any replies."""
        return bool(self._replies)

    def add(self, replies: Iterable[Any]) -> None:
        """Append replies; one that is too large for a message becomes an error."""
        self._replies += map(_with_size, replies)

    def clear(self) -> None:
        """Drop all replies: the host is gone."""
        self._replies.clear()

    def pop_message(self) -> Sequence[PackedReply]:
        """Remove the replies of the next message from the queue, and return them."""
        count = size = 0
        for each, _ in self._replies:
            size += each
            if size > MOST_BYTES and count:
                break
            count += 1
        taken, self._replies = self._replies[:count], self._replies[count:]
        return [reply for _, reply in taken]


def size_of(reply: object) -> int:
    """Estimate the size of a reply in bytes, on Kafka's wire or between processes."""
    if isinstance(reply, OffsetFetchReply):
        return SMALL + sum(map(_size_of_offset, reply.offsets))
    if isinstance(reply, DescribeGroupReply):
        return SMALL + sum(map(_size_of_member, reply.members))
    if isinstance(reply, DescribeConsumerGroupReply):
        topics = sum(SMALL + len(name) for name in reply.topics)
        return SMALL + topics + sum(map(_size_of_consumer, reply.members))
    if isinstance(reply, DescribeConnectGroupReply):
        return SMALL + sum(map(_size_of_worker, reply.members))
    if isinstance(reply, ListGroupsReply):
        return SMALL * (1 + len(reply.groups))
    return SMALL + _size_of_member_reply(reply)


def _size_of_member_reply(reply: object) -> int:
    if isinstance(reply, NodeReply):
        return _size_of_member_reply(reply.reply)
    if isinstance(reply, JoinGroupReply):
        return sum(SMALL + len(each.metadata) for each in reply.members)
    if isinstance(reply, SyncGroupReply):
        return len(reply.assignment)
    return _size_of_connect(reply.reply if isinstance(reply, ConnectReply) else reply)


def _size_of_connect(reply: object) -> int:
    if isinstance(reply, HeartbeatReply):
        return PARTITION * len(reply.assignment or ())
    if not isinstance(reply, PrepareReply) or reply.snapshot is None:
        return 0
    snapshot = reply.snapshot
    members = (
        SMALL + len(each.metadata) + PARTITION * (len(each.owned) + len(each.target))
        for each in snapshot.members.values()
    )
    return PARTITION * len(snapshot.configured) + sum(members)


def _size_of_offset(offset: TopicOffset) -> int:
    return PARTITION + len(offset.topic) + _bytes_of(offset.metadata or "")


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _size_of_member(member: ClassicMember) -> int:
    offered = sum(SMALL + len(each.metadata) for each in member.protocols)
    return SMALL + offered + len(member.assignment)


def _size_of_consumer(member: DescribedConsumer) -> int:
    names = sum(PARTITION + len(each) for each in member.names)
    return SMALL + names + PARTITION * (len(member.assigned) + len(member.target))


def _size_of_worker(member: DescribedWorker) -> int:
    resources = len(member.assigned) + len(member.owned) + len(member.target)
    return SMALL + len(member.data.metadata) + PARTITION * resources


def _with_size(reply: PackedReply) -> tuple[int, PackedReply]:
    size = size_of(reply)
    return (size, reply) if size <= MOST_BYTES else (SMALL, _refuse_length(reply))


def _refuse_length(reply: PackedReply) -> PackedReply:
    """Return the error for a reply that is too large; only these types can be."""
    error, message = Error.INVALID_REQUEST, f"more than {MOST_BYTES} bytes: ask for less at once"
    if isinstance(reply, OffsetFetchReply):
        return OffsetFetchReply(error, message=message, number=reply.number)
    if isinstance(reply, ConnectReply):
        return ConnectReply(PrepareReply(error, message), reply.number)
    if isinstance(reply, NodeReply):
        return NodeReply(number=reply.number, error=error, message=message)
    if isinstance(reply, DescribeGroupReply):
        return DescribeGroupReply(error, DEAD, message=message, number=reply.number)
    if isinstance(reply, DescribeConsumerGroupReply | DescribeConnectGroupReply):
        return type(reply)(error, message=message, number=reply.number)
    return reply
