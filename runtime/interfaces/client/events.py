"""The stream of a node's events (server-sent), and where a reader of it is.

A reader is told each event once. If it was away, it asks for what is behind the last message that
it has. If the node does not keep that any more, or has started again, the reader looks for the last
event that it has among the latest ones of the node; if it is not there, some are missing, and an
event says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from ..replies.live.events import WARNING, EventInfo
from .errors import ClientError, NodeUnreachableError, Refused
from .requests import get

RETRY_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 45.0
"""After so long without a byte the connection is lost: the node sends something each 15 s."""
MISSING: Final = (
    "events before this one are missing: the node was started again, or this reader was away for"
    " too long; the history and the node's log have them"
)


class LatestEvents(Struct, frozen=True):
    """The members of the page, and of a change of it, that a reader of events needs."""

    sequence: int
    """The number of the last message that this contains."""
    lines: list[EventInfo] = []
    """Events, the latest one first."""


_LATEST: Final = Decoder(LatestEvents)
STREAM: Final = get(Decoder(msgspec.Raw), "events")
STATE: Final = get(_LATEST, "state")


class EventReader:
    """Where a reader of a node's events is; it is given what it has received."""

    def __init__(self, latest: LatestEvents) -> None:
        """Begin behind the latest events."""
        self.is_behind = False
        """Whether the latest events are to be read by `fill` before those of the stream."""
        self._last = latest.lines[0] if latest.lines else None
        """The last event that the reader had; None: there was none."""
        self._last_id = str(latest.sequence)
        """Of a message, or the sequence number of the latest events, which names no process."""
        self._rest = b""
        """The beginning of a message whose end was not received yet."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the next request for the stream."""
        return {"Accept": "text/event-stream", "Last-Event-ID": self._last_id}

    def close(self, error: ClientError | None = None) -> None:
        """Note the end of a connection; raises its error if another one would have it as well."""
        is_away = isinstance(error, NodeUnreachableError) or (
            isinstance(error, Refused) and error.status == HTTPStatus.SERVICE_UNAVAILABLE
        )
        if error is not None and not is_away:
            raise error
        self._rest = b""
        self.is_behind |= "-" not in self._last_id

    def take(self, received: bytes) -> Iterator[EventInfo]:
        """Yield the events in what was received, up to a gap."""
        *blocks, self._rest = (self._rest + received).split(b"\n\n")
        for block in blocks:
            fields = dict(_fields_of(block))
            self._last_id = fields.get(b"id", self._last_id.encode()).decode()
            if fields.get(b"event") == b"gap":
                self.is_behind = True
                return
            if fields.get(b"event") == b"change":
                yield from self._pass_on(_LATEST.decode(fields[b"data"]).lines)

    def fill(self, latest: LatestEvents) -> Iterator[EventInfo]:
        """Yield the events since the last one, of the latest ones of the node."""
        self.is_behind, self._last_id = False, str(latest.sequence)
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


def _fields_of(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields of a message; a comment is one without a name."""
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        yield name, value.removeprefix(b" ")
