# pyright: basic
"""Incremental reads after the snapshot: each poll reads a window of transactions.

    window    rows whose xmin lies in [last horizon, this horizon)
    horizon   all transactions before it have ended, so nothing commits into the window later

Windows do not overlap, so each row version is read once, ties included. A cursor (a number, a time)
only lets a poll use its index, with a lookback below the highest value, since transactions may
commit late. No cursor is used until the snapshot is caught up. A column of xid8 with the
transaction is cursor and window in one. A window with more rows than a batch is read in parts, in
the order of ctid; rows that change meanwhile belong to a later window.
"""

import math
import time
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
from psycopg import sql

from ......events.commits import Document
from ....spi.errors import BadInput
from ..names import TableName
from . import keys
from .cursors import Cursor, CursorValue, written_within
from .reading import TableReader
from .session import DatabaseSnapshot, Horizon

FURTHEST: Final = 1 << 31
"""The most transactions between two polls, since xmin has 32 bits."""


class TablePosition(NamedTuple):
    """The position in a table's new rows, from its offset."""

    horizon: int
    """All transactions before it are read; 0: only the cursor determines what is read."""
    cursor: CursorValue
    until: int | None
    """The end of a partly read window."""
    at: str | None
    """The ctid of its last row that was read."""
    highest: CursorValue
    """The highest cursor value that was read of it."""
    is_whole: bool
    """Whether there is no snapshot to read or to catch up with."""
    begin: int | None
    """The horizon of the snapshot, if there is one."""
    file: int | None = None
    """The table's relfilenode, if a window is partly read: ctids belong to it."""
    oid: int = 0
    """The table's oid; 0: unknown."""
    timeline: int = 0
    """The server's timeline when the table was first read; 0: unknown."""

    @classmethod
    def parse(cls, offset: Document) -> "TablePosition":
        """Parse an offset."""
        get: Any = offset.get
        cursor = get("cursor")
        return cls(
            int(get("horizon") or 0),
            cursor,
            get("until"),
            get("at"),
            get("highest", cursor),
            bool(get("whole")),
            get("begin"),
            get("file"),
            int(get("oid") or 0),
            int(get("timeline") or 0),
        )

    @classmethod
    def at_horizon(
        cls, horizon: int, cursor: CursorValue, begin: int | None, oid: int
    ) -> "TablePosition":
        """Return the position at a horizon; `begin` is the horizon of the snapshot."""
        return cls(horizon, cursor, None, None, cursor, begin is None, begin, oid=oid)

    def remark(self, name: TableName, horizon: Horizon) -> str:
        """Return the remark that the server was failed over; empty: it was not."""
        if not self.timeline or horizon.timeline in {0, self.timeline}:
            return ""
        return (
            f"the server went from timeline {self.timeline} to {horizon.timeline} (a failover): if "
            f"the new primary lacked commits, rows of {name} that were written since may not be "
            "read, for they have the old transactions' numbers: read it again (seek to earliest). "
            f"If it lacked none, set timeline in its offset to {horizon.timeline}"
        )

    @property
    def document(self) -> Document:
        """The offset."""
        fields: dict[str, Any] = {"horizon": self.horizon}
        if self.cursor is not None:
            fields["cursor"] = self.cursor
        if self.until is not None:
            fields |= {"until": self.until, "at": self.at}
            if self.file is not None:
                fields["file"] = self.file
            if self.highest is not None:
                fields["highest"] = self.highest
        if self.begin is not None:
            fields["begin"] = self.begin
        if self.oid:
            fields["oid"] = self.oid
        if self.timeline:
            fields["timeline"] = self.timeline
        return {**fields, "whole": True} if self.is_whole else fields


class WindowRead(NamedTuple):
    """Rows of a window, the new position, and whether the window has more."""

    rows: pa.Table
    place: TablePosition
    is_more: bool


_AT: Final = "at"


@dataclass(frozen=True)
class WindowLook:
    """A poll of a table's new rows in one snapshot, up to a limit of rows."""

    reader: TableReader
    snapshot: DatabaseSnapshot
    seen: Horizon
    """What the snapshot sees."""
    cursor: Cursor
    most: int

    def read(self, place: TablePosition) -> WindowRead:
        """Read the next window of the table, or the next part of the current one."""
        is_catching_up = not place.is_whole and self.cursor.is_narrow
        if self.cursor.is_by_xmin or is_catching_up:
            _check_width(self.reader.name, self.seen, place)
        if is_catching_up:
            return self._catch_up(place)
        until = place.until if place.until is not None else self.seen.lo
        is_exact = place.horizon == 0
        cursor = self.cursor
        written = (
            cursor.before(until, self.seen) if is_exact else cursor.within(place.horizon, until)
        )
        since = cursor.since(place.cursor, exactly=is_exact)
        rows, told, at = self._page(sql.SQL(" AND ").join([since, written]), place)
        highest = cursor.highest(told, place.highest)
        if at is None:
            done = place._replace(
                horizon=until, cursor=highest, until=None, at=None, highest=highest
            )
            return WindowRead(rows, done, is_more=False)
        file = self.reader.shape.file
        begun = place._replace(until=until, at=at, highest=highest, file=file)
        return WindowRead(rows, begun, is_more=True)

    def _catch_up(self, place: TablePosition) -> WindowRead:
        """Read the rows written since the snapshot began, without the cursor.

        A row that was changed before its page was read is missing in the snapshot, and the cursor
        may not show the change. The last of these windows, which is read at once, also has rows
        that were changed again, after an open transaction: later polls would not see them.
        """
        until = place.until if place.until is not None else self.seen.lo
        window = written_within(place.horizon, until)
        if place.at is None:
            is_old = self.cursor.is_old(place.cursor, until)
            beyond = sql.SQL(" AND ").join([written_within(until, self.seen.hi), is_old])
            rows, _, at = self._page(sql.SQL("({} OR ({}))").format(window, beyond), place)
            if at is None:
                done = place._replace(horizon=until, is_whole=True, begin=None)
                return WindowRead(rows, done, is_more=False)
        rows, _, at = self._page(window, place)
        if at is None:
            done = place._replace(horizon=until, until=None, at=None)
            return WindowRead(rows, done, is_more=True)
        begun = place._replace(until=until, at=at, file=self.reader.shape.file)
        return WindowRead(rows, begun, is_more=True)

    def _page(
        self, window: sql.Composed, place: TablePosition
    ) -> tuple[pa.Table, dict[str, pa.ChunkedArray], str | None]:
        """Read rows in the order of ctid; return the last ctid, None: there are no more.

        Raises `BadInput` if the table was rewritten, so that ctids are invalid.
        """
        parts: list[sql.Composable] = [window]
        if place.at is not None:
            if place.file not in {None, self.reader.shape.file}:
                raise BadInput(
                    f"{self.reader.name} was rewritten (VACUUM FULL, CLUSTER, a type was changed) "
                    "while many rows of it were read in parts, so that what is left of them cannot "
                    "be told from what was read: read it again (seek to earliest)"
                )
            parts.append(sql.SQL("ctid > {}::tid").format(sql.Literal(place.at)))
        beside = {_AT: sql.SQL("ctid::text"), **self.cursor.beside}
        order = sql.SQL("ORDER BY ctid LIMIT {}").format(sql.Literal(self.most))
        where = sql.SQL(" AND ").join(parts)
        rows, told = self.reader.read(self.snapshot, where, beside, order)
        return rows, told, told[_AT][-1].as_py() if rows.num_rows >= self.most else None


@dataclass
class TableAudit:
    """Counts the rows of a table that were committed so late that polls have missed them.

    A poll by a cursor sees rows down to the lookback below the highest value that was read. Values
    only grow: so rows that are below that at one audit, and were written since, were missed by all
    polls until the next audit. Rows that fell below it only meanwhile are not counted, so the count
    is a lower bound.
    """

    interval_s: float
    """The time between audits; 0: there are none."""
    missed: int = 0
    """The lower bound of missed rows."""
    _at: float = -math.inf
    """The monotonic time of the last audit."""
    _since: TablePosition | None = None
    """The position at the last audit."""

    def count(
        self, snapshot: DatabaseSnapshot, reader: TableReader, cursor: Cursor, place: TablePosition
    ) -> None:
        """Make an audit if it is due; `place` is the present position."""
        may_miss = self.interval_s and cursor.is_by_xmin and cursor.is_narrow and place.is_whole
        if not may_miss or place.until is not None or not self._is_due:
            return
        since, self._since, self._at = self._since, place, time.monotonic()
        if since is None or since.horizon >= place.horizon:
            return
        window = written_within(since.horizon, place.horizon)
        is_old = cursor.is_old(since.cursor, since.horizon)
        query = sql.SQL("SELECT count(*) FROM {} WHERE {} AND {}")
        (found,) = snapshot.row(query.format(reader.name.only, window, is_old))
        self.missed += found

    def remark(self, name: object) -> str:
        """Return the remark for the status; empty if no rows were missed."""
        if not self.missed:
            return ""
        return (
            f"at least {self.missed} rows of {name} were added later than {keys.LOOKBACK_MS} or "
            f"{keys.LOOKBACK_ROWS} looks back, or changed under an old value, and were not read: "
            "raise it, and read the table again (seek to earliest)"
        )

    @property
    def _is_due(self) -> bool:
        return time.monotonic() - self._at >= self.interval_s


def check_place(name: TableName, seen: Horizon, place: TablePosition) -> None:
    """Raise `BadInput` if a position is ahead of the database, which was restored."""
    if place.horizon > seen.hi:
        raise BadInput(
            f"{name} was read up to transaction {place.horizon}, and the database knows of none "
            f"after {seen.hi}: it was restored, or is another one. What it holds may have been "
            "read or not: read it again (seek to earliest), or go on with what comes (to latest)"
        )


def _check_width(name: TableName, seen: Horizon, place: TablePosition) -> None:
    """Raise `BadInput` if a window is too wide for the 32 bits of xmin."""
    if place.horizon and seen.hi - place.horizon >= FURTHEST:
        raise BadInput(
            f"{name} was not looked at for {seen.hi - place.horizon} transactions, and rows know "
            "only the last half of 2^32: read it again (seek to earliest)"
        )
