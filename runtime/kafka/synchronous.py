"""The fast path for repeated heartbeats and messages of nodes: they are handled without a task.

The task of a connection has to wake up for each request, and again for its response. Most requests
are heartbeats that equal the previous one of their connection, except for the correlation id: they
are parsed once. Others are messages of nodes, each its own, in frames of a simple form. Such a
request is forwarded in the callback that receives its bytes, and answered in the callback that
receives the reply. It has to arrive in one piece, while the connection is idle; the task handles
all other requests. The next request waits for the response, as always.
"""
# pyright: basic

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ...actors.messages.errors import Error
from ...actors.messages.groups import HostCall, NodeCall, NodeReply
from .client.reply_handler import RepeatedCall
from .client.stream import Stream, consume_nothing
from .client.timeout import ConnectionState, ConnectionTimeout
from .counts import Counts
from .groups import Groups, refuse_lost
from .shard_connection import ShardConnection
from .wire.bounds import IDLE_SECONDS, FrameRefused
from .wire.calls.asks import answer_ask
from .wire.calls.dispatch import answer_of, calls_of
from .wire.calls.node_frames import read_node_ask, write_node_answer
from .wire.calls.offsets import has_topic_ids
from .wire.frames import (
    HEAD,
    LENGTH,
    Head,
    Request,
    read_head,
    read_request,
    response_class,
    write_response,
)
from .wire.served import CONNECT_ASK
from .wire.terms import NO_TOPIC_IDS, TopicIds

LOGGER = logging.getLogger(__name__)
NUMBER_END: Final = LENGTH.size + HEAD.size
"""The size of length prefix and head, in bytes; the head ends with the correlation id (number)."""
NUMBER_START: Final = NUMBER_END - LENGTH.size
"""The size of length prefix, API key and version, in bytes."""
LONGEST: Final = 512
"""The maximum size of a remembered request, in bytes: longer ones are parsed each time."""

AddRights = Callable[[HostCall], HostCall]
"""Returns a call with the rights of its client that its group has to know."""


class ParsedRequest(NamedTuple):
    """A request, and the calls of groups that it leads to."""

    request: Request
    calls: Sequence[HostCall]


class LastRequest:
    """The last request of a connection: its bytes, and the parsed request."""

    def __init__(self) -> None:
        self._start = b""
        """The bytes before the correlation id."""
        self._body = b""
        """The bytes after the correlation id."""
        self._parsed: ParsedRequest | None = None

    def read(
        self,
        head: Head,
        frame: bytes,
        client_host: str,
        add_rights: AddRights,
        topic_ids: TopicIds = NO_TOPIC_IDS,
    ) -> ParsedRequest:
        """Parse a request, unless it equals the last one; raises `FrameRefused`."""
        data = LENGTH.pack(len(frame)) + frame
        if (parsed := self.find(data)) is not None:
            return parsed
        request = read_request(head, frame, topic_ids)
        calls = [add_rights(each) for each in calls_of(request, client_host)]
        parsed = ParsedRequest(request, calls)
        is_kept = len(frame) <= LONGEST and not has_topic_ids(head)
        self._parsed = parsed if is_kept else None
        self._start, self._body = data[:NUMBER_START], data[NUMBER_END:][:LONGEST]
        return parsed

    def forget(self) -> None:
        """Parse the next request, whatever it is: the rights of its client are looked up again."""
        self._parsed = None

    def find(self, data: bytes) -> ParsedRequest | None:
        """Return the last request if these bytes are exactly that request again, else None."""
        is_same = data[NUMBER_END:] == self._body and data.startswith(self._start)
        return self._parsed if is_same else None


class SynchronousHeartbeats:
    """The fast path of one connection; it is the `ReplyHandler` of its calls."""

    def __init__(
        self,
        stream: Stream,
        last: LastRequest,
        limit: ConnectionTimeout,
        groups: Groups,
        counts: Counts,
    ) -> None:
        self._stream, self._last, self._limit = stream, last, limit
        self._groups, self._counts = groups, counts
        self._request: ParsedRequest | None = None
        """The last request that came twice."""
        self._shard: ShardConnection | None = None
        """The connection to its shard; None: the task handles it."""
        self._repeated: RepeatedCall | None = None
        """The call of that request, once it was sent."""
        self._head = b""
        """The head of the unanswered request; empty: there is none."""
        self._answer = b"", b""
        """The last response, before and after the correlation id."""
        self._answered: asyncio.Future[None] | None = None
        """Wakes the task that waits for the response."""
        self._nodes: NodeCalls | None = None
        """Handles messages of a node; None: the client is none."""
        stream.on_data = self.take

    def serve_node(self) -> None:
        """Handle the messages of a node as well: the client has proven to be one."""
        self._nodes = NodeCalls(self._stream, self._limit, self._groups)

    def take(self, data: bytes) -> bool:
        """Handle bytes if they are the last heartbeat again; return whether they are."""
        if self._limit.state is not ConnectionState.IDLE or self._stream.is_full:
            return False
        if self._nodes is not None and self._nodes.take(data):
            self._counts.count_request(CONNECT_ASK)
            return True
        parsed = self._last.find(data)
        if parsed is None:
            return False
        if parsed is not self._request:
            self._drop_repeated()
            self._request, self._shard = parsed, self._groups.find_shard(parsed.calls)
        if self._shard is None:
            return False
        if self._repeated is None:
            self._repeated = RepeatedCall(parsed.calls[0])
        self._counts.count_request(parsed.request.head.api)
        self._limit.wait_for(ConnectionState.ANSWERING)
        self._head = data[LENGTH.size : NUMBER_END]
        self._shard.repeat(self._repeated, self)
        return True

    async def wait_for_answer(self) -> None:
        """Wait until there is no unanswered request."""
        if self._nodes is not None:
            await self._nodes.wait_for_answer()
        if self._head:
            self._answered = asyncio.get_running_loop().create_future()
            await self._answered
            self._answered = None

    def switch_off(self) -> None:
        """Leave all requests to the task."""
        self._stream.on_data = consume_nothing

    def close(self) -> None:
        """Cancel the call."""
        self._drop_repeated()
        if self._nodes is not None:
            self._nodes.close()

    def _drop_repeated(self) -> None:
        """Drop the call: it is not repeated any more."""
        repeated, self._repeated = self._repeated, None
        if repeated is not None and self._shard is not None:
            self._shard.drop(repeated)

    # -- callbacks of the call

    def answer(self, reply: Any) -> None:
        """Write the response; an error closes only this connection."""
        assert self._request is not None  # noqa: S101  # it was sent
        try:
            frame = write_response(read_head(self._head), answer_of(self._request.request, [reply]))
        except Exception:
            LOGGER.exception("an answer could not be written")
            self._stream.transport.abort()
            frame = b""
        self._answer = frame[: LENGTH.size], frame[2 * LENGTH.size :]
        self.repeat_answer()

    def repeat_answer(self) -> None:
        """Write the last response again, with the correlation id of this request."""
        start, rest = self._answer
        self._stream.transport.write(b"".join((start, self._head[-LENGTH.size :], rest)))
        self._head = b""
        if self._answered is None:
            self._limit.wait_for_request()
        elif not self._answered.done():  # the task has read a part of the next request already
            self._answered.set_result(None)

    def fail(self, error: Error) -> None:
        """Answer with an error that lets the client retry."""
        self._drop_repeated()
        if self._head and self._request is not None:
            self.answer(refuse_lost(self._request.calls[0], error))

    def hold(self, end_hold: Callable[[], None]) -> None:
        """End the hold when the client sends its next request, or disconnects."""
        self._stream.notify_on_input(end_hold)


class NodeCalls:
    """The messages of a node on one connection; it is the `ReplyHandler` of their calls."""

    def __init__(self, stream: Stream, limit: ConnectionTimeout, groups: Groups) -> None:
        self._stream, self._limit, self._groups = stream, limit, groups
        self._shard: ShardConnection | None = None
        """The connection to the workers' group, since the first message."""
        self._number = 0
        """The number of the last call."""
        self._head = b""
        """The head of the unanswered request; empty: there is none."""
        self._answered: asyncio.Future[None] | None = None
        """Wakes the task that waits for the response."""

    def take(self, data: bytes) -> bool:
        """Forward a request; return whether it was one of the usual form, and for this node."""
        ask = read_node_ask(data)
        if ask is None or (shard := self._groups.find_workers(ask.group_id)) is None:
            return False
        try:
            call = ask.decode()
        except FrameRefused:
            return False  # the task refuses it
        self._limit.wait_for(ConnectionState.ANSWERING, IDLE_SECONDS)
        self._head, self._shard = data[LENGTH.size : NUMBER_END], shard
        self._number = shard.send(call, self)
        return True

    async def wait_for_answer(self) -> None:
        """Wait until there is no unanswered request."""
        if self._head:
            self._answered = asyncio.get_running_loop().create_future()
            await self._answered
            self._answered = None

    def close(self) -> None:
        """Cancel the call."""
        if self._shard is not None:
            self._shard.cancel(self._number)

    # -- callbacks of the call

    def answer(self, reply: NodeReply) -> None:
        """Write the response; an error closes only this connection."""
        head, self._head = self._head, b""
        try:
            frame = write_node_answer(head[-LENGTH.size :], reply)
            if frame is None:
                read = read_head(head)
                kind = response_class(read.api, read.version)
                frame = write_response(read, answer_ask(None, kind, [reply]))
            self._stream.transport.write(frame)
        except Exception:
            LOGGER.exception("an answer could not be written")
            self._stream.transport.abort()
        if self._answered is None:
            self._limit.wait_for_request()
        elif not self._answered.done():  # the task has read a part of the next request already
            self._answered.set_result(None)

    def repeat_answer(self) -> None:
        """Do nothing: it is never called, since no message of a node is repeated."""

    def fail(self, error: Error) -> None:
        """Answer with an error that lets the node ask again."""
        self.answer(refuse_lost(NodeCall("", None), error))

    def hold(self, end_hold: Callable[[], None]) -> None:
        """End the hold when the node sends its next message on this connection, or disconnects."""
        self._stream.notify_on_input(end_hold)
