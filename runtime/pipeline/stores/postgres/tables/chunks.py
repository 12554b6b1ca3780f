"""The snapshot of a table by pages: the pages that are left, and the advances of a read.

A chunk is a run of pages and a source partition, so that several tasks can read a table, and a
moved task repeats at most one batch. Rows that are written meanwhile are left to the windows after
the snapshot: all parts of a snapshot read rows written before one transaction, the horizon. Such
rows are in the pages that the table had then, unless it is rewritten.
"""

import logging
from collections import deque
from collections.abc import Mapping
from threading import current_thread
from typing import Any, NamedTuple

from psycopg import sql

from ......events.commits import Advance, Document, identity
from ....spi.errors import BadInput
from .catalog import TableShape, refuse_replaced
from .shares import CHUNK_PAGES, TableShare

LOGGER = logging.getLogger(__name__)


class ChunkState(NamedTuple):
    """The position in a chunk."""

    horizon: int
    file: int
    page: int
    """The next page to read."""
    is_done: bool
    snapshot: str = ""
    """The snapshot of its rows, in mode log."""
    oid: int = 0
    """The table's oid; 0: unknown."""

    @classmethod
    def parse(cls, offset: Document) -> "ChunkState":
        """Parse an offset."""
        get: Any = offset.get
        names = ("horizon", "file", "page", "oid")
        horizon, file, page, oid = (int(get(name) or 0) for name in names)
        return cls(horizon, file, page, bool(get("done")), str(get("snapshot") or ""), oid)

    @property
    def document(self) -> Document:
        """The offset."""
        bare: dict[str, int | bool | str] = {"horizon": self.horizon, "file": self.file}
        if self.snapshot:
            bare["snapshot"] = self.snapshot
        if self.oid:
            bare["oid"] = self.oid
        return {**bare, "done": True} if self.is_done else {**bare, "page": self.page}


class PageRun(NamedTuple):
    """Pages to read at once, with the advances of their chunks."""

    first: int
    end: int
    advances: tuple[Advance, ...]
    left: int
    """The pages of the task's share that are left after it."""

    @property
    def condition(self) -> sql.Composed:
        """The condition that a row is in one of the pages."""
        shape = "ctid >= '({},0)'::tid AND ctid < '({},0)'::tid"
        return sql.SQL(shape).format(sql.Literal(self.first), sql.Literal(self.end))


class SnapshotShare:
    """The progress of a task's part of a table's snapshot."""

    def __init__(
        self, share: TableShare, offsets: Mapping[str, Document], begun: int | None
    ) -> None:
        self._share = share
        states = _states(share, offsets)
        first = next(iter(states.values()), None)
        self.horizon = begun or (first.horizon if first else share.horizon)
        """Rows written before this transaction belong to the snapshot."""
        self.snapshot = first.snapshot if first else share.snapshot
        """The snapshot, in mode log."""
        self._files = {each.file for each in states.values()}
        """The relfilenodes of the table at the earlier reads."""
        self.oid = next((each.oid for each in states.values() if each.oid), share.oid)
        """The oid of the table then; 0: unknown."""
        if share.slot and not states:  # the WAL has no changes for a rewrite
            self._files.add(share.file)
        numbers = range(share.first, share.end)
        self._left = deque(
            number for number in numbers if number not in states or not states[number].is_done
        )
        self._is_reported = False
        """Whether the log has its beginning."""

    def next_run(
        self, offsets: Mapping[str, Document], shape: TableShape, page_limit: int
    ) -> PageRun | None:
        """Return the next pages, up to a limit; None: all are read.

        Raises `BadInput` if the table was rewritten, or replaced, since a part of it was read.
        """
        refuse_replaced(self._share.name, self.oid, shape.oid)
        self._pass_done(offsets)
        self._tell()
        if not self._left:
            return None
        self._refuse_rewritten(shape)
        first = self._page(offsets, self._left[0])
        is_end = first + page_limit >= shape.pages
        stop = self._share.end * CHUNK_PAGES if is_end else first + page_limit
        at, advances = first, list[Advance]()
        for place, number in enumerate(self._left):
            end = min((number + 1) * CHUNK_PAGES, stop)
            if number != self._left[0] + place or end <= at:
                break
            partition = chunk_partition(self._share, number)
            is_done = end == (number + 1) * CHUNK_PAGES
            state = ChunkState(self.horizon, shape.file, end, is_done, self.snapshot, shape.oid)
            advances.append(Advance(partition, offsets.get(identity(partition)), state.document))
            at = end
        left = len(self._left) * CHUNK_PAGES - (at - self._left[0] * CHUNK_PAGES)
        return PageRun(first, at, tuple(advances), left)

    def _tell(self) -> None:
        """Log that this task begins, or goes on with, its part of the snapshot, or has read it."""
        who, name = current_thread().name, self._share.name
        if self._left and not self._is_reported:
            self._is_reported = True
            left, chunks = len(self._left), self._share.end - self._share.first
            LOGGER.info("%s reads the snapshot of %s: %d of %d chunks", who, name, left, chunks)
        elif self._is_reported and not self._left:
            self._is_reported = False
            LOGGER.info("%s has read the snapshot of %s", who, name)

    def _refuse_rewritten(self, shape: TableShape) -> None:
        if self._files - {shape.file}:
            raise BadInput(
                f"{self._share.name} was rewritten (TRUNCATE, VACUUM FULL, CLUSTER, a type was "
                "changed) while its snapshot was read, so that what is left of it cannot be told "
                "from what was read: read it again (seek to earliest)"
            )
        self._files.add(shape.file)

    def _pass_done(self, offsets: Mapping[str, Document]) -> None:
        while self._left:
            offset = offsets.get(identity(chunk_partition(self._share, self._left[0])))
            if not offset or not ChunkState.parse(offset).is_done:
                return
            self._left.popleft()

    def _page(self, offsets: Mapping[str, Document], number: int) -> int:
        offset = offsets.get(identity(chunk_partition(self._share, number)))
        return ChunkState.parse(offset).page if offset else number * CHUNK_PAGES


def chunk_partition(share: TableShare, number: int) -> Document:
    """Return the source partition of a chunk of a table."""
    bare: dict[str, str | int] = {"table": share.name.key, "chunk": number}
    return {"slot": share.slot, **bare} if share.slot else bare


def is_snapshot_read(share: TableShare, offsets: Mapping[str, Document]) -> bool:
    """Return whether all chunks of a table are read, by all tasks."""
    states = _states(share, offsets)
    return all(number in states and states[number].is_done for number in range(share.chunks))


def _states(share: TableShare, offsets: Mapping[str, Document]) -> Mapping[int, ChunkState]:
    """Return the positions in a table's chunks that have an offset."""
    found = (
        (number, offsets.get(identity(chunk_partition(share, number))))
        for number in range(max(share.end, share.chunks))
    )
    return {number: ChunkState.parse(offset) for number, offset in found if offset}
