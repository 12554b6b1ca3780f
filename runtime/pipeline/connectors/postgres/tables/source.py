# pyright: basic
"""The tables of one task as a source: first its part of their snapshots, then what commits."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from psycopg import sql

from ......events.commits import Advance, Document, Lag, identity
from ....spi.config import ParsedConfig
from ....spi.errors import SourceAway
from ....spi.source import BatchPlan, Limit, Source
from . import keys
from .catalog import TableShape
from .chunks import SnapshotShare
from .cursors import Cursor, cursor_of
from .reading import TableReader
from .session import DatabaseSnapshot, Horizon, ReadSession, TableChanged
from .shares import CHUNK_PAGES, TableShare, TaskShare
from .snapshots import LogSnapshot
from .windows import TablePlace, check_place, read_window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REST_SHARE: Final = 9
"""How many times longer than it took a look that found nothing is let rest: a look of a large table
keeps the server busy for as long as it takes, and no worker's clock sees that."""
_HELD_S: Final = 10.0
"""After so long it is told that an open transaction holds back what commits."""
_STALE: Final = 1 << 24
"""After so many transactions without a row an offset moves on all the same."""


class FetchedRows(NamedTuple):
    """Rows of one table, and how far they move its offsets."""

    rows: pa.Table
    advances: tuple[Advance, ...]
    backlog: bool
    lag: Lag | None


@dataclass
class _TableState:
    """A table of the task, and what is known of it beyond its offsets."""

    share: TableShare
    has_snapshot: bool
    """Whether pages of its snapshot may be left to read."""
    snapshot: SnapshotShare | None = None
    reader: TableReader | None = None
    cursor: Cursor = field(default_factory=Cursor)
    seen: int = 0
    """Nothing was written between its offset and this transaction."""
    not_before: float = 0.0
    """When to look again, on the monotonic clock."""


class TableSource(Source[pa.Table]):
    """Reads tables in the order of their names, one of them in each batch."""

    def __init__(self, session: ReadSession, share: TaskShare, settings: ParsedConfig) -> None:
        self._session = session
        self._settings = settings
        mode, snapshot = settings.text(keys.MODE), settings.text(keys.SNAPSHOT_MODE)
        self._is_logged = mode == keys.LOG
        """Whether the server's log is read after the snapshots, by others."""
        self._follows = mode not in {keys.BULK, keys.LOG} and snapshot != keys.INITIAL_ONLY
        self._has_snapshot = snapshot != keys.NO_DATA
        self._seen: Horizon | None = None
        """What the snapshot of the last plan saw."""
        self._held = (0, 0.0)
        """The oldest open transaction, and since when it is that, on the monotonic clock."""
        self._tables = deque(
            _TableState(each, has_snapshot=self._has_snapshot) for each in share.tables
        )

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[pa.Table]:
        """Fetch the next rows, all of one table."""
        if all(time.monotonic() < each.not_before for each in self._tables):
            return BatchPlan()
        try:
            with self._session.snapshot() as snapshot:
                seen = snapshot.horizon()
                found = self._fetch(snapshot, seen, offsets, limit)
        except TableChanged as changed:
            for each in self._tables:
                each.reader = None  # it is looked at anew
            raise SourceAway(str(changed)) from None
        self._seen, remark = seen, self._remark(seen)
        if found is None:
            return BatchPlan(remark=remark)
        rows, advances, backlog, lag = found
        return BatchPlan((rows,), advances, rows.nbytes, rows.num_rows, backlog, lag, remark)

    def read(self, spark: "SparkSession", ranges: Sequence[pa.Table]) -> pa.Table:
        """Return what was fetched."""
        del spark
        (rows,) = ranges
        return rows

    def verify(self, ranges: Sequence[pa.Table]) -> None:
        """See that a crash of the server cannot take back what was fetched, nor its horizon."""
        del ranges
        if self._seen is not None:
            self._session.wait_durable(self._seen)

    def close(self) -> None:
        """End its session."""
        self._session.close()

    def _remark(self, seen: Horizon) -> str:
        """Return what is strange if the horizon stands still while others begin transactions."""
        if seen.lo != self._held[0] or seen.lo == seen.hi:
            self._held = (seen.lo, time.monotonic())
        if not self._follows or time.monotonic() - self._held[1] < _HELD_S:
            return ""
        return (
            f"rows wait for transaction {seen.lo}, which is open (its backend_xid in "
            "pg_stat_activity, or its row in pg_prepared_xacts): what commits is read when it ends"
        )

    def _fetch(
        self,
        snapshot: DatabaseSnapshot,
        seen: Horizon,
        offsets: Mapping[str, Document],
        limit: Limit,
    ) -> FetchedRows | None:
        for table in self._tables:
            if table.has_snapshot and (
                found := self._snapshot(snapshot, seen, table, offsets, limit)
            ):
                return found
        for _ in range(len(self._tables)):
            table = self._tables[0]
            self._tables.rotate(-1)
            if self._follows and table.share.is_follower:
                found = self._follow(snapshot, seen, table, offsets, limit)
                if found:
                    return found
        return None

    def _snapshot(
        self,
        snapshot: DatabaseSnapshot,
        seen: Horizon,
        table: _TableState,
        offsets: Mapping[str, Document],
        limit: Limit,
    ) -> FetchedRows | None:
        """Fetch the next pages of a table's snapshot, None if all are read."""
        if table.snapshot is None:
            place = _place_in(offsets, table.share)
            if place is not None and place.is_whole:
                table.has_snapshot = False
                return None
            begun = place.begin if place is not None else None
            table.snapshot = SnapshotShare(table.share, offsets, begun)
        reader = self._reader(snapshot, table)
        shape = reader.shape
        pages = max(1, min(limit.bytes, limit.rows * shape.row_bytes) // shape.page_bytes)
        run = table.snapshot.next_run(offsets, shape, pages)
        if run is None:
            table.has_snapshot = False
            return None
        of = table.snapshot
        is_of_it = (
            LogSnapshot.parse(of.snapshot).condition(seen)
            if of.snapshot
            else table.cursor.in_snapshot(of.horizon, seen)
        )
        rows = reader.read(snapshot, run.condition + sql.SQL(" AND ") + is_of_it).rows
        lag = Lag(-(-run.left // CHUNK_PAGES), run.left * shape.page_bytes)
        return FetchedRows(rows, run.advances, run.left > 0, lag)

    def _follow(
        self,
        snapshot: DatabaseSnapshot,
        seen: Horizon,
        table: _TableState,
        offsets: Mapping[str, Document],
        limit: Limit,
    ) -> FetchedRows | None:
        """Fetch what was committed to a table, None if there is nothing."""
        share = table.share
        partition = follow_partition(share)
        start = offsets.get(identity(partition))
        place = self._begun(share, offsets, start)
        check_place(share.name, seen, place)
        if place.until is None:
            if seen.lo <= max(place.horizon, table.seen) or time.monotonic() < table.not_before:
                return None
            is_exact = place.horizon == 0
            place = place if is_exact else place._replace(horizon=max(place.horizon, table.seen))
        reader = self._reader(snapshot, table)
        began = time.monotonic()
        most = max(1, min(limit.rows, limit.bytes // reader.shape.row_bytes))
        rows, there, is_more = read_window(reader, snapshot, seen, place, table.cursor, most)
        took = time.monotonic() - began
        table.not_before = 0.0 if rows.num_rows else time.monotonic() + _REST_SHARE * took
        logged = int((start or {}).get("horizon") or 0)
        is_quiet = there.is_whole == place.is_whole and there.horizon - logged < _STALE
        if not rows.num_rows and is_quiet and not is_more:
            table.seen = there.horizon
            return None
        table.seen = 0
        return FetchedRows(rows, (Advance(partition, start, there.document),), is_more, None)

    def _begun(
        self, share: TableShare, offsets: Mapping[str, Document], start: Document | None
    ) -> TablePlace:
        if start is not None:
            return TablePlace.parse(start)
        if not self._has_snapshot:
            return TablePlace.at_horizon(share.horizon, share.cursor, None)
        begin = SnapshotShare(share, offsets, None).horizon
        # The cursor of another snapshot than the one that was begun would hide rows between them.
        cursor = share.cursor if begin == share.horizon else None
        return TablePlace.at_horizon(begin, cursor, begin)

    def _reader(self, snapshot: DatabaseSnapshot, table: _TableState) -> TableReader:
        """Return what reads a table as the catalog has it in this snapshot."""
        name = table.share.name
        mapping = self._settings.text(keys.NUMERIC_MAPPING)
        shape = TableShape.read(snapshot, name, mapping, is_logged=self._is_logged)
        if table.reader is None or table.reader.shape != shape:
            prefix = self._settings.text(keys.TOPIC_PREFIX)
            table.reader = TableReader(name, shape, prefix + table.share.topic)
            table.cursor = cursor_of(self._settings, name, shape)
        return table.reader


def follow_partition(share: TableShare) -> Document:
    """Return the source partition of what commits to a table."""
    bare = {"table": str(share.name)}
    return {"slot": share.slot, **bare} if share.slot else bare


def _place_in(offsets: Mapping[str, Document], share: TableShare) -> TablePlace | None:
    offset = offsets.get(identity(follow_partition(share)))
    return TablePlace.parse(offset) if offset else None
