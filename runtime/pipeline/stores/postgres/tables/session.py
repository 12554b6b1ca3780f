# pyright: basic
"""The read session of a task: each read-only transaction sees one snapshot.

A crashed server forgets what it had not flushed: transactions that were rolled back, or that
committed asynchronously. It reuses their ids, and an offset that takes them for finished would hide
new transactions. So before an offset is committed, all that its snapshot saw must be on the
server's disk (`wait_durable`).
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
from ..names import TableName

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_IS_DURABLE = sql.SQL("SELECT pg_current_wal_flush_lsn() >= {}::pg_lsn AS is_durable")
_FLUSH = "SELECT pg_logical_emit_message(true, 'fairlead', '')"
"""An empty logical message, whose commit flushes the earlier WAL."""
_SOON_S = (0.0, 0.001, 0.004, 0.015)
"""The pauses before checks whether other commits have flushed it, before the own flush."""


class TableChanged(Exception):  # noqa: N818  # what is the case
    """A column or table does not exist any more."""


@contextmanager
def naming(table: TableName) -> Generator[None]:
    """Name the table in errors about its values."""
    name = f"table {table}: "
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{name}{error}") from None
    except adbc.Error as error:
        error.add_note(name)  # the session makes another error of it
        raise


class ReadSession:
    """An ADBC connection that is opened on demand, and again after a loss."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._connection: adbc.Connection | None = None
        self._cursor: adbc.Cursor | None = None

    @contextmanager
    def snapshot(self) -> Generator["DatabaseSnapshot"]:
        """Yield the snapshot of a transaction; raises `SourceAway`, `BadInput`, `TableChanged`."""
        try:
            cursor = self._open()
            cursor.execute(_BEGIN)
            yield DatabaseSnapshot(cursor)
            cursor.execute("COMMIT")
        except Away as away:
            raise SourceAway(str(away)) from None
        except adbc.Error as error:
            self._give_up(error)
            raise self._translated(error) from None
        except BaseException as error:
            self._give_up(error)
            raise

    def wait_durable(self, horizon: "Horizon") -> None:
        """Wait until all that a snapshot saw is on the server's disk; raises `SourceAway`.

        On a server in recovery it always is.
        """
        if not horizon.written:
            return
        try:
            if not any(self._is_durable(horizon, pause_s) for pause_s in _SOON_S):
                self._open().execute(_FLUSH)
        except Away as away:
            raise SourceAway(str(away)) from None
        except adbc.Error as error:
            self._give_up(error)
            raise self._translated(error) from None

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
        """Close the session."""
        for each in (self._cursor, self._connection):
            if each is not None:
                with suppress(adbc.Error):
                    each.close()
        self._cursor = self._connection = None

    def _give_up(self, error: BaseException) -> None:
        """End the transaction, and close the session if it may be unusable."""
        try:
            if self._cursor is not None:
                self._cursor.execute("ROLLBACK")
        except adbc.Error:
            self.close()
        if isinstance(error, adbc.Error) and is_away(error):
            self.close()

    def _translated(self, error: Exception) -> Exception:
        names = "".join(getattr(error, "__notes__", ()))
        text = f"{names}{self.server.shown}: {brief(str(error))}"
        if getattr(error, "sqlstate", None) in {"42P01", "42703"}:
            return TableChanged(text)
        if is_away(error):
            return SourceAway(text)
        if is_data(error) or getattr(error, "sqlstate", None) == "42501":  # it may not be read
            return BadInput(text)
        return error


class Horizon(NamedTuple):
    """The visibility of a snapshot: all transactions before `lo`, none from `hi` on (64 bits)."""

    lo: int
    hi: int
    written: str = ""
    """The end of the WAL then; empty: in recovery, or unknown."""
    timeline: int = 0
    """The timeline of the WAL, which a failover changes; 0: in recovery, or unknown."""


class DatabaseSnapshot:
    """One snapshot of the database."""

    def __init__(self, cursor: "adbc.Cursor") -> None:
        self._cursor = cursor

    def table(self, query: sql.Composable, parameters: pa.RecordBatch | None = None) -> pa.Table:
        """Return the result of a query; `parameters` has one row."""
        self._cursor.execute(query.as_string(), parameters)
        return self._cursor.fetch_arrow_table()

    def row(self, query: sql.Composable) -> tuple[Any, ...]:
        """Return the single row of a query."""
        (found,) = self.table(query).to_pylist()
        return tuple(found.values())

    def horizon(self) -> Horizon:
        """Return its visibility."""
        return Horizon(*self.row(_HORIZON))


_HORIZON = sql.SQL(
    "SELECT pg_snapshot_xmin(s)::text::int8 AS lo, pg_snapshot_xmax(s)::text::int8 AS hi,"
    " CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_current_wal_insert_lsn()::text END AS written,"
    " CASE WHEN pg_is_in_recovery() THEN 0 ELSE ('x' || left(pg_walfile_name("
    "pg_current_wal_insert_lsn()), 8))::bit(32)::int8 END AS timeline"
    " FROM pg_current_snapshot() s"
)
