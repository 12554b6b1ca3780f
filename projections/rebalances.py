"""How often a group's epoch rose, and why: counted in the log, which no restart resets."""

from collections import Counter

from ..events.catalogue import TYPE_OF
from ..events.entries.codec import decode
from ..events.log.errors import TrimmedError
from ..events.log.reader import LogReader
from ..events.model import Why
from ..events.records import GroupMetadata

_BUMP = TYPE_OF[GroupMetadata].number


class Rebalances:
    """The bumps of a group epoch by cause, from the beginning of the log on.

    A control log keeps its history for ever by default; of one that was trimmed, what is left
    is counted.
    """

    def __init__(self) -> None:
        self.by_cause: Counter[Why] = Counter()
        self._next = 0

    def catch_up(self, log: LogReader) -> None:
        """Count what was written since the last look; raises `LogError`."""
        try:
            self._count(log)
        except TrimmedError as trimmed:
            self._next = trimmed.low
            self._count(log)

    def _count(self, log: LogReader) -> None:
        for entries in log.tail(self._next):
            for entry in entries:
                if entry.type == _BUMP and isinstance(record := decode(entry), GroupMetadata):
                    self.by_cause[record.cause.why] += 1
            self._next = entries[-1].offset + 1
