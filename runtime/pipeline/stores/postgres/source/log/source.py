# pyright: basic
"""The source in mode log: each task reads its part of the snapshot, then one task reads the WAL.

The WAL is read after the whole snapshot is published, since its changes are later than the
snapshot. A window gives one batch for each group of changes with the same columns; the last batch
advances the slot's offset, the others the offsets of their tables. The slot is advanced to the
committed offset.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from .......events.commits import Advance, Document, Lag, identity
from .....spi.errors import BadInput, SourceAway
from .....spi.source import ArrowSource, BatchPlan, Limit
from ...names import TableName
from ...poll_pause import PollPause
from ...tables.catalog import CatalogRemarks
from ...tables.session import ReadSession, TableChanged
from ...tables.source import TableSource
from .changes.groups import Group
from .changes.positions import Position, slot_partition, table_partition
from .changes.rows import ChangeRows
from .changes.shares import FollowedTable, LogShare
from .following import FollowedTables, is_open, opened
from .renewal import CountingOffsets
from .server.publication import Publication
from .server.slot import SlotState
from .stream import ChangeStream

_SETTLED_S: Final = 0.2
"""How often to check whether other tasks have read their part of the snapshot."""
_IDLE_BYTES: Final = 1 << 20
_IDLE_S: Final = 10.0
"""After this much WAL, and time, without a change the offset advances all the same, since
the server retains the WAL after it."""
_MUCH_REREAD: Final = 1 << 28
"""How much WAL each peek may read again before a remark."""
_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True)
class _Batch:
    """A group of changes of a window; `partitions` are those that advance to its end."""

    group: Group
    partitions: tuple[Document, ...]
    end: Position
    has_more: bool
    left_bytes: int


@dataclass
class LogRemarks:
    """The remarks in the task's status: about the slot, changes that were left out, and tables."""

    slot: str
    """The name of the slot."""
    catalog: CatalogRemarks | None
    left_out: int = 0
    """The number of updates that were left out."""
    emptied: frozenset[TableName] = frozenset()
    """The tables whose TRUNCATE was left out."""
    _of_slot: str = ""
    """The remarks about the slot."""

    def refresh_catalog(self, session: ReadSession) -> None:
        """Refresh the remarks on the catalog, if it is time; raises as the session does."""
        if self.catalog is not None and self.catalog.is_due:
            with suppress(TableChanged), session.snapshot() as snapshot:
                self.catalog.refresh(snapshot)

    def set_slot_state(self, state: SlotState) -> None:
        """Replace the remarks about the slot by those of its present state."""
        remarks: list[str] = []
        if state.most_bytes is not None and 2 * state.kept_bytes >= state.most_bytes:
            remarks.append(
                f"the slot {self.slot} keeps {state.kept_bytes // _MEBIBYTE} MB of the "
                f"server's log, and is lost with {state.most_bytes // _MEBIBYTE} MB "
                "(max_slot_wal_keep_size)"
            )
        if state.reread_bytes >= _MUCH_REREAD:
            remarks.append(
                f"each look has the server read {state.reread_bytes // _MEBIBYTE} MB of its log "
                "again, for a transaction is open since then (backend_xid in pg_stat_activity, "
                "pg_prepared_xacts)"
            )
        self._of_slot = "; ".join(remarks)

    @property
    def text(self) -> str:
        """All remarks; empty: there are none."""
        remarks = [self._of_slot]
        if self.left_out:
            remarks.append(
                f"{self.left_out} updates were left out of rows that are deleted since: the log "
                "does not have their large values, unless the table's REPLICA IDENTITY is FULL"
            )
        if self.emptied:
            names = ", ".join(sorted(map(str, self.emptied)))
            remarks.append(
                f"a TRUNCATE of {names} was left out: it emptied a part of the partitioned table, "
                "and a row that tells of it would empty all of its target"
            )
        if self.catalog is not None:
            remarks.append(self.catalog.text)
        return "; ".join(filter(None, remarks))


class LogSource(ArrowSource):
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
        self._log = FollowedTables(share, stream.slot.name, counting) if share is not None else None
        """The tables whose changes it reads; None: it does not read the log."""
        self._counting = counting
        self._stream = stream
        self._is_read = False
        """Whether this task's part of the snapshot is read."""
        self._batches: deque[_Batch] = deque()
        """The remaining batches of a window."""
        self._planned: Sequence[Advance] = ()
        """The advances of the last plan that had any."""
        self._pause = PollPause()
        self._moved_at = time.monotonic()
        """When the offset moved last, likewise."""
        self._remarks = LogRemarks(stream.slot.name, tables.catalog)
        self._remark = ""
        """The remark of the last plan, which stays while it pauses."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[pa.Table]:
        """Fetch the next rows, all of one table."""
        if any(offsets.get(identity(each.partition)) != each.end for each in self._planned):
            self._batches.clear()  # its rows were not committed: they are read again
            self._stream.rewind()
        plan = self._counting.plan(self._fetch, offsets, limit)
        self._planned, self._remark = plan.advances or self._planned, plan.remark
        return plan

    def verify(self, ranges: Sequence[pa.Table]) -> None:
        """Wait until the snapshot's rows are durable on the server."""
        if not self._is_read:
            self._tables.verify(ranges)

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Advance the slot to the committed offset; after an error the next start does."""
        ours = slot_partition(self._slot.name)
        for each in advances:
            if each.partition == ours and each.end is not None and not self._stream.is_open:
                with suppress(SourceAway, BadInput), self._session.connected() as connection:
                    self._slot.advance(connection, Position.parse(each.end).lsn)

    def release(self) -> None:
        """Drop the slot, if the config asks for that; the publication retains no WAL, and stays."""
        if self._log is not None and self._slot.is_dropped_on_stop:
            with self._session.connected() as connection:
                self._slot.drop(connection)

    def remove_external_state(self) -> None:
        """Drop the slot, which would retain WAL forever, and the publication."""
        if self._log is not None:
            with self._session.connected() as connection:
                self._slot.drop(connection)
                self._publication.drop(connection)

    def close(self) -> None:
        """Close its sessions."""
        self._tables.close()
        self._session.close()

    def _fetch(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[pa.Table]:
        if not self._pause.is_over:
            return BatchPlan(remark=self._remark)
        if not self._is_read and (found := self._snapshot(offsets, limit)):
            return found
        if self._log is None:
            return BatchPlan()
        if waits := self._log.wait():
            return self._waiting(waits)
        if self._batches:
            return self._next(self._log, offsets)
        return self._window(self._log, offsets, limit)

    def _snapshot(
        self, offsets: Mapping[str, Document], limit: Limit
    ) -> BatchPlan[pa.Table] | None:
        """Fetch the next rows of the snapshot; None: go on with the log, if this task reads it."""
        self._tables.held = held = self._held()
        plan = self._tables.plan(offsets, limit)
        if plan.ranges:
            return replace(plan, ranges=tuple(map(self._as_read, plan.ranges)))
        self._is_read = not held
        if not held or self._log is not None:
            return None
        told = ", ".join(sorted(map(str, held)))
        return self._waiting(f"the snapshot of {told} waits until the log is read up to it")

    def _waiting(self, remark: str) -> BatchPlan[pa.Table]:
        self._pause.wait(_SETTLED_S)
        return BatchPlan(remark=remark)

    def _held(self) -> frozenset[TableName]:
        """Return the tables of this task whose snapshots must not be read yet."""
        later = [each for each in self._tables.share.tables if each.until]
        logged = self._counting.settled() if later else {}
        return frozenset(each.name for each in later if not is_open(each, self._slot.name, logged))

    def _as_read(self, rows: pa.Table) -> pa.Table:
        return self._rows.read(rows, time.time_ns() // 1_000_000)

    def _window(
        self, log: FollowedTables, offsets: Mapping[str, Document], limit: Limit
    ) -> BatchPlan[pa.Table]:
        began, place = time.monotonic(), log.place(offsets)
        self._remarks.refresh_catalog(self._rows.session)
        if due := log.due(place):
            return self._open(log, offsets, due, place)
        window = self._stream.read(
            place, lambda: log.place(self._counting.settled()), log.following(offsets), limit
        )
        if window is None:
            return BatchPlan(remark=self._remarks.text)
        slot, last = slot_partition(self._slot.name), len(window.groups) - 1
        left = max(0, window.slot.written - window.end.lsn)
        for number, group in enumerate(window.groups):
            names = dict.fromkeys(table.name.key for table, _ in group)
            ahead = tuple(table_partition(self._slot.name, name) for name in names)
            partitions = (slot,) if number == last else ahead
            self._batches.append(_Batch(group, partitions, window.end, window.has_more, left))
        self._remarks.set_slot_state(window.slot)
        self._pause.after_look(began, found=bool(self._batches))
        if self._batches:
            return self._next(log, offsets)
        if due := log.due(window.end, window.held):
            return self._open(log, offsets, due, window.end)
        if window.held is not None:
            return BatchPlan(remark=f"the log waits until {window.held}, which is new, is taken up")
        is_fruitless = (
            window.has_more or place.seq > 0
        )  # otherwise the next peek would return it again
        return self._move_on(log, offsets, place, window.end, is_due=is_fruitless)

    def _next(self, log: FollowedTables, offsets: Mapping[str, Document]) -> BatchPlan[pa.Table]:
        """Return the next batch of the window."""
        batch = self._batches[0]
        rows, left_out, emptied = self._rows.make(batch.group, log.siblings)
        self._batches.popleft()
        self._remarks.left_out += left_out
        self._remarks.emptied |= emptied
        if not rows.num_rows and self._batches:
            return self._next(log, offsets)
        lag = Lag(len(self._batches) + batch.has_more, batch.left_bytes)
        return self._plan(offsets, rows, batch, lag)

    def _plan(
        self, offsets: Mapping[str, Document], rows: pa.Table, batch: _Batch, lag: Lag
    ) -> BatchPlan[pa.Table]:
        advances: list[Advance] = []
        for partition in batch.partitions:
            start = offsets.get(identity(partition))
            stays = {each: start[each] for each in ("whole", "oid") if start and each in start}
            advances.append(Advance(partition, start, {**batch.end.document, **stays}))
        self._moved_at = time.monotonic()
        has_more = bool(self._batches) or batch.has_more
        return BatchPlan(
            (rows,),
            tuple(advances),
            rows.nbytes,
            rows.num_rows,
            has_more,
            lag,
            self._remarks.text,
        )

    def _open(
        self,
        log: FollowedTables,
        offsets: Mapping[str, Document],
        due: Sequence[FollowedTable],
        place: Position,
    ) -> BatchPlan[pa.Table]:
        """Plan a batch without rows, whose offsets have the snapshots of tables read."""
        nothing = self._rows.empty_table(log.share.tables)
        if nothing is None:
            return BatchPlan(remark=self._remarks.text)
        advances: list[Advance] = []
        for table in due:
            partition = table_partition(self._slot.name, table.name.key)
            end = opened(table, place).document
            advances.append(Advance(partition, offsets.get(identity(partition)), end))
        self._stream.rewind()
        self._pause.end()
        return BatchPlan((nothing,), tuple(advances), 0, 0, remark=self._remarks.text)

    def _move_on(
        self,
        log: FollowedTables,
        offsets: Mapping[str, Document],
        place: Position,
        end: Position,
        *,
        is_due: bool,
    ) -> BatchPlan[pa.Table]:
        """Advance the offset by a batch without rows, if it has not changed for long.

        A start without a snapshot is committed at once: otherwise a loss of the slot would not be
        noticed.
        """
        tables = log.share.tables
        is_long = time.monotonic() - self._moved_at >= _IDLE_S
        is_due = end > place and (is_due or (is_long and end.lsn - place.lsn >= _IDLE_BYTES))
        is_new = not offsets and not any(each.chunks for each in tables)
        nothing = self._rows.empty_table(tables) if is_due or is_new else None
        if nothing is None:
            return BatchPlan(remark=self._remarks.text)
        partition = slot_partition(self._slot.name)
        advance = Advance(partition, offsets.get(identity(partition)), end.document)
        self._moved_at = time.monotonic()
        self._pause.end()
        return BatchPlan((nothing,), (advance,), 0, 0, lag=Lag(0, 0), remark=self._remarks.text)
