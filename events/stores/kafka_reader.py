# pyright: basic, reportPrivateImportUsage=false
"""A reader of a log in Kafka: a thread that reads its two topics, and keeps what counts.

It begins at a position. If the record before that is still there, it has to be the one that the
position was taken behind; if it was deleted, a snapshot has to stand in its place. What counts is
kept until it is taken; when that is much, the log's topic pauses, and beats go on.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any, Final, NamedTuple

from .kafka_clients import (
    ANSWER_S,
    GONE,
    OUT_OF_RANGE,
    StoreClients,
    StoreTopics,
    TopicPartition,
)
from .kafka_records import (
    BeatsFold,
    LogFold,
    MissingCommitsError,
    StoreMark,
    decode_record,
    digest_of,
    pack_mark,
    unpack_mark,
)
from .port import StoredCommit, StoredSlice, StorePosition, StoreSnapshot

_MOST_BYTES: Final = 16 << 20
_SLICE_BYTES: Final = 8 << 20
_SLICE_ITEMS: Final = 1_000
_BEATS_BEFORE: Final = 100
"""So many beats before the end of their topic a reader begins: they tell the last epochs."""
_POLL_S: Final = 0.1
_CHUNK: Final = 500


class _Item(NamedTuple):
    """A commit or snapshot that counts, and the place behind it."""

    content: StoredCommit | StoreSnapshot
    mark: StoreMark


class DifferentTopicError(Exception):
    """The topic has not what was read from it before."""


class TopicReader:
    """Reads from a position on; raises `KafkaException`, `DifferentTopicError`."""

    def __init__(self, clients: StoreClients, topics: StoreTopics, position: StorePosition) -> None:
        self.position: StorePosition | None = position
        """Behind what was taken last; None: what came then was not kept."""
        self._place = TopicPartition(topics.names.log, 0)
        self._beats_topic = topics.names.beats
        self._low = 0
        self._changed = Condition()
        self._mark: StoreMark | None = None
        """Of the record to be read first."""
        self._origin: StoreMark | None = None
        """Of a position whose record was deleted."""
        self.fold = LogFold()
        self.beats = BeatsFold()
        self.heard_at = time.monotonic()
        """When a record of the owner came last, by the steady clock."""
        self.flaw = ""
        """How the topic differs from what it was."""
        self.is_lost = False
        """Whether it cannot go on from where it is, and another reader has to begin."""
        self._items: deque[_Item] = deque()
        self._bytes = 0
        self._is_paused = False
        self._is_closed = False
        self._consumer = clients.consumer()
        try:
            self._ends = self._begin(topics, position)
        except BaseException:
            self._consumer.close()
            raise
        self._thread = Thread(target=self._run, name="log-store", daemon=True)
        self._thread.start()

    def silent_seconds(self) -> float:
        """Return how long no record of the owner has come."""
        return time.monotonic() - self.heard_at

    def wait_for(self, log: int = 0, beats: int = 0) -> None:
        """Wait until it has read to these offsets; raises `TimeoutError`."""

        def is_there() -> bool:
            if self._is_paused:
                self._forget()
            at_log, at_beats = self._ends
            return bool(self.flaw) or self.is_lost or (at_log >= log and at_beats >= beats)

        with self._changed:
            self._wait(is_there, ANSWER_S)
            if self.flaw:
                raise DifferentTopicError(self.flaw)
            if self.is_lost:
                raise TimeoutError("the topic cannot be read on")

    def forget(self) -> None:
        """Keep nothing from now on: an owner knows what it writes, and hears of others."""
        if self.position is not None:
            with self._changed:
                self._forget()

    def take(self, position: StorePosition, log_end: int, wait_seconds: float) -> StoredSlice:
        """Return the next part; wait for it if all is taken up to an offset of the log.

        Raises `TimeoutError` if that offset is not reached.
        """

        def is_there() -> bool:
            return bool(self._items or self.flaw) or self.is_lost

        with self._changed:
            self._wait(lambda: is_there() or self._ends[0] >= log_end, ANSWER_S)
            if wait_seconds > 0:
                self._changed.wait_for(is_there, wait_seconds)
            if self._low and self.fold.claim is None and self._ends[0] >= log_end:
                self.flaw = f"what is before offset {self._low} was deleted without a snapshot"
            if self.flaw:
                raise DifferentTopicError(self.flaw)
            items = self._next_items()
            if items:
                position = StorePosition(items[-1].content.end, pack_mark(items[-1].mark))
            self.position = position
            is_whole = not self._items and self._ends[0] >= log_end and not self.is_lost
        snapshots = [each.content for each in items if isinstance(each.content, StoreSnapshot)]
        commits = [each.content for each in items if isinstance(each.content, StoredCommit)]
        return StoredSlice(snapshots[0] if snapshots else None, commits, position, is_whole)

    def close(self) -> None:
        """End the thread, which closes its client."""
        self._is_closed = True
        self._thread.join(ANSWER_S)

    def _wait(self, is_there: Callable[[], bool], seconds: float) -> None:
        """Wait for the thread; it is lost if it comes no further meanwhile."""
        before = [*self._ends]
        if not self._changed.wait_for(is_there, seconds):
            self.is_lost |= self._ends == before
            raise TimeoutError("the topic is not read to its end")

    def _next_items(self) -> list[_Item]:
        items: list[_Item] = []
        size = 0
        while self._items and len(items) < _SLICE_ITEMS and size < _SLICE_BYTES:
            items.append(self._items.popleft())
            size += len(items[-1].content.body)
        self._bytes -= size
        return items

    def _forget(self) -> None:
        self._items.clear()
        self._bytes, self.position = 0, None

    def _begin(self, topics: StoreTopics, position: StorePosition) -> list[int]:
        """Find where to begin in both topics, and assign them."""
        (low, high), (first, end) = topics.ranges(self._consumer)
        self._low = start = low
        if position != StorePosition():
            start = self._begin_behind(position, low, high)
        starts = [start, max(first, end - _BEATS_BEFORE)]
        places = zip(topics.names, starts, strict=True)
        self._consumer.assign([TopicPartition(name, 0, at) for name, at in places])
        return starts

    def _begin_behind(self, position: StorePosition, low: int, high: int) -> int:
        mark = unpack_mark(position.mark)
        if mark is None:
            raise DifferentTopicError(f"the copy, which ends at {position.end}, is not of this log")
        if mark.offset >= high:
            raise DifferentTopicError(
                f"the topic ends at offset {high}, and the copy has the record at {mark.offset}"
            )
        if mark.offset < low:
            self._origin = mark
            return low
        self._mark = mark
        self.fold = LogFold(mark.claim, position.end, mark.stored_bytes)
        return mark.offset

    # -- the thread

    def _run(self) -> None:
        try:
            while not self._is_closed:
                message = self._consumer.poll(_POLL_S)
                if message is not None:
                    more = self._consumer.consume(_CHUNK, 0)
                    with self._changed:
                        for each in (message, *more):
                            self._take(each)
                        self._changed.notify_all()
                self._pause_or_resume()
        finally:
            with self._changed:
                self.is_lost = True
                self._changed.notify_all()
            self._consumer.close()

    def _pause_or_resume(self) -> None:
        if not self._is_paused and self._bytes > _MOST_BYTES:
            self._consumer.pause([self._place])
            self._is_paused = True
        elif self._is_paused and self._bytes < _MOST_BYTES // 2:
            self._consumer.resume([self._place])
            self._is_paused = False

    def _take(self, message: Any) -> None:  # noqa: ANN401  # Kafka's own
        error = message.error()
        if error is not None:
            self.is_lost |= error.code() in (*GONE, *OUT_OF_RANGE)
        elif message.topic() == self._beats_topic:
            self._ends[1] = message.offset() + 1
            if self.beats.take(decode_record(message.value())):
                self.heard_at = time.monotonic()
        elif not (self.flaw or self.is_lost):
            try:
                self._take_logged(message.offset(), message.value())
            except (DifferentTopicError, MissingCommitsError) as flaw:
                self.flaw = str(flaw)

    def _take_logged(self, offset: int, value: bytes | None) -> None:
        digest, mark = digest_of(value), self._mark
        self._mark = None
        if mark is None:
            record = decode_record(value)
            content = self.fold.take(record)
            if self.fold.is_of_owner(record):  # of a large write each part is a sign of life
                self.heard_at = time.monotonic()
            if content is not None and self.fold.claim is not None and self._is_new(content):
                place = StoreMark(offset, digest, self.fold.claim, self.fold.stored_bytes)
                self._keep(_Item(content, place))
        elif (offset, digest) != (mark.offset, mark.digest):
            raise DifferentTopicError(f"the topic has another record at offset {mark.offset}")
        self._ends[0] = offset + 1

    def _is_new(self, content: StoredCommit | StoreSnapshot) -> bool:
        """Return whether the position does not have it; checks what stands in its place."""
        if self._origin is None or self.position is None or self.fold.claim is None:
            return True
        if self.fold.claim.log_id != self._origin.claim.log_id or content.end < self.position.end:
            raise DifferentTopicError(
                f"the topic begins with another log, or before {self.position.end}"
            )
        is_new = content.end > self.position.end
        self._origin = None
        return is_new

    def _keep(self, item: _Item) -> None:
        if self.position is not None:
            self._items.append(item)
            self._bytes += len(item.content.body)
