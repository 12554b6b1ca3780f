"""Trimming of the history that a control log need not keep, slice by slice (LOG.md §10).

What a log keeps is limited by time, by epochs and by bytes; what exceeds any one limit is trimmed.

* Time and epochs cut where an epoch rises, so that the history goes on with a whole epoch. The
  last ten epochs stay however old they are: they explain the present state.
* Bytes cut anywhere: a log may fill up within one epoch, by statuses of a task that fails again
  and again. They are a bound for the disk.

The owner of a log calls `step` between requests. Each call reads or trims one slice, which takes
milliseconds, and says whether there is more to do. The place that was read last is kept, so that a
call that finds nothing new costs a lookup. A compaction that somebody asks for is the same work
with an end of its own, and may keep less than the settings say.
"""

from typing import Final

from ..catalogue import entry_key
from ..log.frame import Entry
from ..log.reader import ReadableLog
from ..log.writer import GroupLog
from ..records import ClassicGroup, GroupMetadata
from .history import decode_rise, epoch_of, summarizer
from .retention import Retention

SLICE: Final = 500
"""How many entries are read, or trimmed, at once."""
EPOCHS_KEPT: Final = 10
"""The last epochs that stay in the log however old they are."""


class CutFinder:
    """Finds the offset before which a log exceeds its retention."""

    def __init__(self, log: ReadableLog, retention: Retention, *, is_shared: bool = False) -> None:
        """`is_shared`: many groups share the log, whose epochs do not count."""
        self._log, self._retention, self._is_shared = log, retention, is_shared
        self._next = 0
        """The offset of the first entry that was not passed yet."""
        self.cut = 0
        """What lies before it is to be trimmed."""

    def read(self, now_ms: int) -> bool:
        """Read one slice, and move the cut; return whether there is more to read now.

        Raises `LogError`.
        """
        low = self._log.low()
        self._next = max(self._next, low)
        self.cut = max(self.cut, self._cut_of_bytes(low))
        if not (self._retention.ms or self._retention.epochs):
            return False
        entries, end = self._log.read(self._next, SLICE)
        epoch = 0 if self._is_shared else latest_epoch(self._log)
        for entry in entries:
            if not self._pass(entry, epoch, now_ms):
                return False
            self._next = entry.offset + 1
        return self._next < end

    def _cut_of_bytes(self, low: int) -> int:
        most = self._retention.bytes
        if not most or (size := self._log.entry_bytes()) <= most:
            return 0
        end = self._log.read(low, 0).end
        return min(end, low + -(-(end - low) * (size - most) // size))

    def _pass(self, entry: Entry, latest: int, now_ms: int) -> bool:
        """Move the cut by one entry; return False if it, and all behind it, is to stay."""
        retention = self._retention
        is_old = bool(retention.ms) and entry.timestamp_ms < now_ms - retention.ms
        if self._is_shared:
            self.cut = max(self.cut, entry.offset + 1) if is_old else self.cut
            return is_old
        epoch = epoch_of(decode_rise(entry))
        if epoch is None:
            return True
        # An epoch beyond the latest one is of an earlier life of the group.
        kept = latest - epoch + 1 if epoch <= latest else EPOCHS_KEPT + retention.epochs
        is_beyond = 0 < retention.epochs <= kept
        if not is_beyond and not (is_old and kept >= EPOCHS_KEPT):
            return False
        self.cut = max(self.cut, self._log.commit_base(entry.offset))
        return True


class Compactor:
    """Trims the history of a control log that exceeds its retention; its owner calls it."""

    def __init__(self, log: GroupLog, retention: Retention, *, is_shared: bool = False) -> None:
        self._log, self._is_shared = log, is_shared
        self._finder = CutFinder(log, retention, is_shared=is_shared)
        self._is_idle = not retention.is_limited

    def step(self, now_ms: int) -> bool:
        """Read or trim one slice; return whether there is more to do now.

        Raises `LogError`, as `GroupLog.trim`.
        """
        if self._is_idle:
            return False
        low, cut = self._log.low(), self._finder.cut
        if low < cut:
            self._log.trim(cut, SLICE, summarizer(now_ms, is_shared=self._is_shared))
            return True
        return self._finder.read(now_ms) or self._finder.cut > low


class RequestedCompaction:
    """A compaction that somebody has asked for, from its begin to its end."""

    def __init__(self, log: GroupLog, retention: Retention) -> None:
        self._log, self._low = log, log.low()
        self._compactor = Compactor(log, retention)
        self.is_running = True
        self.trimmed = 0
        """How many entries have left the log since it began."""
        self.why = ""
        """Why it ended before all was done; empty if it did not."""

    def step(self, now_ms: int) -> bool:
        """Do one slice, and return whether it is still running; raises `LogError`."""
        if self._log.space.is_low:
            self.why = self._log.space.why
        self.is_running = not self.why and self._compactor.step(now_ms)
        self.trimmed = self._log.low() - self._low
        return self.is_running


def latest_epoch(log: ReadableLog) -> int:
    """Return the epoch of the group, 0 before its first; raises `LogError`."""
    found = (log.get(*entry_key(kind, ())) for kind in (GroupMetadata, ClassicGroup))
    return max((epoch_of(decode_rise(entry)) or 0 for entry in found if entry), default=0)
