"""Following a group's log: what was written since the last look, folded or counted."""

from collections import Counter
from typing import Final

from ..events.catalogue import TYPE_OF
from ..events.entries.codec import decode
from ..events.entries.logs import fold, restore
from ..events.group import Group
from ..events.log.errors import TrimmedError
from ..events.log.reader import LogReader
from ..events.model import Why
from ..events.records import GroupMetadata

_BUMP: Final = TYPE_OF[GroupMetadata].number


class Follower:
    """A group that catches up with its log whenever it is asked for.

    It begins with the latest value of each key, and folds what is new from there.
    """

    def __init__(self, group_id: str, log: LogReader) -> None:
        self._log = log
        self.group = restore(group_id, *log.load())

    def catch_up(self) -> Group:
        """Return the group as far as its log goes now."""
        try:
            for entries in self._log.tail(self.group.end):
                fold(self.group, entries)
        except TrimmedError:
            self.group = restore(self.group.group_id, *self._log.load())
        return self.group

    def close(self) -> None:
        """Let go of the log."""
        self._log.close()


class Rebalances:
    """Counts how often a group's epoch rose, by cause, from the beginning of the log on.

    A control log keeps its history for ever by default; of one that was trimmed, what is left
    is counted.
    """

    def __init__(self) -> None:
        self.by_cause: Counter[Why] = Counter()
        self._next = 0
        """The offset of the first entry that was not counted yet."""

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
