# pyright: basic
"""The source in mode log: each task reads its part of the snapshot, then one task reads the WAL.

The WAL is read after the whole snapshot is published, since its changes are later than the
snapshot. A window gives one batch for each table; the last batch advances the slot's offset, the
others the offset of their table. The slot is advanced to the committed offset.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from .......events.commits import Advance, Document, Lag, identity
from .....spi.errors import BadInput, SourceAway
from .....spi.source import BatchPlan, Limit, Source
from ...names import TableName
from ...poll_pause import PollPause
from ...tables.chunks import ChunkState
from ...tables.snapshots import LogSnapshot, parse_lsn
from ...tables.source import TableSource
from .pgoutput import Change
from .positions import Position, slot_partition, table_partition
from .publication import Publication
from .renewal import CountingOffsets
from .rows import ChangeRows
from .shares import FollowedTable, LogShare
from .slot import SlotState
from .stream import ChangeStream, Following

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTLED_S: Final = 0.2
"""How often to check whether other tasks have read their part of the snapshot."""
_IDLE_BYTES: Final = 1 << 20
_IDLE_S: Final = 10.0
"""After this much WAL, and time, without a change the offset advances all the same, since
the server retains the WAL after it."""
_REREAD_TOLD: Final = 1 << 28
"""How much WAL each peek may read again before a remark."""
_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True)
class _Batch:
    """The changes of one table in a window, with their advances."""

    table: FollowedTable
    changes: tuple[Change, ...]
    partition: Document
    end: Position
    has_more: bool
    left_bytes: int


class LogSource(Source[pa.Table]):
    """Reads its part of the snapshot by `tables`; then, with a share of the WAL, the changes."""

    def __init__(
        self,
        tables: TableSource,
        rows: ChangeRows,
        stream: ChangeStream,
        publication: Publication,
        share: LogShare | None,
        counting: CountingOffsets,
    ) -> None:
        self._tables = tables
        self._rows = rows
        self._session, self._slot = stream.session, stream.slot
        self._publication = publication
        self._share = share
        self._counting = counting
        self._stream = stream
        self._is_read = False
        """Whether this task's part of the snapshot is read."""
        self._snapshots: dict[TableName, LogSnapshot | None] | None = None
        """The snapshot of each table; None: not all snapshots are read."""
        self._batches: deque[_Batch] = deque()
        """The remaining batches of a window."""
        self._planned: Sequence[Advance] = ()
        """The advances of the last plan that had any."""
        self._pause = PollPause()
        self._moved_at = time.monotonic()
        """When the offset moved last, likewise."""
        self._left_out = 0
        """The number of updates that were left out."""
        self._remarked = ""
        """The remark of the last poll."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[pa.Table]:
        """Fetch the next rows, all of one table."""
        if any(offsets.get(identity(each.partition)) != each.end for each in self._planned):
            self._batches.clear()  # its rows were not committed: they are read again
            self._stream.rewind()
        plan = self._counting.plan(self._fetch, offsets, limit)
        self._planned = plan.advances or self._planned
        return plan

    def read(self, spark: "SparkSession", ranges: Sequence[pa.Table]) -> pa.Table:
        """Return the fetched rows."""
        del spark
        (rows,) = ranges
        return rows

    def verify(self, ranges: Sequence[pa.Table]) -> None:
        """Wait until the snapshot's rows are durable on the server."""
        if not self._is_read:
            self._tables.verify(ranges)

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Advance the slot to the committed offset; after an error the next start does."""
        ours = slot_partition(self._slot.name)
        for each in advances:
            if each.partition == ours and each.end is not None and not self._stream.is_open:
                with suppress(SourceAway, BadInput), self._session.talking() as connection:
                    self._slot.advance(connection, Position.parse(each.end).lsn)

    def release(self) -> None:
        """Drop the slot, if the config asks for that; the publication retains no WAL, and stays."""
        if self._share is not None and self._slot.is_dropped_on_stop:
            with self._session.talking() as connection:
                self._slot.drop(connection)

    def forget(self) -> None:
        """Drop the slot, which would retain WAL forever, and the publication."""
        if self._share is not None:
            with self._session.talking() as connection:
                self._slot.drop(connection)
                self._publication.drop(connection)

    def close(self) -> None:
        """Close its sessions."""
        self._tables.close()
        self._session.close()

    def _fetch(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[pa.Table]:
        if not self._is_read:
            plan = self._tables.plan(offsets, limit)
            if plan.ranges:
                return replace(plan, ranges=tuple(map(self._as_read, plan.ranges)))
            self._is_read = True
        if self._share is None or not self._pause.is_over:
            return BatchPlan()
        if self._snapshots is None and (waits := self._wait(self._share)):
            return BatchPlan(remark=waits)
        if self._batches:
            return self._next(offsets)
        return self._window(self._share, offsets, limit)

    def _as_read(self, rows: pa.Table) -> pa.Table:
        return self._rows.read(rows, time.time_ns() // 1_000_000)

    def _wait(self, share: LogShare) -> str:
        """Return what the WAL reader waits for; empty: the whole snapshot is published."""
        logged, found = self._counting.settled(), dict[TableName, LogSnapshot | None]()
        for table in share.tables:
            begun = table.begun
            if self._is_whole(logged, table):
                found[table.name] = None
                continue
            for number in range(table.chunks):
                partition = table_partition(self._slot.name, str(table.name))
                offset = logged.get(identity({**partition, "chunk": number}))
                state = ChunkState.parse(offset) if offset else None
                if state is None or not state.is_done:
                    self._pause.wait(_SETTLED_S)
                    return f"the log waits until the snapshot of {table.name} is read"
                begun = LogSnapshot.parse(state.snapshot) if state.snapshot else begun
            found[table.name] = begun
        self._snapshots = found
        return ""

    def _is_whole(self, logged: Mapping[str, Document], table: FollowedTable) -> bool:
        """Tell whether a user has set the position of a table, so that its snapshot is skipped."""
        offset = logged.get(identity(table_partition(self._slot.name, str(table.name))))
        return bool(offset and offset.get("whole"))

    def _place(self, share: LogShare, offsets: Mapping[str, Document]) -> Position:
        offset = offsets.get(identity(slot_partition(self._slot.name)))
        if offset is not None:
            return Position.parse(offset)
        begun = [each.lsn for each in (self._snapshots or {}).values() if each is not None]
        return Position(min(begun, default=parse_lsn(share.begin)))

    def _window(
        self, share: LogShare, offsets: Mapping[str, Document], limit: Limit
    ) -> BatchPlan[pa.Table]:
        began, place = time.monotonic(), self._place(share, offsets)
        window = self._stream.read(place, self._following(share, offsets), limit)
        if window is None:
            return BatchPlan(remark=self._remark(None))
        slot, last = slot_partition(self._slot.name), len(window.groups) - 1
        left = max(0, window.slot.written - window.end.lsn)
        for number, (table, changes) in enumerate(window.groups):
            name = str(table.name)
            partition = slot if number == last else table_partition(self._slot.name, name)
            self._batches.append(
                _Batch(table, changes, partition, window.end, window.has_more, left)
            )
        self._remarked = self._remark(window.slot)
        self._pause.after_look(began, found=bool(self._batches))
        if self._batches:
            return self._next(offsets)
        if window.held is not None:
            return BatchPlan(remark=f"the log waits until {window.held}, which is new, is taken up")
        is_fruitless = (
            window.has_more or place.seq > 0
        )  # otherwise the next peek would return it again
        return self._move_on(offsets, place, window.end, is_due=is_fruitless)

    def _following(
        self, share: LogShare, offsets: Mapping[str, Document]
    ) -> Mapping[TableName, Following]:
        found: dict[TableName, Following] = {}
        for table in share.tables:
            offset = offsets.get(identity(table_partition(self._slot.name, str(table.name))))
            place = Position.parse(offset) if offset else Position(0)
            snapshot = (self._snapshots or {}).get(table.name)
            found[table.name] = Following(table, snapshot, place)
        return found

    def _next(self, offsets: Mapping[str, Document]) -> BatchPlan[pa.Table]:
        """Return the next batch of the window."""
        batch = self._batches[0]
        rows, left_out = self._rows.make(batch.table, batch.changes)
        self._batches.popleft()
        self._left_out += left_out
        if not rows.num_rows and self._batches:
            return self._next(offsets)
        lag = Lag(len(self._batches) + batch.has_more, batch.left_bytes)
        return self._plan(offsets, rows, batch, lag)

    def _plan(
        self, offsets: Mapping[str, Document], rows: pa.Table, batch: _Batch, lag: Lag
    ) -> BatchPlan[pa.Table]:
        start = offsets.get(identity(batch.partition))
        stays = {each: start[each] for each in ("whole", "oid") if start and each in start}
        advance = Advance(batch.partition, start, {**batch.end.document, **stays})
        self._moved_at = time.monotonic()
        has_more = bool(self._batches) or batch.has_more
        return BatchPlan(
            (rows,), (advance,), rows.nbytes, rows.num_rows, has_more, lag, self._remarked
        )

    def _move_on(
        self, offsets: Mapping[str, Document], place: Position, end: Position, *, is_due: bool
    ) -> BatchPlan[pa.Table]:
        """Advance the offset by a batch without rows, if it has not changed for long.

        A start without a snapshot is committed at once: otherwise a loss of the slot would not be
        noticed.
        """
        tables = self._share.tables if self._share else ()
        is_long = time.monotonic() - self._moved_at >= _IDLE_S
        is_due = end > place and (is_due or (is_long and end.lsn - place.lsn >= _IDLE_BYTES))
        is_new = not offsets and not any(each.chunks for each in tables)
        nothing = self._rows.nothing(tables) if is_due or is_new else None
        if nothing is None:
            return BatchPlan(remark=self._remarked)
        partition = slot_partition(self._slot.name)
        advance = Advance(partition, offsets.get(identity(partition)), end.document)
        self._moved_at = time.monotonic()
        self._pause.end()
        return BatchPlan((nothing,), (advance,), 0, 0, lag=Lag(0, 0), remark=self._remarked)

    def _remark(self, slot: SlotState | None) -> str:
        """Return the remark about the slot, or about left out updates."""
        if slot is None:
            return self._remarked
        told: list[str] = []
        if slot.most_bytes is not None and 2 * slot.kept_bytes >= slot.most_bytes:
            told.append(
                f"the slot {self._slot.name} keeps {slot.kept_bytes // _MEBIBYTE} MB of the "
                f"server's log, and is lost with {slot.most_bytes // _MEBIBYTE} MB "
                "(max_slot_wal_keep_size)"
            )
        if slot.reread_bytes >= _REREAD_TOLD:
            told.append(
                f"each look has the server read {slot.reread_bytes // _MEBIBYTE} MB of its log "
                "again, for a transaction is open since then (backend_xid in pg_stat_activity, "
                "pg_prepared_xacts)"
            )
        if self._left_out:
            told.append(
                f"{self._left_out} updates were left out of rows that are deleted since: the log "
                "does not have their large values, unless the table's REPLICA IDENTITY is FULL"
            )
        return "; ".join(told)
