# pyright: basic
"""The source of tables: a task reads its part of the snapshots, then windows of new rows.

New rows of a table are read after its snapshot is published by all tasks, and after the former
reader of the table has published its rows: an older row must not follow a newer one.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa
from psycopg import sql

from ......events.commits import Advance, Document, Lag, identity
from ....spi.config import ParsedConfig
from ....spi.errors import SourceAway
from ....spi.source import ArrowSource, BatchPlan, Limit
from ..dotted import by_present_names, with_logged_starts
from ..names import TableName
from ..poll_pause import PollPause
from . import keys
from .catalog import CatalogRemarks, TableShape, refuse_replaced
from .chunks import SnapshotShare, is_snapshot_read
from .columns import TypeMapping
from .cursors import Cursor, cursor_of
from .reading import TableReader
from .session import DatabaseSnapshot, Horizon, ReadSession, TableChanged
from .shares import CHUNK_PAGES, TableShare, TaskShare
from .snapshots import LogSnapshot
from .windows import TableAudit, TablePosition, WindowLook, check_place

_SETTLED_S: Final = 0.2
"""How often to check whether earlier rows are published."""
_HELD_S: Final = 10.0
"""How long an open transaction may hold back new rows before a remark."""
_STALE: Final = 1 << 24
"""After so many transactions without a row an offset advances all the same."""


class FetchedRows(NamedTuple):
    """Rows of one table, with their advances."""

    rows: pa.Table
    advances: tuple[Advance, ...]
    backlog: bool
    lag: Lag | None


@dataclass
class _TableState:
    """The state of a table, beyond its offsets."""

    share: TableShare
    has_snapshot: bool
    """Whether pages of its snapshot may be left."""
    snapshot: SnapshotShare | None = None
    reader: TableReader | None = None
    cursor: Cursor = field(default_factory=Cursor)
    is_settled: bool = False
    """Whether all earlier rows of it are published, by all tasks."""
    seen: int = 0
    """There are no new rows between its offset and this transaction."""
    rest: PollPause = field(default_factory=PollPause)
    audit: TableAudit = field(default_factory=lambda: TableAudit(0))


class _Look(NamedTuple):
    """A poll of all tables in one transaction, for one batch."""

    snapshot: DatabaseSnapshot
    seen: Horizon
    """The visibility of the snapshot."""
    offsets: Mapping[str, Document]
    limit: Limit

    def logged(self, share: TableShare) -> Document | None:
        """Return the offset of a table's new rows."""
        return self.offsets.get(identity(follow_partition(share)))


class TableSource(ArrowSource):
    """Reads tables in the order of their names, one table in each batch."""

    def __init__(
        self,
        session: ReadSession,
        share: TaskShare,
        settings: ParsedConfig,
        settled: Callable[[], Mapping[str, Document]],
        catalog: CatalogRemarks | None = None,
    ) -> None:
        self._session = session
        self._published = settled
        """Reads the published offsets of all tasks."""
        self.share = share
        self.held: Collection[TableName] = ()
        """Tables whose snapshots must not be read yet."""
        self.catalog = catalog
        """The remarks about tables, which one task makes."""
        self._settings = settings
        mode, snapshot = settings.text(keys.MODE), settings.text(keys.SNAPSHOT_MODE)
        self._is_logged = mode == keys.LOG
        """Whether the WAL follows the snapshots (mode log), read elsewhere."""
        self._follows = mode not in {keys.BULK, keys.LOG} and snapshot != keys.INITIAL_ONLY
        self._has_snapshot = snapshot != keys.NO_DATA
        self._seen: Horizon | None = None
        """The visibility of the last plan's snapshot."""
        self._held = (0, 0.0)
        """The oldest open transaction, and the monotonic time since when it is the oldest."""
        self._waits = ""
        """What a table waits for, by the last poll."""
        self._forked = ""
        """The remark that the server was failed over."""
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
        named = by_present_names(offsets, self.share.tables)
        try:
            with self._session.snapshot() as snapshot:
                horizon = snapshot.horizon()
                if self.catalog is not None:
                    self.catalog.refresh(snapshot)
                fetched = self._fetch(_Look(snapshot, horizon, named, limit))
        except TableChanged as changed:
            for each in self._tables:
                each.reader = each.snapshot = None  # its shape and its file are read again
            raise SourceAway(str(changed)) from None
        self._seen, remark = horizon, self._with_audits(self._remark(horizon) or self._waits)
        if fetched is None:
            return BatchPlan(remark=remark)
        rows, advances, backlog, lag = fetched
        plan = BatchPlan((rows,), advances, rows.nbytes, rows.num_rows, backlog, lag, remark)
        return plan if named is offsets else with_logged_starts(plan, offsets)

    def verify(self, ranges: Sequence[pa.Table]) -> None:
        """Wait until the fetched rows, and their horizon, are durable on the server."""
        del ranges
        if self._seen is not None:
            self._session.wait_durable(self._seen)

    def close(self) -> None:
        """Close its session."""
        self._session.close()

    def _remark(self, horizon: Horizon) -> str:
        """Return a remark if an old open transaction holds back the horizon."""
        if horizon.lo != self._held[0] or horizon.lo == horizon.hi:
            self._held = (horizon.lo, time.monotonic())
        if not self._follows or time.monotonic() - self._held[1] < _HELD_S:
            return ""
        return (
            f"rows wait for transaction {horizon.lo}, which is open (its backend_xid in "
            "pg_stat_activity, or its row in pg_prepared_xacts): what commits is read when it ends"
        )

    def _with_audits(self, remark: str) -> str:
        """Return the remark with those about tables, and the counts of missed rows, added."""
        audits = (each.audit.remark(each.share.name) for each in self._tables)
        catalog = self.catalog.text if self.catalog is not None else ""
        return "; ".join(filter(None, (remark, self._forked, *audits, catalog)))

    def _fetch(self, look: _Look) -> FetchedRows | None:
        for table in self._tables:
            is_due = table.has_snapshot and table.share.name not in self.held
            if is_due and (rows := self._snapshot(look, table)):
                return rows
        for _ in range(len(self._tables)):
            table = self._tables[0]
            self._tables.rotate(-1)
            if self._follows and table.share.is_follower and (rows := self._follow(look, table)):
                return rows
        return None

    def _snapshot(self, look: _Look, table: _TableState) -> FetchedRows | None:
        """Fetch the next pages of a table's snapshot; None: all are read."""
        if table.snapshot is None:
            logged = look.logged(table.share)
            place = TablePosition.parse(logged) if logged else None
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
        rows = reader.read(look.snapshot, run.condition + sql.SQL(" AND ") + is_of_it).rows
        lag = Lag(-(-run.left // CHUNK_PAGES), run.left * shape.page_bytes)
        return FetchedRows(rows, run.advances, run.left > 0, lag)

    def _follow(self, look: _Look, table: _TableState) -> FetchedRows | None:
        """Fetch the new rows of a table; None: there are none."""
        start = look.logged(table.share)
        place = self._begun(look, table.share, start)
        check_place(table.share.name, look.seen, place)
        self._forked = self._forked or place.remark(table.share.name, look.seen)
        if not table.rest.is_over or not self._may_follow(table, place, start):
            return None
        if place.until is None:
            if look.seen.lo <= max(place.horizon, table.seen):
                return None
            if place.horizon:
                place = place._replace(horizon=max(place.horizon, table.seen))
        reader = self._reader(look.snapshot, table)
        refuse_replaced(table.share.name, place.oid, reader.shape.oid)
        timeline = place.timeline or look.seen.timeline
        place = place._replace(oid=reader.shape.oid, timeline=timeline)
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

    def _may_follow(self, table: _TableState, place: TablePosition, start: Document | None) -> bool:
        """Return whether all earlier rows of a table are published."""
        if not table.is_settled:
            share = table.share
            settled = by_present_names(self._published(), self.share.tables)
            partition = identity(follow_partition(share))
            is_read = place.is_whole or is_snapshot_read(share, settled)
            table.is_settled = is_read and settled.get(partition) == start
        if not table.is_settled:
            self._waits = f"what commits to {table.share.name} waits until its snapshot is read"
            table.rest.wait(_SETTLED_S)
        return table.is_settled

    def _begun(self, look: _Look, share: TableShare, start: Document | None) -> TablePosition:
        if start is not None:
            return TablePosition.parse(start)
        if not self._has_snapshot:
            return TablePosition.at_horizon(share.horizon, share.cursor, None, share.oid)
        snapshot = SnapshotShare(share, look.offsets, None)
        begin = snapshot.horizon
        # The cursor value of a newer snapshot would hide rows between the two snapshots.
        cursor = share.cursor if begin == share.horizon else None
        return TablePosition.at_horizon(begin, cursor, begin, snapshot.oid)

    def _reader(self, snapshot: DatabaseSnapshot, table: _TableState) -> TableReader:
        """Return the reader of a table, with its columns in this snapshot."""
        name = table.share.name
        mapping = TypeMapping.of(self._settings)
        shape = TableShape.read(snapshot, name, mapping, is_logged=self._is_logged)
        if table.reader is None or table.reader.shape != shape:
            prefix = self._settings.text(keys.TOPIC_PREFIX)
            table.reader = TableReader(name, shape, prefix + table.share.topic)
            table.cursor = cursor_of(self._settings, name, shape)
        return table.reader


def follow_partition(share: TableShare) -> Document:
    """Return the source partition of a table's new rows."""
    bare = {"table": share.name.key}
    return {"slot": share.slot, **bare} if share.slot else bare
