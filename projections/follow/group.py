"""A group that follows its log as a whole."""

from ...events.entries.codec import fold, restore
from ...events.group import Group
from ...events.log.errors import TrimmedError
from ...events.log.reader import LogReader


class Follower:
    """A group that is caught up with its log on demand.

    It begins with the latest value of each key, and folds what is new from there.
    """

    def __init__(self, group_id: str, log: LogReader) -> None:
        self._log = log
        self.group = restore(group_id, *log.load())

    def catch_up(self) -> Group:
        """Return the group at the present end of its log."""
        try:
            for entries in self._log.tail(self.group.end):
                fold(self.group, entries)
        except TrimmedError:
            self.group = restore(self.group.group_id, *self._log.load())
        return self.group

    def close(self) -> None:
        """Close the log."""
        self._log.close()
