"""Follows a control log from some moment on, for what is told of each thing as it happens.

That is the lines for the node's log, and how long rebalances and moves took. The log has all of it
for ever; what is counted here begins with the process that reads, as a new one starts from where it
is told to: to read a long log again at each start would take minutes.
"""

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...events.log.errors import TrimmedError
from ...events.model import NEVER_RESTARTED, AutoRestart, Resource
from ...events.records import Record, TaskStatus
from ..explain.diff import TargetChange
from ..explain.epochs import EpochReading
from ..explain.handovers import FollowedHandover
from ..explain.reader import EpochLog, EpochReader
from .lines import EventLine, EventLines

SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""The upper bounds of the counts, in seconds; another one has no bound."""
PENDING_MAX: Final = 1_000
"""How many rebalances, and moves, are waited for at once: the latest ones."""


class DurationExample(NamedTuple):
    """A duration of a bucket, and the epoch that it is of, which `explain` explains."""

    epoch: int
    took_ms: int
    counted_ms: int
    """When it was counted, in ms of the wall clock."""


@dataclass(slots=True)
class Durations:
    """A histogram of durations by `SECONDS`, with their count and sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total_ms: int = 0
    examples: dict[int, DurationExample] = field(default_factory=dict[int, DurationExample])
    """The latest duration of each bucket, by the bucket's number."""

    def add(self, took_ms: int, epoch: int) -> None:
        """Count one duration, of an epoch."""
        bound = next((n for n, each in enumerate(SECONDS) if took_ms <= each * 1000), len(SECONDS))
        self.counts[bound] += 1
        self.total_ms += took_ms
        self.examples[bound] = DurationExample(epoch, took_ms, time.time_ns() // 1_000_000)

    def copy(self) -> "Durations":
        """Return a copy, which does not change."""
        return Durations([*self.counts], self.total_ms, dict(self.examples))


@dataclass(slots=True)
class WatchCounts:
    """Counts since the watch began; `restarts` of connectors and tasks by connector."""

    rebalances: Durations = field(default_factory=Durations)
    moves: Durations = field(default_factory=Durations)
    """For how long nobody ran what went from one worker to another, at least."""
    restarts: Counter[str] = field(default_factory=Counter[str])

    def copy(self) -> "WatchCounts":
        """Return a copy, which does not change."""
        return WatchCounts(self.rebalances.copy(), self.moves.copy(), self.restarts.copy())


class GroupWatch:
    """Reads new records of a group's control log; for one thread at a time."""

    def __init__(self, log: EpochLog, start: int) -> None:
        """Begin at an offset; raises `LogError`, `CodecError`."""
        self._log = log
        self.counted = WatchCounts()
        self._restarted: dict[Resource, AutoRestart] = {}
        """What each resource's last status told of its restarts."""
        self._rebalances: deque[EpochReading] = deque(maxlen=PENDING_MAX)
        """The epochs whose end is not known yet."""
        self._moves: deque[FollowedHandover] = deque(maxlen=PENDING_MAX)
        """The moves whose end is not known yet."""
        self._begin(start)

    def _begin(self, start: int) -> None:
        self.next = start
        """The offset of the first entry that was not read yet."""
        self._told: list[EventLine] = []
        self._reader = EpochReader.of(self._log, start, on_record=self._hear)
        self._lines = EventLines(self._reader.group)
        for resource, status in self._reader.group.statuses.items():
            self._restarted[resource] = status.restarts

    def read(self) -> Sequence[EventLine]:
        """Return the log lines of new records; raises `LogError`, `CodecError`."""
        try:
            self._read()
        except TrimmedError as trimmed:
            self._begin(trimmed.low)
            self._read()
        told, self._told = self._told, []
        return told

    def _read(self) -> None:
        start = self.next
        for entries in self._log.tail(start):
            for entry in entries:
                for reading in self._reader.apply(entry):
                    self._follow(reading)
                self.next = entry.offset + 1
        if self.next > start:
            self._settle()

    def _hear(self, record: Record, change: TargetChange | None, now_ms: int) -> None:
        lines = self._lines.apply(record, change)
        self._told += [each._replace(time_ms=now_ms) for each in lines]
        if isinstance(record, TaskStatus) and record.restarts.times:
            if record.restarts != self._restarted.get(record.resource, NEVER_RESTARTED):
                self.counted.restarts[record.resource.connector] += 1
            self._restarted[record.resource] = record.restarts

    def _follow(self, reading: EpochReading) -> None:
        self._rebalances.append(reading)
        change = reading.report.target_change
        if change is not None and change.assignment_epoch == reading.report.group_epoch:
            moved = [each for each in reading.handovers if each.handover.previous_owner is not None]
            self._moves += [each for each in moved if each.handover.new_owner is not None]

    def _settle(self) -> None:
        """Count completed rebalances and moves, and drop those that will never complete."""
        open_ones = [each for each in self._rebalances if not self._is_settled(each)]
        self._rebalances = deque(open_ones, PENDING_MAX)
        moves = [each for each in self._moves if not self._is_moved(each)]
        self._moves = deque(moves, PENDING_MAX)

    def _is_settled(self, reading: EpochReading) -> bool:
        """Count a rebalance whose end is known; return whether it needs no more watching."""
        took_ms = reading.explain().total_ms
        if took_ms is not None:
            self.counted.rebalances.add(took_ms, reading.report.group_epoch)
        return took_ms is not None or reading.report.target_change is None

    def _is_moved(self, followed: FollowedHandover) -> bool:
        """Count a move whose end is known; return whether it needs no more watching."""
        each = followed.handover
        took_ms = each.downtime_ms
        took_ms = each.downtime_at_least_ms if took_ms is None else took_ms
        if took_ms is not None:
            self.counted.moves.add(took_ms, followed.assignment_epoch)
        return took_ms is not None or not followed.is_pending
