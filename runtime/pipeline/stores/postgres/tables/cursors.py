# pyright: basic, reportAttributeAccessIssue=false
"""Cursors: the SQL conditions for new rows in each incremental mode."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from ....spi.config import ConfigInvalid, ParsedConfig
from ..names import TableName
from . import keys
from .catalog import TableShape
from .session import DatabaseSnapshot, Horizon

CursorValue = int | str | None
XMIN_RANGE: Final = 1 << 32
"""The number of transactions after which xmin, which has 32 bits, begins again."""
_XID_MASK: Final = XMIN_RANGE - 1
_TRUE: Final = sql.SQL("true")
_NUMBERS: Final = frozenset({"int2", "int4", "int8", "oid"})
_TIMES: Final = frozenset({"timestamp", "timestamptz", "date"})


def written_within(lo: int, hi: int) -> sql.Composed:
    """Return the condition that a row's transaction is in [lo, hi), by its xmin.

    xmin has 32 bits, so the window must be smaller than 2^32; a row of 2^32 transactions ago looks
    new.
    """
    shape = "((xmin::text::int8 - {}) & {}) < {}"
    return sql.SQL(shape).format(*map(sql.Literal, (lo, _XID_MASK, max(0, hi - lo))))


def written_before(horizon: int, seen: Horizon) -> sql.Composed:
    """Return the condition that a row was written before a transaction."""
    return sql.SQL("NOT ({})").format(written_within(horizon, seen.hi))


class Cursor:
    """Finds the new rows of a table."""

    beside: Mapping[str, sql.Composable] = {}
    """The expressions to read for `highest`, beside a row's columns."""
    highest_of_all: sql.Composable | None = None
    """The expression of the highest value in a table; None: there are no values."""
    is_by_xmin: bool = True
    """Whether its windows are of xmin, which has 32 bits."""
    is_narrow: bool = True
    """Whether a poll may miss rows that were written meanwhile."""

    def since(self, value: CursorValue, *, exactly: bool) -> sql.Composable:
        """Return the condition that a row is not below a value; not `exactly`: with lookback."""
        del value, exactly
        return _TRUE

    def highest(self, read: dict[str, pa.ChunkedArray], before: CursorValue) -> CursorValue:
        """Return the highest value so far."""
        del read
        return before

    def highest_in(self, snapshot: DatabaseSnapshot, name: TableName) -> CursorValue:
        """Return the highest value in a table; None: there is none."""
        if self.highest_of_all is None:
            return None
        query = sql.SQL("SELECT {} AS highest FROM {}").format(self.highest_of_all, name.only)
        highest: CursorValue = snapshot.row(query)[0]
        return highest

    def is_old(self, value: CursorValue, until: int) -> sql.Composable:
        """Return the condition that polls from a value and a horizon on would miss a row."""
        del until
        return sql.SQL("({}) IS NOT TRUE").format(self.since(value, exactly=False))

    def within(self, lo: int, hi: int) -> sql.Composable:
        """Return the condition that a row is in a window of transactions."""
        return written_within(lo, hi)

    def before(self, horizon: int, seen: Horizon) -> sql.Composable:
        """Return the condition that a row existed before a transaction."""
        return written_before(horizon, seen)

    def in_snapshot(self, horizon: int, seen: Horizon) -> sql.Composable:
        """Return the condition that a row belongs to the snapshot of a horizon."""
        return written_before(horizon, seen)


class AnyRow(Cursor):
    """Finds new rows by xmin alone, with full scans."""

    is_narrow = False


class Everything(AnyRow):
    """Reads each row once, in bulk mode."""

    def in_snapshot(self, horizon: int, seen: Horizon) -> sql.Composable:
        """Return no condition."""
        del horizon, seen
        return _TRUE


@dataclass(frozen=True)
class TransactionCursor(Cursor):
    """A column of xid8 with the transaction that inserted the row."""

    column: str
    is_by_xmin: bool = False

    def is_old(self, value: CursorValue, until: int) -> sql.Composable:
        """Return the condition that the row was inserted before a horizon, or has no value."""
        del value
        shape = "({} >= {}::xid8) IS NOT TRUE"
        return sql.SQL(shape).format(sql.Identifier(self.column), sql.Literal(str(until)))

    def within(self, lo: int, hi: int) -> sql.Composable:
        """Return the condition on the column, which can use its index."""
        shape = "{0} >= {1}::xid8 AND {0} < {2}::xid8"
        bounds = (sql.Literal(str(each)) for each in (lo, hi))
        return sql.SQL(shape).format(sql.Identifier(self.column), *bounds)

    def before(self, horizon: int, seen: Horizon) -> sql.Composable:
        """Return the condition on the column; rows older than the column have null."""
        del seen
        shape = "({0} IS NULL OR {0} < {1}::xid8)"
        return sql.SQL(shape).format(sql.Identifier(self.column), sql.Literal(str(horizon)))


@dataclass(frozen=True)
class NumberCursor(Cursor):
    """A growing column of integers."""

    column: str
    lookback: int

    @property
    def beside(self) -> Mapping[str, sql.Composable]:  # type: ignore[override]
        """The number."""
        return {"number": sql.SQL("{}::int8").format(sql.Identifier(self.column))}

    @property
    def highest_of_all(self) -> sql.Composable:  # type: ignore[override]
        """The highest number."""
        return sql.SQL("max({})::int8").format(sql.Identifier(self.column))

    def since(self, value: CursorValue, *, exactly: bool) -> sql.Composable:
        """Return the condition on the number."""
        if value is None:
            return _TRUE
        least = int(value) - (0 if exactly else self.lookback)
        return sql.SQL("{} > {}").format(sql.Identifier(self.column), sql.Literal(least))

    def highest(self, read: dict[str, pa.ChunkedArray], before: CursorValue) -> CursorValue:
        """Return the highest number."""
        found = pc.max(read["number"]).as_py()
        given = [int(each) for each in (found, before) if each is not None]
        return max(given, default=None)


@dataclass(frozen=True)
class TimeCursor(Cursor):
    """Timestamp columns; the first that is not null is the cursor."""

    columns: tuple[str, ...]
    lookback_ms: int

    @property
    def beside(self) -> Mapping[str, sql.Composable]:  # type: ignore[override]
        """The time, capped at now: a future time would hide later rows until then."""
        return {"time": sql.SQL("least({}, now())::text").format(self._time)}

    @property
    def highest_of_all(self) -> sql.Composable:  # type: ignore[override]
        """The highest time."""
        return sql.SQL("max(least({}, now()))::text").format(self._time)

    def since(self, value: CursorValue, *, exactly: bool) -> sql.Composable:
        """Return the condition on the time."""
        if value is None:
            return _TRUE
        back = sql.Literal(0 if exactly else self.lookback_ms)
        shape = "{} >= {}::timestamptz - {} * interval '1 ms'"
        return sql.SQL(shape).format(self._time, sql.Literal(str(value)), back)

    def highest(self, read: dict[str, pa.ChunkedArray], before: CursorValue) -> CursorValue:
        """Return the highest time; all are texts in UTC of the same format."""
        times: list[str] = [each for each in read["time"].to_pylist() if each]
        given = [] if before is None else [str(before)]
        return max([*times, *given], default=None)

    @property
    def _time(self) -> sql.Composable:
        names = sql.SQL(", ").join(map(sql.Identifier, self.columns))
        return sql.SQL("coalesce({})").format(names) if len(self.columns) > 1 else names


def cursor_of(settings: ParsedConfig, name: object, shape: TableShape) -> Cursor:
    """Return the cursor of a config for a table; raises `ConfigInvalid`."""
    mode = settings.text(keys.MODE)
    if mode == keys.BULK:
        return Everything()
    if mode in {keys.XMIN, keys.LOG}:
        return AnyRow()
    if mode == keys.INCREMENT:
        column = settings.text(keys.INCREMENTING)
        kind = _kind(settings, keys.INCREMENTING, name, shape, column)
        if kind == "xid8":
            return TransactionCursor(column)
        if kind in _NUMBERS:
            return NumberCursor(column, settings.number(keys.LOOKBACK_ROWS))
        raise ConfigInvalid(
            f"{keys.INCREMENTING}: {name} has {column} as {kind}: it must be a whole number or xid8"
        )
    columns = settings.items(keys.TIMESTAMP)
    for column in columns:
        kind = _kind(settings, keys.TIMESTAMP, name, shape, column, some=len(columns) > 1)
        if kind not in _TIMES:
            raise ConfigInvalid(
                f"{keys.TIMESTAMP}: {name} has {column} as {kind}, which is no time"
            )
    return TimeCursor(columns, settings.number(keys.LOOKBACK_MS))


def _kind(  # it tells about all of them
    settings: ParsedConfig,
    key: str,
    name: object,
    shape: TableShape,
    column: str,
    some: bool = False,  # noqa: FBT001, FBT002
) -> str:
    kind = shape.kinds.get(column)
    if kind is None:
        raise ConfigInvalid(f"{key}: {name} has no column {column}")
    if column in shape.nullable and settings.flag(keys.NON_NULL) and not some:
        raise ConfigInvalid(
            f"{key}: {column} of {name} may be null, and such rows are not seen after the "
            f"snapshot: make it NOT NULL, or set {keys.NON_NULL}=false"
        )
    return kind
