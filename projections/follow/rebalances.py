"""Counting how often epochs rose, by cause."""

from collections import Counter

from ...events.entries.codec import decode
from ...events.entries.history import RAISING, EpochCounts, read_summary
from ...events.log.errors import TrimmedError
from ...events.log.frame import Entry
from ...events.log.reader import LogReader
from ...events.log.tables import Trimmed
from ...events.model import Why


class Rebalances:
    """Counts epoch bumps by cause, from the beginning of a log on.

    Of a log that was trimmed, the summary of what is gone counts as well.
    """

    def __init__(self) -> None:
        self._counts = EpochCounts()
        self._next = 0
        """The offset of the first entry that was not counted yet."""

    @property
    def generations(self) -> Counter[Why]:
        """Those of classic members, by cause."""
        return self._counts.generations

    @property
    def epochs(self) -> Counter[Why]:
        """All others, by cause."""
        return self._counts.epochs

    @property
    def losses(self) -> Counter[tuple[str, Why]]:
        """How often each worker was lost, by its url and how, in a log of one group."""
        return self._counts.losses

    @property
    def by_cause(self) -> Counter[Why]:
        """All of them, by cause."""
        return self.generations + self.epochs

    def copy(self) -> "Rebalances":
        """Return a copy of the counts, which does not change."""
        found = Rebalances()
        counts = found._counts  # of the same class
        counts.generations, counts.epochs = self.generations.copy(), self.epochs.copy()
        counts.losses = self.losses.copy()
        return found

    def catch_up(self, log: LogReader) -> None:
        """Count new entries; raises `LogError`."""
        try:
            self._count_all(log)
        except TrimmedError:
            self._next = self.begin_after(log.trimmed())
            self._count_all(log)

    def begin_after(self, trimmed: Trimmed) -> int:
        """Start anew with the counts of a trimmed beginning; return where the log goes on."""
        summary = read_summary(trimmed.summary)
        if summary is not None:
            self._counts = summary.counts()
        return trimmed.low

    def _count_all(self, log: LogReader) -> None:
        for entries in log.tail(self._next):
            for entry in entries:
                self.count(entry)
            self._next = entries[-1].offset + 1

    def count(self, entry: Entry, group_id: str = "") -> None:
        """Apply the next entry of a group."""
        if entry.type in RAISING:
            self._counts.count(decode(entry), group_id)
