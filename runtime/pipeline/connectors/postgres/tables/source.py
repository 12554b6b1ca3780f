# pyright: basic
"""The tables of one task as a source: first its part of their snapshots, then what commits.

What commits to a table waits until all tasks have its snapshot in the sink, and whoever followed
the table before has put in place what it read: a row of theirs must not come after a newer one.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from psycopg import sql

from ......events.commits import Advance, Document, Lag, identity
from ....spi.config import ParsedConfig
from ....spi.errors import SourceAway
from ....spi.source import BatchPlan, Limit, Source
from ..resting import LookRest
from . import keys
from .catalog import TableShape
from .chunks import SnapshotShare, is_snapshot_read
from .columns import TypeMapping
from .cursors import Cursor, cursor_of
from .reading import TableReader
from .session import DatabaseSnapshot, Horizon, ReadSession, TableChanged
from .shares import CHUNK_PAGES, TableShare, TaskShare
from .snapshots import LogSnapshot
from .windows import TableAudit, TablePlace, WindowLook, check_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTLED_S: Final = 0.2
"""How often it is looked whether what comes before is in the sink."""
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
    is_settled: bool = False
    """Whether all that was read of it before is in the sink, by whatever task."""
    seen: int = 0
    """Nothing was written between its offset and this transaction."""
    rest: LookRest = field(default_factory=LookRest)
    audit: TableAudit = field(default_factory=lambda: TableAudit(0))


class _Look(NamedTuple):
    """One look at all tables, in one transaction, for a batch."""

    snapshot: DatabaseSnapshot
    seen: Horizon
    """What the snapshot sees."""
    offsets: Mapping[str, Document]
    limit: Limit

    def logged(self, share: TableShare) -> Document | None:
        """Return the offset of what commits to a table."""
        return self.offsets.get(identity(follow_partition(share)))


class TableSource(Source[pa.Table]):
    """Reads tables in the order of their names, one of them in each batch."""

    def __init__(
        self,
        session: ReadSession,
        share: TaskShare,
        settings: ParsedConfig,
        settled: Callable[[], Mapping[str, Document]],
    ) -> None:
        self._session = session
        self._settled = settled
        """What the log of our own has as published, of all tasks."""
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
        self._waits = ""
        """What the last look found that some table waits for."""
        audit_s = settings.number(keys.AUDIT_MS) / 1000
        self._tables = deque(
            _TableState(each, has_snapshot=self._has_snapshot, audit=TableAudit(audit_s))
            for each in share.tables
        )

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[pa.Table]:
        """Fetch the next rows, all of one table."""
        if not any(each.rest.is_over for each in self._tables):
            return BatchPlan(remark=self._with_audits(self._waits))
        self._waits = ""
        try:
            with self._session.snapshot() as snapshot:
                seen = snapshot.horizon()
                found = self._fetch(_Look(snapshot, seen, offsets, limit))
        except TableChanged as changed:
            for each in self._tables:
                each.reader = None  # it is looked at anew
            raise SourceAway(str(changed)) from None
        self._seen, remark = seen, self._with_audits(self._remark(seen) or self._waits)
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

    def _with_audits(self, remark: str) -> str:
        """Return a remark with what was counted of rows that came too late."""
        audits = (each.audit.remark(each.share.name) for each in self._tables)
        return "; ".join(filter(None, (remark, *audits)))

    def _fetch(self, look: _Look) -> FetchedRows | None:
        for table in self._tables:
            if table.has_snapshot and (found := self._snapshot(look, table)):
                return found
        for _ in range(len(self._tables)):
            table = self._tables[0]
            self._tables.rotate(-1)
            if self._follows and table.share.is_follower and (found := self._follow(look, table)):
                return found
        return None

    def _snapshot(self, look: _Look, table: _TableState) -> FetchedRows | None:
        """Fetch the next pages of a table's snapshot, None if all are read."""
        if table.snapshot is None:
            logged = look.logged(table.share)
            place = TablePlace.parse(logged) if logged else None
            if place is not None and place.is_whole:
                table.has_snapshot = False
                return None
            begun = place.begin if place is not None else None
            table.snapshot = SnapshotShare(table.share, look.offsets, begun)
        reader = self._reader(look.snapshot, table)
        shape, limit = reader.shape, look.limit
        pages = max(1, min(limit.bytes, limit.rows * shape.row_bytes) // shape.page_bytes)
        run = table.snapshot.next_run(look.offsets, shape, pages)
        if run is None:
            table.has_snapshot = False
            return None
        of = table.snapshot
        is_of_it = (
            LogSnapshot.parse(of.snapshot).condition(look.seen)
            if of.snapshot
            else table.cursor.in_snapshot(of.horizon, look.seen)
        )
        rows = reader.rows.read(look.snapshot, run.condition + sql.SQL(" AND ") + is_of_it).rows
        lag = Lag(-(-run.left // CHUNK_PAGES), run.left * shape.page_bytes)
        return FetchedRows(rows, run.advances, run.left > 0, lag)

    def _follow(self, look: _Look, table: _TableState) -> FetchedRows | None:
        """Fetch what was committed to a table, None if there is nothing."""
        start = look.logged(table.share)
        place = self._begun(look, table.share, start)
        check_place(table.share.name, look.seen, place)
        if not table.rest.is_over or not self._may_follow(table, place, start):
            return None
        if place.until is None:
            if look.seen.lo <= max(place.horizon, table.seen):
                return None
            if place.horizon:
                place = place._replace(horizon=max(place.horizon, table.seen))
        reader = self._reader(look.snapshot, table)
        table.audit.count(look.snapshot, reader, table.cursor, place)
        began, limit = time.monotonic(), look.limit
        most = max(1, min(limit.rows, limit.bytes // reader.shape.row_bytes))
        window = WindowLook(reader, look.snapshot, look.seen, table.cursor, most)
        rows, there, is_more = window.read(place)
        table.rest.after_look(began, found=rows.num_rows > 0)
        logged = int((start or {}).get("horizon") or 0)
        is_same = (there.is_whole, there.until) == (place.is_whole, place.until)
        is_quiet = is_same and there.horizon - logged < _STALE
        if not rows.num_rows and is_quiet and not is_more:
            table.seen = there.horizon
            return None
        table.seen = 0
        advance = Advance(follow_partition(table.share), start, there.document)
        return FetchedRows(rows, (advance,), is_more, None)

    def _may_follow(self, table: _TableState, place: TablePlace, start: Document | None) -> bool:
        """Tell whether all that was read of a table before is in the sink."""
        if not table.is_settled:
            share, settled = table.share, self._settled()
            partition = identity(follow_partition(share))
            is_read = place.is_whole or is_snapshot_read(share, settled)
            table.is_settled = is_read and settled.get(partition) == start
        if not table.is_settled:
            self._waits = f"what commits to {table.share.name} waits until its snapshot is read"
            table.rest.wait(_SETTLED_S)
        return table.is_settled

    def _begun(self, look: _Look, share: TableShare, start: Document | None) -> TablePlace:
        if start is not None:
            return TablePlace.parse(start)
        if not self._has_snapshot:
            return TablePlace.at_horizon(share.horizon, share.cursor, None)
        begin = SnapshotShare(share, look.offsets, None).horizon
        # The cursor of another snapshot than the one that was begun would hide rows between them.
        cursor = share.cursor if begin == share.horizon else None
        return TablePlace.at_horizon(begin, cursor, begin)

    def _reader(self, snapshot: DatabaseSnapshot, table: _TableState) -> TableReader:
        """Return what reads a table as the catalog has it in this snapshot."""
        name = table.share.name
        mapping = TypeMapping.of(self._settings)
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
