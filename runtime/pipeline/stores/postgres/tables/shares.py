"""The share of each task: tables, and page ranges of large tables.

One task reads a small table. A large one is cut into runs of chunks, so that all tasks take part in
its snapshot; one of them reads the rows after the snapshot.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Self

from ..names import TableName

CHUNK_PAGES: Final = 1024
"""The pages of a chunk (8 MB): one source partition of a snapshot."""


class TableShare(NamedTuple):
    """A task's share of a table."""

    schema: str
    table: str
    topic: str
    file: int
    """The table's relfilenode when its snapshot was planned."""
    horizon: int
    """The snapshot has the rows that committed before this transaction."""
    cursor: int | str | None
    """The highest cursor value then; None: there is no cursor, or no row."""
    first: int
    """The task's first chunk."""
    end: int
    """The chunk after its last one."""
    is_follower: bool
    """Whether the task reads the rows after the snapshot."""
    snapshot: str = ""
    """The snapshot, in mode log; otherwise `horizon` defines it."""
    slot: str = ""
    """The replication slot, in mode log."""
    chunks: int = 0
    """The number of the table's chunks in all tasks; 0: unknown."""
    since: str = ""
    """Offsets before this LSN belong to a lost slot, and are invalid; empty: all are valid."""
    oid: int = 0
    """The table's oid when its snapshot was planned; 0: unknown."""
    is_renewed: bool = False
    """Whether another table had its name before, to which offsets without an oid belong."""
    until: str = ""
    """The LSN up to which the log of other tables must be read before its snapshot; empty: none."""

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.schema, self.table)


class TaskShare(NamedTuple):
    """The share of one task."""

    tables: tuple[TableShare, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a share."""
        return cls(tuple(TableShare(*each) for each in json.loads(text)))

    def __str__(self) -> str:
        # The last members are left out where they say nothing: earlier releases do not know them.
        fields = [
            each[: None if each.until else -1 if each.is_renewed else -2] for each in self.tables
        ]
        return json.dumps(fields, separators=(",", ":"))


def shares_by_table(shares: Iterable[TaskShare]) -> dict[TableName, TableShare]:
    """Return the whole share of each table in a split."""
    found: dict[TableName, TableShare] = {}
    for each in (table for share in shares for table in share.tables):
        whole = found.get(each.name, each)
        found[each.name] = each._replace(first=0, end=max(each.end, whole.end), is_follower=True)
    return found


def begun_share(
    known: Mapping[TableName, TableShare], name: TableName, oid: int
) -> TableShare | None:
    """Return the share of a table whose snapshot has begun; None: its name is new, or its oid."""
    found = known.get(name)
    return found._replace(oid=oid) if found and found.oid in {0, oid} else None


def deal(tables: Sequence[TableShare], tasks: int, *, is_cut: bool) -> Sequence[TaskShare]:
    """Assign tables to at most `tasks` tasks by their chunks; deterministic.

    `is_cut`: several tasks may share a table. With a cursor they must not: the task that reads new
    rows must know that the snapshot is read.
    """
    total = sum(max(each.end, 1) for each in tables)
    most = min(tasks, max(1, total))
    share = max(1, -(-total // most))
    dealt: list[list[TableShare]] = [[] for _ in range(most)]
    loads = [0] * most
    for each in sorted(tables, key=lambda table: (-table.end, table.name)):
        at, is_first = 0, True
        while at < each.end or is_first:
            task = loads.index(min(loads))
            room = max(1, share - loads[task])
            end = min(each.end, at + room) if is_cut else each.end
            part = each._replace(first=at, end=end, is_follower=is_first, chunks=each.end)
            dealt[task].append(part)
            loads[task] += max(1, end - at)
            at, is_first = end, False
    return [TaskShare(tuple(sorted(each))) for each in dealt if each]
