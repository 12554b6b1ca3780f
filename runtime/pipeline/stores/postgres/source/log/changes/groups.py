"""Collects the changes of a window in groups, each of which becomes one batch.

Changes with the same columns are in one group in the order of the log, whichever their tables are.
So a row that an UPDATE moves to another partition (a delete and a create there) is never created
before it is deleted, and the same holds for tables whose rows one target collects.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from ......spi.source import Limit
from .pgoutput import Change, Relation
from .shares import FollowedTable


class FollowedChange(NamedTuple):
    """A change of a table that is followed."""

    table: FollowedTable
    change: Change


Group = tuple[FollowedChange, ...]
"""Changes with the same columns, in order."""


class ChangeGroups:
    """Collects changes up to a limit; changes with the same `columns_of` go together."""

    def __init__(self, limit: Limit, columns_of: Callable[[Relation], Hashable]) -> None:
        self._limit = limit
        self._columns_of = columns_of
        self._known: dict[int, Hashable] = {}
        """The columns of each relation so far, by its `id`: a hash of it would cost too much."""
        self._of: dict[int, Hashable] = {}
        """The columns of each table so far, by its oid."""
        self._found: dict[Hashable, list[FollowedChange]] = {}
        self._rows, self._bytes = 0, 0

    def add(self, table: FollowedTable, change: Change) -> bool:
        """Add a change; False if its columns differ from earlier changes of its table."""
        columns = self._columns(change.relation)
        if self._of.setdefault(change.relation.oid, columns) != columns:
            return False
        self._found.setdefault(columns, []).append(FollowedChange(table, change))
        self._rows += 1
        self._bytes += change.size
        return True

    def _columns(self, relation: Relation) -> Hashable:
        if id(relation) not in self._known:
            self._known[id(relation)] = self._columns_of(relation)
        return self._known[id(relation)]

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self._rows >= self._limit.rows or self._bytes >= self._limit.bytes

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in the order of their first changes."""
        return tuple(tuple(group) for group in self._found.values())
