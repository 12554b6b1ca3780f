"""The story of a group, read from its control log alone: what every epoch led to, and why.

A control log keeps its history for ever by default, so that this works for epochs of long
ago. Of a log that was trimmed, the story begins behind the first target that is left: what
that one changed cannot be known any more.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Self

from ...events.entries.codec import TYPES, decode
from ...events.entries.logs import restore
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.frame import Entry
from ...events.log.reader import LogReader
from ...events.model import GroupState
from ...events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TaskStatus,
)
from ..documents import Document
from .diff import Homes, TargetChange
from .epochs import Attempt, EpochReport, History, line_of

STATUS: Final = TYPES[TaskStatus][0]
"""Most entries of a log are statuses, of which the story tells nothing."""


def story_of(log: LogReader) -> Iterator[EpochReport]:
    """Yield the reports of a log, as far back as it goes; raises `LogError`, `CodecError`."""
    low = log.low()
    yield from story(written_since(log, low), group_before(log, low))


def history_of(log: LogReader, limit: int | None = None) -> History:
    """Return the last `limit` epochs of a log, None for all; raises `LogError`, `CodecError`."""
    lines = deque[Document](maxlen=limit)
    first = last = None
    for report in story_of(log):
        last = report.group_epoch
        first = last if first is None else first
        lines.append(line_of(report))
    return History(log.log_id, first, last, log.low() > 0, tuple(lines))


def group_before(log: LogReader, low: int) -> Group | None:
    """Return what a log that was trimmed up to `low` still knows of the group before.

    None where nothing was before.
    """
    return restore(log.log_id, _before(log, low), low) if low else None


def written(log: LogReader) -> Iterator[Entry]:
    """Yield all entries that are left of a log, in order; raises `LogError`.

    Of those that were trimmed, the latest of each key is left.
    """
    low = log.low()
    if low:
        yield from _before(log, low)
    yield from written_since(log, low)


def written_since(log: LogReader, start: int) -> Iterator[Entry]:
    """Return the entries from an offset on; raises `LogError`, `TrimmedError` among them."""
    return (entry for batch in log.tail(start) for entry in batch)


def _before(log: LogReader, low: int) -> Iterator[Entry]:
    return (entry for entry in log.load().entries if entry.offset < low)


def story(entries: Iterable[Entry], before: Group | None = None) -> Iterator[EpochReport]:
    """Yield a report for each group epoch in order, as soon as no more can come to it.

    `before` is what is still known of the group before the first of the entries, None where
    nothing was before; it is changed. Chapters that nothing answered yet come last. Raises
    `CodecError`.
    """
    reader = EpochReader.after(before)
    for entry in entries:
        yield from reader.take(entry)
    yield from reader.rest()


@dataclass(slots=True)
class EpochReader:
    """Folds the log entry by entry, and keeps the reports that are not at their end."""

    group: Group
    knows_homes: bool
    homes: Homes = field(init=False)
    open: list[EpochReport] = field(default_factory=list[EpochReport])
    """Not answered, in order."""
    told: list[EpochReport] = field(default_factory=list[EpochReport])
    """Answered by `change`, which the group has not settled on yet."""
    done: list[EpochReport] = field(default_factory=list[EpochReport])
    change: TargetChange | None = None
    aimed_at: int = -1
    """The offset of the record that `change` was read from."""

    def __post_init__(self) -> None:
        self.homes = Homes(self.group)

    @classmethod
    def after(cls, before: Group | None) -> Self:
        """Return who tells what comes after `before`, as `story` does."""
        return cls(before or Group(""), before is None or before.assignment_epoch > 0)

    def take(self, entry: Entry) -> list[EpochReport]:
        """Take the next entry of the log; return the reports that nothing can be added to now.

        Raises `CodecError`, and is then as it was.
        """
        record = None if entry.type == STATUS else decode(entry)
        if record is not None:
            self._hear(record, entry)
        done, self.done = self.done, []
        return done

    def _hear(self, record: Record, entry: Entry) -> None:
        group = self.group
        evolve(group, record, entry.offset)
        if isinstance(record, GroupMetadata):
            self.open.append(EpochReport(record))
        elif isinstance(record, TargetAssignment):
            self._aim(group.target, entry)
        elif isinstance(record, ScheduledRebalance) and entry.offset == self.aimed_at + 1:
            self._park(record)
        elif isinstance(record, MemberMetadata) and record.succession is not None:
            self.homes.last.update(dict.fromkeys(group.share_of(record.member_id), record))
        elif isinstance(record, CurrentAssignment):
            self._settle(entry)

    def rest(self) -> list[EpochReport]:
        """Return what is not at its end yet, as it is now."""
        return [*self._with_change(), *self.open]

    def _aim(self, record: TargetAssignment, entry: Entry) -> None:
        time_ms = record.time_ms or entry.timestamp_ms
        if record.error:
            attempt = Attempt(record.assignment_epoch, time_ms, record.error)
            self.open = [self._tried(report, attempt) for report in self.open]
            return
        self.done += self._with_change()
        self.told = [each for each in self.open if each.group_epoch <= record.assignment_epoch]
        self.open = self.open[len(self.told) :]
        self.change = None
        if self.knows_homes:
            bumps = [report.bump for report in self.told]
            self.change = self.homes.compare(self.group, record, time_ms, bumps)
        else:
            self.told, self.knows_homes = [], True
        self.aimed_at = entry.offset
        self.homes.move(self.group)

    def _tried(self, report: EpochReport, attempt: Attempt) -> EpochReport:
        if report.group_epoch > attempt.assignment_epoch:
            return report
        return replace(report, attempts=(*report.attempts, attempt))

    def _park(self, record: ScheduledRebalance) -> None:
        """Take what is left for later from the record that follows the target in its batch."""
        if self.change is not None:
            next_moves_at_ms = record.again_at_ms or None
            self.change = replace(
                self.change, parked=record.parked, next_moves_at_ms=next_moves_at_ms
            )

    def _settle(self, entry: Entry) -> None:
        group, change = self.group, self.change
        if change is None or group.state is not GroupState.STABLE:
            return
        if group.assignment_epoch == change.assignment_epoch:
            self.change = replace(change, settled_ms=entry.timestamp_ms)
            self.done += self._with_change()
            self.told, self.change = [], None

    def _with_change(self) -> list[EpochReport]:
        return [replace(report, target_change=self.change) for report in self.told]
