# pyright: basic
"""The session of a task that reads: each transaction sees one snapshot, and writes nothing.

A server that crashes forgets what it had not flushed: transactions that were rolled back, or that
committed without waiting. It gives their numbers again, and an offset that counts them as over
would hide what new transactions write. So before an offset is committed, what its snapshot saw has
to be on the server's disk (`wait_durable`).
"""

import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from psycopg import sql

from ....spi.errors import Away, BadInput, SourceAway
from ..connecting import Server, brief, is_away, is_data

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_IS_DURABLE = sql.SQL("SELECT pg_current_wal_flush_lsn() >= {}::pg_lsn AS is_durable")
_FLUSH = "SELECT pg_logical_emit_message(true, 'fairlead', '')"
"""A transaction that says nothing to anybody: its commit flushes all that was written before it."""
_SOON_S = (0.0, 0.001, 0.004, 0.015)
"""When to look whether others' commits have flushed it, before that is done for them."""


class TableChanged(Exception):  # noqa: N818  # what is the case
    """A column, or a table, that was asked for is not there any more."""


class ReadSession:
    """A connection of ADBC, made when it is needed and made anew after it was lost."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._connection: adbc.Connection | None = None
        self._cursor: adbc.Cursor | None = None

    @contextmanager
    def snapshot(self) -> Generator["DatabaseSnapshot"]:
        """Yield what reads in one transaction; raises `SourceAway`, `BadInput`, `TableChanged`."""
        try:
            cursor = self._open()
            cursor.execute(_BEGIN)
            yield DatabaseSnapshot(cursor)
            cursor.execute("COMMIT")
        except Away as away:
            raise SourceAway(str(away)) from None
        except adbc.Error as error:
            self._give_up(error)
            raise self._told(error) from None
        except BaseException as error:
            self._give_up(error)
            raise

    def wait_durable(self, seen: "Horizon") -> None:
        """Have all that a snapshot saw be on the server's disk; raises `SourceAway`.

        A server in recovery has it there before it shows it.
        """
        if not seen.written:
            return
        try:
            if not any(self._is_durable(seen, pause_s) for pause_s in _SOON_S):
                self._open().execute(_FLUSH)
        except Away as away:
            raise SourceAway(str(away)) from None
        except adbc.Error as error:
            self._give_up(error)
            raise self._told(error) from None

    def _is_durable(self, seen: "Horizon", pause_s: float) -> bool:
        time.sleep(pause_s)
        query = _IS_DURABLE.format(sql.Literal(seen.written))
        (is_durable,) = DatabaseSnapshot(self._open()).row(query)
        return bool(is_durable)

    def _open(self) -> "adbc.Cursor":
        if self._cursor is None:
            self._connection = self.server.connect_adbc(autocommit=True)
            self._cursor = self._connection.cursor()
        return self._cursor

    def close(self) -> None:
        """End the session."""
        for each in (self._cursor, self._connection):
            if each is not None:
                with suppress(adbc.Error):
                    each.close()
        self._cursor = self._connection = None

    def _give_up(self, error: BaseException) -> None:
        """End the transaction, and the session where it may be of no more use."""
        try:
            if self._cursor is not None:
                self._cursor.execute("ROLLBACK")
        except adbc.Error:
            self.close()
        if isinstance(error, adbc.Error) and is_away(error):
            self.close()

    def _told(self, error: Exception) -> Exception:
        text = f"{self.server.shown}: {brief(str(error))}"
        if getattr(error, "sqlstate", None) in {"42P01", "42703"}:
            return TableChanged(text)
        if is_away(error):
            return SourceAway(text)
        if is_data(error) or getattr(error, "sqlstate", None) == "42501":  # it may not be read
            return BadInput(text)
        return error


class Horizon(NamedTuple):
    """What a snapshot sees: all transactions before `lo`, none from `hi` on; both count 64 bits."""

    lo: int
    hi: int
    written: str = ""
    """How far the server's log had been written by then; "": it is in recovery, or nobody asked."""


class DatabaseSnapshot:
    """One snapshot of the database."""

    def __init__(self, cursor: "adbc.Cursor") -> None:
        self._cursor = cursor

    def table(self, query: sql.Composable, parameters: pa.RecordBatch | None = None) -> pa.Table:
        """Return what a query gives, as ADBC makes it; the parameters have one row."""
        self._cursor.execute(query.as_string(), parameters)
        return self._cursor.fetch_arrow_table()

    def row(self, query: sql.Composable) -> tuple[Any, ...]:
        """Return the only row that a query gives."""
        (found,) = self.table(query).to_pylist()
        return tuple(found.values())

    def horizon(self) -> Horizon:
        """Return which transactions it sees."""
        return Horizon(*self.row(_HORIZON))


_HORIZON = sql.SQL(
    "SELECT pg_snapshot_xmin(s)::text::int8 AS lo, pg_snapshot_xmax(s)::text::int8 AS hi,"
    " CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_current_wal_insert_lsn()::text END AS written"
    " FROM pg_current_snapshot() s"
)
