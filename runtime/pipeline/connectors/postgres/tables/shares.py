"""Which tables, and which pages of them, each task reads.

A table that is small goes to one task whole. One that is large is cut into runs of chunks, so that
all tasks take part in its snapshot; what commits after the snapshot is read by one of them.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

from ..names import TableName

CHUNK_PAGES: Final = 1024
"""Pages of a chunk, 8 MB of 8 KB each: one source partition of a snapshot."""


class TableShare(NamedTuple):
    """What one task reads of a table."""

    schema: str
    table: str
    topic: str
    file: int
    """The number of the table's file when its snapshot was planned."""
    horizon: int
    """The snapshot holds what committed before this transaction."""
    cursor: int | str | None
    """The highest value of the cursor then; None: there is no cursor, or no row."""
    first: int
    """The first chunk of the task."""
    end: int
    """The chunk after its last."""
    is_follower: bool
    """Whether the task reads what commits after the snapshot."""
    snapshot: str = ""
    """The snapshot itself, where the log is read after it; else `horizon` tells all of it."""
    slot: str = ""
    """The slot by which the log is read."""
    chunks: int = 0
    """How many chunks all tasks have of the table; 0: nobody counted them."""
    since: str = ""
    """Offsets from before this LSN are of a slot that is gone, and do not count; "": all do."""

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.schema, self.table)


class TaskShare(NamedTuple):
    """All that one task reads."""

    tables: tuple[TableShare, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a task was told."""
        return cls(tuple(TableShare(*each) for each in json.loads(text)))

    def __str__(self) -> str:
        return json.dumps(self.tables, separators=(",", ":"))


def known_in(shares: Iterable[TaskShare]) -> dict[TableName, TableShare]:
    """Return what a split in force says of each table, whole."""
    found: dict[TableName, TableShare] = {}
    for each in (table for share in shares for table in share.tables):
        whole = found.get(each.name, each)
        found[each.name] = each._replace(first=0, end=max(each.end, whole.end), is_follower=True)
    return found


def deal(tables: Sequence[TableShare], tasks: int, *, is_cut: bool) -> Sequence[TaskShare]:
    """Deal whole tables to at most so many tasks by their chunks; equal if repeated.

    `is_cut` tells whether a table may be of several tasks. Where a cursor narrows the looks it may
    not: whoever follows the table has to know that its snapshot is read.
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
