"""The epochs of a group for who asks again and again: what was told once is kept.

It says what `history_of` and `explain` say of the same log, which read it from the beginning
each time: the fold goes on where it ended, and reads what is new.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ...events.log.errors import TrimmedError
from ...events.log.reader import LogReader
from ..documents import Document
from .epochs import EpochReport, History, line_of
from .explanation import Explaining, Explanation, find_chapter, not_told
from .reader import EpochReader, group_before, written_since

LINES_MAX: Final = 10_000
"""How many of the last epochs a line is kept of."""
NAMED_MAX: Final = 200_000
"""How many resources the reports that are kept in full may name; the last one is always kept."""


@dataclass(slots=True)
class _Told:
    """What is kept of the reports that nothing can be added to."""

    low: int
    """Where the log began when it was read: trimmed further, it tells less."""
    reader: EpochReader
    next: int
    first_epoch: int | None = None
    lines: deque[Document] = field(default_factory=lambda: deque(maxlen=LINES_MAX))
    reports: dict[int, EpochReport] = field(default_factory=dict[int, EpochReport])
    named: int = 0
    older: EpochReport | None = None
    """The one that was asked for last after it had been let go of."""
    explaining: Explaining | None = None

    def take(self, report: EpochReport) -> None:
        """Keep a report, and let go of the oldest ones that are too much."""
        if self.first_epoch is None:
            self.first_epoch = report.group_epoch
        self.lines.append(line_of(report))
        self.reports[report.group_epoch] = report
        self.named += _named(report)
        while self.named > NAMED_MAX and len(self.reports) > 1:
            self.named -= _named(self.reports.pop(next(iter(self.reports))))


class EpochCache:
    """A control log's epochs; for one thread at a time."""

    def __init__(self, log: LogReader) -> None:
        self._log = log
        self._told: _Told | None = None

    def history(self, limit: int) -> History:
        """Return the last epochs, at most `LINES_MAX`; raises `LogError`, `CodecError`."""
        told = self._caught_up()
        rest = told.reader.rest()
        lines = [*told.lines, *map(line_of, rest)]
        epochs = [*told.reports, *(each.group_epoch for each in rest)]
        first = epochs[0] if told.first_epoch is None and epochs else told.first_epoch
        last = epochs[-1] if epochs else None
        return History(self._log.log_id, first, last, told.low > 0, tuple(lines[-limit:]))

    def explain(self, group_epoch: int | None) -> Explanation:
        """Explain an epoch, None for the latest.

        Raises `NotToldError`, `LogError`, `CodecError`.
        """
        told = self._caught_up()
        rest = {each.group_epoch: each for each in told.reader.rest()}
        kept = {**told.reports, **rest}
        if not kept:
            raise not_told(self._log, group_epoch, ())
        first = min(kept) if told.first_epoch is None else told.first_epoch
        last = max(kept)
        epoch = last if group_epoch is None else group_epoch
        if epoch in kept:
            return self._explained(told, kept[epoch])
        if not first <= epoch <= last:
            raise not_told(self._log, epoch, (first, last))
        if told.older is None or told.older.group_epoch != epoch:
            told.older = find_chapter(self._log, epoch)
        return self._explained(told, told.older)

    def _explained(self, told: _Told, report: EpochReport) -> Explanation:
        if told.explaining is None or not told.explaining.is_of(report):
            told.explaining = Explaining(report)
        told.explaining.catch_up(self._log)
        return told.explaining.explained(report)

    def _caught_up(self) -> _Told:
        if self._told is None or self._told.low != self._log.low():
            self._told = self._begun()
        try:
            self._read(self._told)
        except TrimmedError:
            self._told = self._begun()
            self._read(self._told)
        return self._told

    def _begun(self) -> _Told:
        low = self._log.low()
        return _Told(low, EpochReader.after(group_before(self._log, low)), low)

    def _read(self, told: _Told) -> None:
        for entry in written_since(self._log, told.next):
            for report in told.reader.take(entry):
                told.take(report)
            told.next = entry.offset + 1


def _named(report: EpochReport) -> int:
    """Return how many resources a report names."""
    change = report.target_change
    if change is None:
        return 1
    moves = len(change.moved) + len(change.returned) + len(change.placed)
    return 1 + moves + change.kept_count + len(change.parked) + len(change.unplaceable)
