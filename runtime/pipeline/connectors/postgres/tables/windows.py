# pyright: basic
"""What commits after the snapshot: each look reads a window of transactions, and loses none.

    window    rows whose xmin lies in [last horizon, this horizon)
    horizon   all transactions before it have ended, so nothing commits into the window later

Two windows never overlap, so no row version comes twice, ties included. A cursor (a number, a
time) only keeps the look on its index: rows a while behind the highest one are looked at as well,
since their transaction may have ended late. Until the snapshot is caught up with, no cursor counts.
A column of xid8 that holds the transaction itself is cursor and window in one. A window with more
rows than a batch may hold is read on in the order of the rows' places; those that change meanwhile
belong to a later window.
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
"""So many transactions may lie between two looks, as a row knows 32 bits of its own."""


class TablePlace(NamedTuple):
    """How far a table was followed, as its offset says."""

    horizon: int
    """All before it is read; 0: nothing is, and the cursor alone says what to leave out."""
    cursor: CursorValue
    until: int | None
    """Where the window ends that is half read."""
    at: str | None
    """The place of the last row of it that was read."""
    highest: CursorValue
    """The highest cursor in what was read of it."""
    is_whole: bool
    """Whether there is no snapshot to be read, or to be caught up with."""
    begin: int | None
    """The horizon of the snapshot, where there is one."""
    file: int | None = None
    """The number of the table's file, where a window is half read: places are of that file."""

    @classmethod
    def parse(cls, offset: Document) -> "TablePlace":
        """Return what an offset says."""
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
        )

    @classmethod
    def at_horizon(cls, horizon: int, cursor: CursorValue, begin: int | None) -> "TablePlace":
        """Return the place of what is read up to a horizon; `begin` is that of its snapshot."""
        return cls(horizon, cursor, None, None, cursor, begin is None, begin)

    @property
    def document(self) -> Document:
        """The offset."""
        found: dict[str, Any] = {"horizon": self.horizon}
        if self.cursor is not None:
            found["cursor"] = self.cursor
        if self.until is not None:
            found |= {"until": self.until, "at": self.at}
            if self.file is not None:
                found["file"] = self.file
            if self.highest is not None:
                found["highest"] = self.highest
        if self.begin is not None:
            found["begin"] = self.begin
        return {**found, "whole": True} if self.is_whole else found


class WindowRead(NamedTuple):
    """Rows of a window, where that leads to, and whether there are more of it."""

    rows: pa.Table
    place: TablePlace
    is_more: bool


_AT: Final = "at"


@dataclass(frozen=True)
class WindowLook:
    """One look at what commits to a table: by a snapshot, for so many rows at most."""

    reader: TableReader
    snapshot: DatabaseSnapshot
    seen: Horizon
    """What the snapshot sees."""
    cursor: Cursor
    most: int

    def read(self, place: TablePlace) -> WindowRead:
        """Read the next window of the table, or on in the one that is half read."""
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

    def _catch_up(self, place: TablePlace) -> WindowRead:
        """Read what was written since the snapshot began, whatever its cursor says.

        A row that was changed before its page was read is missing in the snapshot, and no cursor
        need tell of the change. The last of these windows, which is read at once, has those of
        them as well that were changed again, behind an open transaction: later looks would not
        see them.
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
        self, window: sql.Composed, place: TablePlace
    ) -> tuple[pa.Table, dict[str, pa.ChunkedArray], str | None]:
        """Read rows in the order of their places; return where the last is, None: that was all.

        Raises `BadInput` if the table has another file than the places are of.
        """
        parts: list[sql.Composable] = [window]
        if place.at is not None:
            if place.file not in {None, self.reader.shape.file}:
                raise BadInput(
                    f"{self.reader.name} was rewritten (VACUUM FULL, CLUSTER, a type was changed) "
                    "while many rows of it were read in parts, so that what is left of them cannot "
                    "be told from what was read: read it anew (seek to earliest)"
                )
            parts.append(sql.SQL("ctid > {}::tid").format(sql.Literal(place.at)))
        beside = {_AT: sql.SQL("ctid::text"), **self.cursor.beside}
        order = sql.SQL("ORDER BY ctid LIMIT {}").format(sql.Literal(self.most))
        where = sql.SQL(" AND ").join(parts)
        rows, told = self.reader.rows.read(self.snapshot, where, beside, order)
        return rows, told, told[_AT][-1].as_py() if rows.num_rows >= self.most else None


@dataclass
class TableAudit:
    """Counts the rows of a table that were written so late that its looks have not seen them.

    A look by a cursor sees rows down to the lookback behind the highest value that was read. Values
    only grow: so rows that lie further back than that at one audit, and were written since, no look
    until the next audit has seen. Those that fell behind only meanwhile are not counted, so the
    count is the least that there can be.
    """

    interval_s: float
    """How often they are counted; 0: never."""
    missed: int = 0
    """How many there are at least."""
    _at: float = -math.inf
    """When they were counted last, on the monotonic clock."""
    _since: TablePlace | None = None
    """How far the table was followed then."""

    def count(
        self, snapshot: DatabaseSnapshot, reader: TableReader, cursor: Cursor, place: TablePlace
    ) -> None:
        """Count them if it is time to; `place` is how far the table is followed now."""
        may_miss = self.interval_s and cursor.is_by_xmin and cursor.is_narrow and place.is_whole
        if not may_miss or place.until is not None or not self._is_due:
            return
        since, self._since, self._at = self._since, place, time.monotonic()
        if since is None or since.horizon >= place.horizon:
            return
        window = written_within(since.horizon, place.horizon)
        is_old = cursor.is_old(since.cursor, since.horizon)
        query = sql.SQL("SELECT count(*) FROM {} WHERE {} AND {}")
        (found,) = snapshot.row(query.format(reader.name.sql, window, is_old))
        self.missed += found

    def remark(self, name: object) -> str:
        """Return what a status tells of them, nothing if there are none."""
        if not self.missed:
            return ""
        return (
            f"at least {self.missed} rows of {name} were added later than {keys.LOOKBACK_MS} or "
            f"{keys.LOOKBACK_ROWS} looks back, or changed under an old value, and were not read: "
            "raise it, and read the table anew (seek to earliest)"
        )

    @property
    def _is_due(self) -> bool:
        return time.monotonic() - self._at >= self.interval_s


def check_place(name: TableName, seen: Horizon, place: TablePlace) -> None:
    """Raise `BadInput` if the database has not come as far as a place."""
    if place.horizon > seen.hi:
        raise BadInput(
            f"{name} was read up to transaction {place.horizon}, and the database knows of none "
            f"after {seen.hi}: it was restored, or is another one. What it holds may have been "
            "read or not: read it anew (seek to earliest), or go on with what comes (to latest)"
        )


def _check_width(name: TableName, seen: Horizon, place: TablePlace) -> None:
    """Raise `BadInput` if rows of the window cannot be told from older ones any more."""
    if place.horizon and seen.hi - place.horizon >= FURTHEST:
        raise BadInput(
            f"{name} was not looked at for {seen.hi - place.horizon} transactions, and rows know "
            "only the last half of 2^32: read it anew (seek to earliest)"
        )
