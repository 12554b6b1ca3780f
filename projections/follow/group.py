"""A group that follows its log as a whole."""

from collections.abc import Iterable
from typing import Final

from ...events.catalogue import BY_NUMBER
from ...events.entries.codec import fold, restore
from ...events.group import Group
from ...events.log.errors import TrimmedError
from ...events.log.frame import Entry
from ...events.log.reader import LogReader
from ...events.records import (
    ConnectorConfig,
    GroupMetadata,
    OffsetsAltered,
    TargetState,
    TaskConfigs,
    TaskStatus,
)

_OF_CONNECTORS: Final = frozenset(
    (ConnectorConfig, OffsetsAltered, TargetState, TaskConfigs, TaskStatus)
)
"""The records of one connector each, which their keys begin with."""


class Follower:
    """A group that is caught up with its log on demand.

    It begins with the latest value of each key, and folds what is new from there.
    """

    def __init__(self, group_id: str, log: LogReader) -> None:
        self._log = log
        self.group = restore(group_id, *log.load())
        self._changed: set[str] | None = None
        """The connectors that new entries were about; None: any of them."""

    def catch_up(self) -> Group:
        """Return the group at the present end of its log."""
        try:
            for entries in self._log.tail(self.group.end):
                fold(self.group, entries)
                self._note(entries)
        except TrimmedError:
            self.group = restore(self.group.group_id, *self._log.load())
            self._changed = None
        return self.group

    def take_changed(self) -> set[str] | None:
        """Return the connectors that entries since the last call were about; None: any of them."""
        changed, self._changed = self._changed, set()
        return changed

    def _note(self, entries: Iterable[Entry]) -> None:
        """Note the connectors that entries are about; a move may be about any of them."""
        for entry in entries:
            row = BY_NUMBER.get(entry.type)
            if row is None or row.record is GroupMetadata:
                continue  # it is not in the group, or changes no connector
            if row.record not in _OF_CONNECTORS:
                self._changed = None
            if self._changed is None:
                return
            self._changed.add(str(row.key.parse(entry.key)[0]))

    def close(self) -> None:
        """Close the log."""
        self._log.close()
