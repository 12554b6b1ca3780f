"""Counting how often epochs rose, by cause."""

from collections import Counter
from typing import Final

from ...events.catalogue import TYPE_OF
from ...events.entries.codec import decode
from ...events.log.errors import TrimmedError
from ...events.log.frame import Entry
from ...events.log.reader import LogReader
from ...events.model import Why
from ...events.records import ClassicGroup, GroupMetadata, Tombstone

_RAISING: Final = {TYPE_OF[kind].number for kind in (GroupMetadata, ClassicGroup)}
"""The numbers of the records that raise a group's epoch."""


_LOSSES: Final = {Why.PROCESS_ENDED, Why.SESSION_EXPIRED}


class Rebalances:
    """Counts epoch bumps by cause, from the beginning of a log on.

    A control log keeps its history for ever by default; of one that was trimmed, what is left
    is counted. A generation of classic members is an epoch, told again once it is assigned.
    """

    def __init__(self) -> None:
        self.generations: Counter[Why] = Counter()
        """Those of classic members, by cause."""
        self.epochs: Counter[Why] = Counter()
        """All others, by cause."""
        self.losses: Counter[tuple[str, Why]] = Counter()
        """How often each worker was lost, by its url and how, in a log of one group."""
        self._last: dict[str, int] = {}
        """The last generation that was counted, by group: a log may be that of many."""
        self._next = 0
        """The offset of the first entry that was not counted yet."""

    @property
    def by_cause(self) -> Counter[Why]:
        """All of them, by cause."""
        return self.generations + self.epochs

    def copy(self) -> "Rebalances":
        """Return a copy of the counts, which does not change."""
        found = Rebalances()
        found.generations, found.epochs = self.generations.copy(), self.epochs.copy()
        found.losses = self.losses.copy()
        return found

    def catch_up(self, log: LogReader) -> None:
        """Count new entries; raises `LogError`."""
        try:
            self._count_all(log)
        except TrimmedError as trimmed:
            self._next = trimmed.low
            self._count_all(log)

    def _count_all(self, log: LogReader) -> None:
        for entries in log.tail(self._next):
            for entry in entries:
                self.count(entry)
            self._next = entries[-1].offset + 1

    def count(self, entry: Entry, group_id: str = "") -> None:
        """Apply the next entry of a group."""
        record = decode(entry) if entry.type in _RAISING else None
        if isinstance(record, Tombstone) and record.kind is ClassicGroup:
            self._last.pop(group_id, None)  # a group that is deleted may count from 1 again
        elif isinstance(record, GroupMetadata):
            self.epochs[record.cause.why] += 1
            if not group_id and record.cause.why in _LOSSES:
                self.losses[record.cause.subject, record.cause.why] += 1
        elif isinstance(record, ClassicGroup) and record.generation > self._last.get(group_id, 0):
            self._last[group_id] = record.generation
            self.generations[record.cause.why] += 1
