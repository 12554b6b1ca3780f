"""The page of the node's own group, and the messages that tell its readers of each change.

One thread publishes; requests read. A message is encoded once for all who see everything. Who has
missed some gets them again by the number of the last one that they have, as long as they are kept;
else they are told that there is a gap, and read the page anew. The ids of messages begin with a
number of this process, as another one counts from 1 again.

A stream waits for its event loop's wake-up, and holds no message of its own: it knows the number
of the last one that it has sent. The connection of a reader who lets more than a megabyte wait is
ended; the next one begins where it has got to.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import takewhile
from threading import Lock
from typing import Final, NamedTuple

from msgspec.json import decode, encode

from ....security.rights import Access
from ...replies.building.page.history import PageHistory
from ...replies.building.page.state import PageView, limit_change, limit_step
from ...replies.live.messages import EVENT_NAMES, PageMessage, StreamGap
from ...replies.live.state import PageChange, PageStep
from .encoded import EncodedBody

MOST_MESSAGES: Final = 2_000
MOST_BYTES: Final = 16 << 20
"""How many messages are kept, and of how many bytes together."""
MOST_WAITING: Final = 1 << 20
"""How many bytes may wait for a reader when more come; one message may be larger."""
LONGEST_NUMBER: Final = 19
"""How many digits the number of a message has at most."""
WATCHED_SECONDS: Final = 60.0
"""For how long after it has read the page a reader counts."""


class FeedMessage(NamedTuple):
    """One message, as it is sent to all who see everything."""

    sequence: int
    kind: type[PageChange | PageStep]
    block: bytes
    """The bytes of the stream: id, event and data."""


@lru_cache(maxsize=1)  # all limited streams are woken for the same message
def _body_of(message: FeedMessage) -> PageChange | PageStep:
    """Return the body of a message, of which its bytes alone are kept: they take least."""
    _, _, data = message.block.partition(b"\ndata: ")
    return decode(data, type=message.kind)


class FeedStream:
    """One open stream, for the event loop that serves it."""

    def __init__(self, access: Access, last: int, abort: Callable[[], object]) -> None:
        self.access = access
        """What its caller may see."""
        self.last = last
        """The number of the last message that was sent."""
        self.waiting = 0
        """How many bytes were published since it last took some."""
        self.abort = abort
        """Ends the connection."""
        self.loop = asyncio.get_running_loop()
        self.woken = asyncio.Event()
        """Set if there may be something to send, or the feed is closed."""


class PageFeed:
    """The present page and its last messages."""

    def __init__(self) -> None:
        self.process = time.time_ns() // 1_000_000
        """Tells this process from the ones before it."""
        self.history = PageHistory(self.process)
        """The last hour, as far as it was recorded."""
        self.sequence = 0
        """The number of the last message."""
        self.is_closed = False
        self._lock = Lock()
        """Guards the page with its encoded form, the messages and the streams."""
        self._view: PageView | None = None
        self._limited_views: dict[Access, PageView] = {}
        """The same of callers who see some connectors alone, as far as somebody has asked."""
        self._messages: deque[FeedMessage] = deque()
        self._bytes = 0
        """How many bytes the messages have together."""
        self._streams: set[FeedStream] = set()
        self._encoded: EncodedBody | None = None
        """The page for all who see everything; None: nobody has read it since it changed."""
        self._read_at = -WATCHED_SECONDS
        """When somebody read the page last, monotonic clock."""

    @property
    def is_watched(self) -> bool:
        """Whether somebody follows the page, or has read it just before."""
        return bool(self._streams) or time.monotonic() < self._read_at + WATCHED_SECONDS

    @property
    def view(self) -> PageView | None:
        """The page; None: it was not read yet."""
        return self._view

    def view_of(self, access: Access) -> PageView | None:
        """Return the page of a caller; None: as `view`."""
        with self._lock:
            view, limited = self._view, self._limited_views
        return None if view is None else _own_view(view, access, limited)

    def publish(self, view: PageView, body: PageChange | PageStep | None = None) -> None:
        """Replace the page, and tell all readers what has changed; for one thread."""
        with self._lock:
            self._view, self._limited_views, self._encoded = view, {}, None
            if body is None:
                return
            self.sequence = body.sequence
            message = FeedMessage(body.sequence, type(body), self.spell(body))
            self._messages.append(message)
            self._bytes += len(message.block)
            while len(self._messages) > MOST_MESSAGES or self._bytes > MOST_BYTES:
                self._bytes -= len(self._messages.popleft().block)
            streams = [*self._streams]
        self._wake(streams, len(message.block))

    def spell(self, body: PageMessage) -> bytes:
        """Return a message as the bytes of a stream."""
        place = self.process, body.sequence
        return b"id: %d-%d\nevent: %b\ndata: %b\n\n" % (
            *place,
            EVENT_NAMES[type(body)],
            encode(body),
        )

    def encoded(self, access: Access) -> EncodedBody | None:
        """Return the page of a caller; None: it was not read yet."""
        self._read_at = time.monotonic()
        with self._lock:
            view, sequence, encoded = self._view, self.sequence, self._encoded
            limited = self._limited_views
        if view is None:
            return None
        if access.is_limited:
            return self._encode(_own_view(view, access, limited), sequence)
        if encoded is None:
            encoded = self._encode(view, sequence)
            with self._lock:
                if self._view is view:
                    self._encoded = encoded
        return encoded

    def encoded_hours(self, access: Access) -> EncodedBody | None:
        """Return the last hour of each connector that a caller sees; None: as `encoded`."""
        with self._lock:
            view, sequence, limited = self._view, self.sequence, self._limited_views
        if view is None:
            return None
        own = _own_view(view, access, limited)
        return EncodedBody(own.encode_hours(sequence, self.history))

    def _encode(self, view: PageView, sequence: int) -> EncodedBody:
        return EncodedBody(view.encode(sequence, self.history))

    def resume(self, last_id: str) -> int | None:
        """Return the number of the last message that a reader has; None: there is a gap.

        `last_id` is an id of a message, or the sequence number of a page; empty: the reader has
        read nothing, and begins now.
        """
        process, _, number = last_id.rpartition("-")
        if not last_id:
            return self.sequence
        is_number = number.isascii() and number.isdecimal() and len(number) <= LONGEST_NUMBER
        if process not in {"", str(self.process)} or not is_number:
            return None
        with self._lock:
            first = self._messages[0].sequence if self._messages else self.sequence + 1
            is_kept = first - 1 <= int(number) <= self.sequence
        return int(number) if is_kept else None

    def open(self, access: Access, last: int, abort: Callable[[], object]) -> FeedStream:
        """Begin a stream behind a message."""
        stream = FeedStream(access, last, abort)
        with self._lock:
            self._streams.add(stream)
        return stream

    def end(self, stream: FeedStream) -> None:
        """End a stream."""
        with self._lock:
            self._streams.discard(stream)

    def take(self, stream: FeedStream) -> Sequence[bytes]:
        """Return the messages that a stream has not sent yet."""
        stream.woken.clear()
        with self._lock:
            behind = takewhile(lambda it: it.sequence > stream.last, reversed(self._messages))
            new = [*behind][::-1]
            view, limited = self._view, self._limited_views
        stream.waiting = 0
        if not new:
            return ()
        if new[0].sequence > stream.last + 1:  # some are not kept any more
            stream.last = self.sequence
            return (self.spell(StreamGap(stream.last)),)
        stream.last = new[-1].sequence
        if not stream.access.is_limited or view is None:
            return [each.block for each in new]
        own = _own_view(view, stream.access, limited)
        return [self._limited(each, own, stream.access.sees) for each in new]

    def _limited(self, message: FeedMessage, view: PageView, sees: Callable[[str], bool]) -> bytes:
        body = _body_of(message)
        if isinstance(body, PageChange):
            return self.spell(limit_change(body, view, sees))
        return self.spell(limit_step(body, view, sees))

    def close(self) -> None:
        """End all streams, as the process ends."""
        self.is_closed = True
        with self._lock:
            streams = [*self._streams]
        self._wake(streams, 0)

    def _wake(self, streams: Sequence[FeedStream], size: int) -> None:
        """Wake streams in their event loops, each loop by one call."""
        for loop in {each.loop for each in streams}:
            own = [each for each in streams if each.loop is loop]
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake_all, own, size)


def _own_view(view: PageView, access: Access, limited: dict[Access, PageView]) -> PageView:
    """Return the page of a caller, which is made once for all with the same rights."""
    if not access.is_limited:
        return view
    if access not in limited:
        limited[access] = view.limited_to(access)
    return limited[access]


def _wake_all(streams: Sequence[FeedStream], size: int) -> None:
    for each in streams:
        if each.waiting > MOST_WAITING:
            each.abort()
        each.waiting += size
        each.woken.set()
