"""The share of the task that reads the WAL: the slot, and the tables with their snapshots."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from ....names import TableName
from ....tables.shares import TableShare
from ....tables.snapshots import LogSnapshot


class FollowedTable(NamedTuple):
    """A table whose changes are read; `chunks` counts its snapshot's chunks, 0: no snapshot."""

    schema: str
    table: str
    topic: str
    snapshot: str
    chunks: int
    oid: int = 0
    is_renewed: bool = False
    """Whether another table had its name before, to which offsets without an oid belong."""
    until: str = ""
    """The LSN up to which the log of other tables must be read before its snapshot; empty: none."""

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.schema, self.table)

    @property
    def begun(self) -> LogSnapshot | None:
        """Its snapshot."""
        return LogSnapshot.parse(self.snapshot) if self.snapshot else None


class LogShare(NamedTuple):
    """The slot's position at the start, and all tables of the connector."""

    begin: str
    tables: tuple[FollowedTable, ...]

    @property
    def siblings(self) -> Mapping[str, frozenset[TableName]]:
        """The tables of each topic: partitions have that of their partitioned table."""
        found: dict[str, set[TableName]] = {}
        for each in self.tables:
            found.setdefault(each.topic, set()).add(each.name)
        return {topic: frozenset(names) for topic, names in found.items()}

    @classmethod
    def of(cls, begin: str, tables: Sequence[TableShare]) -> Self:
        """Return the share with all tables of a split."""
        by_name = sorted(tables, key=lambda each: each.name)
        return cls(
            begin,
            tuple(
                FollowedTable(
                    *each.name,
                    each.topic,
                    each.snapshot,
                    each.end,
                    each.oid,
                    each.is_renewed,
                    each.until,
                )
                for each in by_name
            ),
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a share."""
        begin, tables = json.loads(text)
        return cls(begin, tuple(FollowedTable(*each) for each in tables))

    def __str__(self) -> str:
        # As in `TaskShare`.
        tables = [
            each[: None if each.until else -1 if each.is_renewed else -2] for each in self.tables
        ]
        return json.dumps((self.begin, tables), separators=(",", ":"))
