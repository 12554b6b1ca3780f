"""The epochs of a group for who asks again and again: what was told once is kept.

It says what `history_of` and `explain` say of the same log, which read it from the beginning
each time: the fold goes on where it ended, and reads what is new.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ...events.log.errors import TrimmedError
from ...events.log.reader import LogReader
from .epochs import Chapter, Document
from .explanation import Explaining, Explanation, find_chapter, not_told
from .history import History, line_of
from .reader import Teller, group_before, written_since

LINES_MAX: Final = 10_000
"""How many of the last epochs a line is kept of."""
NAMED_MAX: Final = 200_000
"""How many resources the chapters that are kept in full may name; the last one is always kept."""


@dataclass(slots=True)
class _Told:
    """What is kept of the chapters that nothing can be added to."""

    low: int
    """Where the log began when it was read: trimmed further, it tells less."""
    teller: Teller
    next: int
    first_epoch: int | None = None
    lines: deque[Document] = field(default_factory=lambda: deque(maxlen=LINES_MAX))
    chapters: dict[int, Chapter] = field(default_factory=dict[int, Chapter])
    named: int = 0
    older: Chapter | None = None
    """The one that was asked for last after it had been let go of."""
    explaining: Explaining | None = None

    def take(self, chapter: Chapter) -> None:
        """Keep a chapter, and let go of the oldest ones that are too much."""
        if self.first_epoch is None:
            self.first_epoch = chapter.group_epoch
        self.lines.append(line_of(chapter))
        self.chapters[chapter.group_epoch] = chapter
        self.named += _named(chapter)
        while self.named > NAMED_MAX and len(self.chapters) > 1:
            self.named -= _named(self.chapters.pop(next(iter(self.chapters))))


class Chronicle:
    """A control log's epochs; for one thread at a time."""

    def __init__(self, log: LogReader) -> None:
        self._log = log
        self._told: _Told | None = None

    def history(self, limit: int) -> History:
        """Return the last epochs, at most `LINES_MAX`; raises `LogError`, `CodecError`."""
        told = self._caught_up()
        rest = told.teller.rest()
        lines = [*told.lines, *map(line_of, rest)]
        epochs = [*told.chapters, *(each.group_epoch for each in rest)]
        first = epochs[0] if told.first_epoch is None and epochs else told.first_epoch
        last = epochs[-1] if epochs else None
        return History(self._log.log_id, first, last, told.low > 0, tuple(lines[-limit:]))

    def explain(self, group_epoch: int | None) -> Explanation:
        """Explain an epoch, None for the latest.

        Raises `NotToldError`, `LogError`, `CodecError`.
        """
        told = self._caught_up()
        rest = {each.group_epoch: each for each in told.teller.rest()}
        kept = {**told.chapters, **rest}
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

    def _explained(self, told: _Told, chapter: Chapter) -> Explanation:
        if told.explaining is None or not told.explaining.is_of(chapter):
            told.explaining = Explaining(chapter)
        told.explaining.catch_up(self._log)
        return told.explaining.explained(chapter)

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
        return _Told(low, Teller.after(group_before(self._log, low)), low)

    def _read(self, told: _Told) -> None:
        for entry in written_since(self._log, told.next):
            for chapter in told.teller.take(entry):
                told.take(chapter)
            told.next = entry.offset + 1


def _named(chapter: Chapter) -> int:
    """Return how many resources a chapter names."""
    answer = chapter.answer
    if answer is None:
        return 1
    moves = len(answer.moved) + len(answer.returned) + len(answer.placed)
    return 1 + moves + answer.kept_count + len(answer.parked) + len(answer.unplaceable)
