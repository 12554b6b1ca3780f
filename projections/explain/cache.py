"""Caches the epochs of a log, which are read once.

The CLI on a data folder and the REST interface both read from here. The fold goes on where it
ended, and reads what is new.
"""

import math
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Final, Protocol

from ...events.entries.history import read_summary
from ...events.log.errors import TrimmedError
from ...events.log.tables import Trimmed
from .causes.owners import OwnerTerm
from .epochs import EpochReading, EpochReport, Explanation
from .generations import ReadShares, read_no_shares
from .handovers import Handover
from .limits import Sees, limit_epoch
from .lists import CompactedHistory, EpochLine, EpochList, MoveList, line_of, moves_of
from .reader import FIRST_EPOCH, EpochLog, EpochReader

LINES_MAX: Final = 10_000
"""How many of the last epochs a line is kept of."""
NAMED_MAX: Final = 200_000
"""How many resources the epochs that are kept in full may name; the last one is always kept."""


class SummedUpLog(EpochLog, Protocol):
    """A log with a summary of its trimmed beginning."""

    def trimmed(self) -> Trimmed:
        """Return where the log begins, and the summary of what was trimmed."""
        ...


class NotToldError(LookupError):
    """The log has no such epoch; the text names those that it has."""


@dataclass(slots=True)
class _Cached:
    """The cached readings of a log."""

    low: int
    """Where the log began when it was read; if it is trimmed further, it is read again."""
    reader: EpochReader
    next: int
    """The offset of the first entry that was not read yet."""
    named_max: int
    """How many resources the readings may name together."""
    compacted: CompactedHistory | None = None
    """What is known of the history before it; None where there is no summary."""
    lives: int = 0
    """How often the group's epochs had begun at 1 again by then."""
    first_epoch: int | None = None
    lines: deque[EpochLine] = field(default_factory=lambda: deque(maxlen=LINES_MAX))
    """The history's lines of the epochs that the reader is done with."""
    readings: dict[int, EpochReading] = field(default_factory=dict[int, EpochReading])
    """The latest epochs that the reader is done with, by epoch."""
    named: int = 0
    """How many resources the readings name."""

    def is_trimmed(self, first_epoch: int | None) -> bool:
        """Return whether epochs were trimmed from the beginning of the log."""
        if not self.low:
            return False
        return self.reader.is_known_before if first_epoch is None else first_epoch > FIRST_EPOCH

    def read(self, log: EpochLog) -> None:
        """Read new entries; raises `LogError`, `CodecError`."""
        for entries in log.tail(self.next):
            for entry in entries:
                for reading in self.reader.apply(entry):
                    self._keep(reading)
                if self.lives != self.reader.lives:
                    self._begin_anew()
                self.next = entry.offset + 1

    def _begin_anew(self) -> None:
        """Drop the epochs of an earlier life, which have the same numbers."""
        self.lives, self.first_epoch, self.named = self.reader.lives, None, 0
        self.lines.clear()
        self.readings.clear()

    def _keep(self, reading: EpochReading) -> None:
        """Keep an epoch, and drop the oldest ones beyond the limit."""
        report = reading.report
        if self.first_epoch is None:
            self.first_epoch = report.group_epoch
        self.lines.append(line_of(reading))
        self.readings[report.group_epoch] = reading
        self.named += _count_named(report)
        while self.named > self.named_max and len(self.readings) > 1:
            oldest = self.readings.pop(next(iter(self.readings)))
            self.named -= _count_named(oldest.report)


class EpochCache:
    """A control log's epochs; for one thread at a time."""

    def __init__(
        self,
        log: SummedUpLog,
        read_shares: ReadShares = read_no_shares,
        named_max: int = NAMED_MAX,
    ) -> None:
        """`read_shares` reads what leaders of classic members assign.

        `named_max` is how many resources the epochs may name that are kept in full.
        """
        self._log = log
        self._read_shares, self._named_max = read_shares, named_max
        self._cached: _Cached | None = None
        self._older: tuple[int, EpochReading] | None = None
        """The last dropped epoch that was read again, and the log's end at that time."""

    @property
    def size(self) -> int:
        """How much is kept: lines of epochs, resources that they name, handovers and clients."""
        cached = self._cached
        if cached is None:
            return 0
        reader = cached.reader
        return len(cached.lines) + cached.named + len(reader.followed) + len(reader.clients)

    def history(self, limit: int = LINES_MAX) -> EpochList:
        """Return the last epochs, at most `LINES_MAX`; raises `LogError`, `CodecError`."""
        return self._list(self._caught_up(), limit)

    def limited_history(self, sees: Sees, limit: int = LINES_MAX) -> EpochList:
        """Return those of the epochs kept in full that are about what a caller sees.

        Raises `LogError`, `CodecError`.
        """
        cached = self._caught_up()
        readings = [*cached.readings.values(), *cached.reader.unfinished()]
        known = cache(sees)  # an epoch may name each of a connector's tasks
        told = (limit_epoch(each.explain(), known) for each in reversed(readings))
        lines = [*islice((line_of(each) for each in told if each is not None), limit)]
        return replace(self._list(cached, limit), epochs=lines[::-1], clients={}, compacted=None)

    def _list(self, cached: _Cached, limit: int) -> EpochList:
        unfinished = cached.reader.unfinished()
        lines = [*cached.lines, *map(line_of, unfinished)]
        epochs = [*cached.readings, *map(_epoch_of, unfinished)]
        first = epochs[0] if cached.first_epoch is None and epochs else cached.first_epoch
        last = epochs[-1] if epochs else None
        lines, all_clients = lines[-limit:], cached.reader.clients
        subjects = {each.subject.partition(" and ")[0] for each in lines}
        clients = {each: all_clients[each] for each in sorted(subjects) if each in all_clients}
        is_trimmed, compacted = cached.is_trimmed(first), cached.compacted
        told = self._log.log_id, first, last, is_trimmed, lines, clients, compacted
        return EpochList(*told, list(cached.reader.owners))

    def moves(self, name: str, limit: int = LINES_MAX) -> MoveList:
        """Return how a resource moved last, as far back as epochs are kept in full.

        Raises `NotToldError`, `LogError`, `CodecError`.
        """
        cached = self._caught_up()
        kept = [*cached.readings.values(), *cached.reader.unfinished()]
        if not kept:
            raise _not_told(cached, self._log.log_id)
        moves = [*moves_of(kept, name)]
        if not moves:
            first, last = _epoch_of(kept[0]), _epoch_of(kept[-1])
            raise NotToldError(
                f"nothing of the name {name} changed hands in the epochs {first} to {last}"
                f" of group {self._log.log_id}"
            )
        return MoveList(moves[-limit:], cached.reader.clients)

    def explain(self, group_epoch: int | None = None) -> Explanation:
        """Explain an epoch, None for the latest.

        Raises `NotToldError`, `LogError`, `CodecError`.
        """
        cached = self._caught_up()
        kept = cached.readings | {
            each.report.group_epoch: each for each in cached.reader.unfinished()
        }
        if not kept:
            raise _not_told(cached, self._log.log_id)
        first = min(kept) if cached.first_epoch is None else cached.first_epoch
        last = max(kept)
        epoch = last if group_epoch is None else group_epoch
        if not first <= epoch <= last:
            raise _not_told(cached, self._log.log_id, epoch, (first, last))
        reading = kept[epoch] if epoch in kept else self._read_again(cached, epoch)
        return replace(reading.explain(), owners=_owners_around(cached, epoch))

    def handovers(self) -> list[Handover]:
        """Return the latest handovers, as far as each is known; raises `LogError`, `CodecError`."""
        return list(self._caught_up().reader.handovers())

    def _read_again(self, cached: _Cached, epoch: int) -> EpochReading:
        """Return a dropped epoch, read again from the log's beginning."""
        if (
            self._older is None
            or self._older[0] != cached.next
            or _epoch_of(self._older[1]) != epoch
        ):
            reader, found = self._reader(cached.low), list[EpochReading]()
            for entries in self._log.tail(cached.low):
                for entry in entries:
                    found += [each for each in reader.apply(entry) if _epoch_of(each) == epoch]
            self._older = cached.next, found[-1]
        return self._older[1]

    def _caught_up(self) -> _Cached:
        if self._cached is None or self._cached.low != self._log.low():
            self._cached = self._begin()
        try:
            self._cached.read(self._log)
        except TrimmedError:
            self._cached = self._begin()
            self._cached.read(self._log)
        return self._cached

    def _begin(self) -> _Cached:
        low, packed = self._log.trimmed()
        summary = read_summary(packed)
        compacted = None if summary is None else CompactedHistory.of(summary)
        return _Cached(low, self._reader(low), low, self._named_max, compacted)

    def _reader(self, low: int) -> EpochReader:
        return EpochReader.of(self._log, low, self._read_shares)


def _epoch_of(reading: EpochReading) -> int:
    return reading.report.group_epoch


def _owners_around(cached: _Cached, epoch: int) -> tuple[OwnerTerm, ...]:
    """Return the nodes that took the group from the rise of the epoch before until the next one.

    Of an epoch so long ago that its line is not kept there are none.
    """
    if not (owners := cached.reader.owners):
        return ()
    lines = [*cached.lines, *map(line_of, cached.reader.unfinished())]
    rises = {each.group_epoch: each.time_ms for each in lines}
    if epoch not in rises:
        return ()
    begin, end = rises.get(epoch - 1, rises[epoch]), rises.get(epoch + 1, math.inf)
    return tuple(each for each in owners if begin <= each.since_ms < end)


def _not_told(
    cached: _Cached, group_id: str, epoch: int = 0, bounds: tuple[int, int] | None = None
) -> NotToldError:
    """Return the error of an epoch that the log does not have; it may have none."""
    is_trimmed = cached.is_trimmed(bounds[0] if bounds else None)
    why = "; what was before is trimmed from it" if is_trimmed else ""
    if cached.compacted is not None:
        why = f"; {cached.compacted}"
    if bounds is None:
        return NotToldError(f"the log of group {group_id} tells of no epoch{why}")
    return NotToldError(
        f"there is no epoch {epoch} in the log of group {group_id}: it tells of the"
        f" epochs {bounds[0]} to {bounds[1]}{why}"
    )


def _count_named(report: EpochReport) -> int:
    """Return how many resources a report names."""
    change, generation = report.target_change, report.generation
    if change is None:
        return 1 + len(generation.members if generation else ())
    moves = len(change.moved) + len(change.returned) + len(change.placed)
    return 1 + moves + change.kept_count + len(change.parked) + len(change.unplaceable)
