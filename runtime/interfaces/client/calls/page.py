"""The state of the page and what changes of it (server-sent events), as a reader follows it.

A reader is told each thing once. If it was away, it asks for what is behind the last message that
it has. If the node does not keep that any more, or has started again, a reader of messages gets a
`StreamGap`; a reader of events looks for the last event that it has among the latest ones of the
node; if it is not there, some are missing, and an event says so.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from ...replies.live.events import WARNING, EventInfo
from ...replies.live.messages import MESSAGES, PageMessage, StreamGap
from ...replies.live.state import PageChange, PageState
from ..sending.errors import ClientError, UnexpectedAnswerError, is_away
from ..sending.exchange import RETRY_SECONDS, NodeExchange
from ..sending.requests import STREAM, NodeRequest, get

QUIET_SECONDS: Final = 45.0
"""After so long without a byte the connection is lost: the node sends something each 15 s."""
MISSING: Final = (
    "events before this one are missing: the node was started again, or this reader was away for"
    " too long; the history and the node's log have them"
)
NOWHERE: Final = "0-0"
"""The id of a message that no process has sent: behind it there is a gap."""


class LatestEvents(Struct, frozen=True):
    """The members of the page that a reader of events needs."""

    sequence: int
    """The number of the last message that this contains."""
    lines: list[EventInfo] = []
    """Events, the latest one first."""


STATE: Final = Decoder(PageState)
LATEST: Final = get(Decoder(LatestEvents), "state")
EVENTS: Final = get(STREAM, "events")
_KINDS: Final = {name.encode(): Decoder(kind) for name, kind in MESSAGES.items()}


def get_state() -> NodeRequest[PageState]:
    """Return all that the page shows of the node's group, of one moment."""
    return get(STATE, "state")


async def follow_changes(
    node: NodeExchange, after: int | None = None
) -> AsyncGenerator[PageMessage]:
    """Return an iterator of what changes on the page from now on, or behind a state's `sequence`.

    `StreamOpened` comes first, and again after a loss of the connection. After a `StreamGap` the
    state is to be read again. It goes on until it is closed; raises `ClientError`.
    """
    return _messages(node, MessageReader("" if after is None else str(after)))


async def follow_events(node: NodeExchange) -> AsyncGenerator[EventInfo]:
    """Return an iterator of what happens from now on, each event once.

    It goes on after a loss of the connection, until it is closed; raises `ClientError`.
    """
    return _events(node, EventReader(await node.send(LATEST)))


async def _messages(node: NodeExchange, reader: "MessageReader") -> AsyncGenerator[PageMessage]:
    while True:
        try:
            async with aclosing(node.receive(EVENTS, reader.headers, QUIET_SECONDS)) as parts:
                async for received in parts:
                    for each in reader.take(received):
                        yield each
            reader.close()
        except ClientError as error:
            reader.close(error)
        await node.pause(RETRY_SECONDS)


async def _events(node: NodeExchange, reader: "EventReader") -> AsyncGenerator[EventInfo]:
    while True:
        try:
            if reader.is_behind:
                for each in reader.fill(await node.send(LATEST)):
                    yield each
            async with aclosing(node.receive(EVENTS, reader.headers, QUIET_SECONDS)) as parts:
                async for received in parts:
                    for each in reader.take(received):
                        yield each
                    if reader.is_behind:
                        break
            reader.close()
        except ClientError as error:
            reader.close(error)
        await node.pause(RETRY_SECONDS)


class MessageReader:
    """Where a reader of a node's stream is; it is given what it has received."""

    def __init__(self, last_id: str) -> None:
        """Begin behind a message; empty: with the next one."""
        self.last_id = last_id
        """Of a message, or the sequence number of a state, which names no process."""
        self._rest = b""
        """The beginning of a message whose end was not received yet."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the next request for the stream."""
        return {"Accept": "text/event-stream", "Last-Event-ID": self.last_id}

    @property
    def knows_process(self) -> bool:
        """Whether its place is that of one process alone, as another one counts anew."""
        return "-" in self.last_id

    def close(self, error: ClientError | None = None) -> None:
        """Note the end of a connection; raises its error if another one would have it as well."""
        if error is not None and not is_away(error):
            raise error
        self._rest = b""
        if self.last_id and not self.knows_process:
            self.last_id = NOWHERE

    def take(self, received: bytes) -> Iterator[PageMessage]:
        """Yield the messages in what was received; raises `UnexpectedAnswerError`."""
        *blocks, self._rest = (self._rest + received).split(b"\n\n")
        for block in blocks:
            fields = dict(_fields_of(block))
            self.last_id = fields.get(b"id", self.last_id.encode()).decode()
            if (kind := _KINDS.get(fields.get(b"event", b""))) is not None:
                yield _decode(kind, fields.get(b"data", b""))


class EventReader:
    """Where a reader of a node's events is; it is given what it has received."""

    def __init__(self, latest: LatestEvents) -> None:
        """Begin behind the latest events."""
        self.is_behind = False
        """Whether the latest events are to be read by `fill` before those of the stream."""
        self._last = latest.lines[0] if latest.lines else None
        """The last event that the reader had; None: there was none."""
        self._messages = MessageReader(str(latest.sequence))

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the next request for the stream."""
        return self._messages.headers

    def close(self, error: ClientError | None = None) -> None:
        """Note the end of a connection; raises its error if another one would have it as well."""
        self.is_behind |= not self._messages.knows_process
        self._messages.close(error)

    def take(self, received: bytes) -> Iterator[EventInfo]:
        """Yield the events in what was received, up to a gap; raises `UnexpectedAnswerError`."""
        for message in self._messages.take(received):
            if isinstance(message, StreamGap):
                self.is_behind = True
                return
            if isinstance(message, PageChange) and message.lines:
                yield from self._pass_on(message.lines)

    def fill(self, latest: LatestEvents) -> Iterator[EventInfo]:
        """Yield the events since the last one, of the latest ones of the node."""
        self.is_behind, self._messages = False, MessageReader(str(latest.sequence))
        lines = latest.lines
        if self._last in lines:
            lines = lines[: lines.index(self._last)]
        elif self._last is not None:
            since_ms = lines[-1].time_ms if lines else self._last.time_ms
            yield EventInfo(since_ms, WARNING, MISSING, None, None, "", None)
        yield from self._pass_on(lines)

    def _pass_on(self, lines: Sequence[EventInfo]) -> Iterator[EventInfo]:
        for each in reversed(lines):
            self._last = each
            yield each


def _decode(kind: Decoder[PageMessage], data: bytes) -> PageMessage:
    try:
        return kind.decode(data)
    except msgspec.DecodeError as error:
        raise UnexpectedAnswerError(
            f"a message of /events is another one than this version of fairlead expects ({error}):"
            " is it a node of the same version?"
        ) from None


def _fields_of(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields of a message; a comment is one without a name."""
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        yield name, value.removeprefix(b" ")
