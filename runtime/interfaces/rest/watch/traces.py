"""Follows the logs of the node's groups, and sends what they tell as spans to a collector.

A thread reads what is new each second; no task and no group waits for it. How far the collector has
all spans is kept beside the logs, so that a process that is started again goes on there. After a
crash the last spans may come twice, with the same ids.
"""

import json
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final, Generic, NamedTuple, TypeVar

from .....events.entries.codec import CodecError
from .....events.log.errors import LogError, TrimmedError
from .....events.log.reader import LogReader
from .....projections.traces.batches import BatchSpans, PlacedSpan
from .....projections.traces.epochs import EpochSpans
from .....projections.traces.spans import TraceSpan
from ....cluster.node_files import write_json
from ..reading.changes import OPENED_AGAIN
from ..reading.logs import NodeLogs
from .span_queue import SpanQueue

LOGGER = logging.getLogger(__name__)
FILE: Final = "traces.json"
F = TypeVar("F", EpochSpans, BatchSpans)
LOOK_SECONDS: Final = 1.0
STOP_SECONDS: Final = 1.0
QUIET_MS: Final = 5_000
"""How long a batch waits for its successor, which has the times of its last phases."""
CATCH_UP_MAX: Final = 5_000
"""How many entries of a log are read again when the process starts: they explain what comes."""


class SentUntil(NamedTuple):
    """The offsets of both logs of a group below which the collector has all spans.

    None: it was never sent any.
    """

    control: int | None = None
    offsets: int | None = None


@dataclass(slots=True)
class _Progress(Generic[F]):
    """A fold of a log, how far it was read, and below which offset all spans were sent."""

    fold: F
    next: int
    sent: int

    def unsent(self, spans: Iterable[PlacedSpan]) -> Iterator[TraceSpan]:
        """Yield the spans that were not sent."""
        return (span for offset, span in spans if offset >= self.sent)


class GroupTraces:
    """The spans of one group; those that were sent are left out."""

    def __init__(self, cluster_id: str, sent: SentUntil) -> None:
        self._cluster_id, self._sent = cluster_id, sent
        self._control: _Progress[EpochSpans] | None = None
        self._offsets: _Progress[BatchSpans] | None = None

    @property
    def read_until(self) -> SentUntil:
        """Below which offsets all spans were yielded."""
        control, offsets = self._sent
        if self._control is not None:
            control = self._control.next
        if self._offsets is not None:
            oldest = self._offsets.fold.oldest
            offsets = self._offsets.next if oldest is None else max(oldest, self._offsets.sent)
        return SentUntil(control, offsets)

    def read_control(self, log: LogReader) -> Iterator[TraceSpan]:
        """Yield the spans of new entries of the control log; raises `LogError`, `CodecError`."""
        if self._control is None:
            start, sent = _start_of(log, self._sent.control)
            self._control = _Progress(EpochSpans(self._cluster_id, log, start), start, sent)
        control = self._control
        for entries in log.tail(control.next):
            for entry in entries:
                spans = control.fold.apply(entry)
                control.next = entry.offset + 1
                if entry.offset >= control.sent:
                    yield from spans

    def read_offsets(self, log: LogReader, quiet_ms: int) -> Iterator[TraceSpan]:
        """Yield the spans of new entries of the offset log; raises `LogError`, `CodecError`."""
        if self._offsets is None:
            fold = BatchSpans(self._cluster_id, log.log_id)
            self._offsets = _Progress(fold, *_start_of(log, self._sent.offsets))
        offsets = self._offsets
        for entries in log.tail(offsets.next):
            for entry in entries:
                yield from offsets.unsent(offsets.fold.apply(entry))
                offsets.next = entry.offset + 1
        quiet = offsets.fold.settle(time.time_ns() // 1_000_000 - quiet_ms)
        yield from offsets.unsent(quiet)


class TraceWatch:
    """Sends the spans of all groups of a node that have their own logs."""

    def __init__(self, logs: NodeLogs, cluster_id: str, queue: SpanQueue, folder: Path) -> None:
        """`folder` is where it keeps how far it has come."""
        self._logs, self._cluster_id, self._queue = logs, cluster_id, queue
        self._file = folder / FILE
        self._sent = _read(self._file)
        """By group."""
        self._groups: dict[str, GroupTraces] = {}
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="traces", daemon=True)

    def start(self) -> None:
        """Begin to follow, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Send what is new once more, and end; a collector that is slow or away is not waited for.

        What it does not get now it gets when the node runs again.
        """
        self._is_over.set()
        if not self._queue.is_sending:
            self._thread.join(STOP_SECONDS)
        self._queue.close()

    def look(self, quiet_ms: int = QUIET_MS) -> None:
        """Read what is new in all groups, and send it; an unreadable log is tried again.

        A batch waits so long for its successor.
        """
        for group_id in self._logs.group_ids():
            try:
                self._read(group_id, quiet_ms)
            except OPENED_AGAIN:
                pass
            except (LogError, CodecError) as error:
                LOGGER.warning("no spans of group %s for now: %s", group_id, error)
        self._queue.send()
        if self._queue.is_empty:
            self._keep()

    def _run(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(LOOK_SECONDS)
            try:
                self.look(0 if is_over else QUIET_MS)
            except Exception:
                LOGGER.exception("no spans are sent for now; it is tried again")

    def _read(self, group_id: str, quiet_ms: int) -> None:
        with self._logs.reading(group_id) as group:
            control, offsets = group.readers()
        sent = self._sent.get(group_id, SentUntil())
        traces = self._groups.setdefault(group_id, GroupTraces(self._cluster_id, sent))
        try:
            self._queue.add(traces.read_control(control))
            if offsets is not None:
                self._queue.add(traces.read_offsets(offsets, quiet_ms))
        except TrimmedError:
            del self._groups[group_id]
            raise

    def _keep(self) -> None:
        """Keep how far the collector has all spans."""
        sent = self._sent | {name: each.read_until for name, each in self._groups.items()}
        if sent != self._sent:
            self._sent = sent
            with suppress(OSError):  # spans that come twice do no harm
                write_json(self._file, sent)


def _start_of(log: LogReader, sent: int | None) -> tuple[int, int]:
    """Return where to begin to read a log, and below which offset nothing is to be sent.

    Of a log that was never sent, only that of a new group is sent from its beginning.
    """
    end = log.end()
    if sent is None or sent > end:  # the latter: the log was replaced by another one
        sent = 0 if end <= CATCH_UP_MAX else end
    return max(log.low(), end - CATCH_UP_MAX), sent


def _read(file: Path) -> dict[str, SentUntil]:
    try:
        content: dict[str, list[int | None]] = json.loads(file.read_bytes())
        return {name: SentUntil(*each) for name, each in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
