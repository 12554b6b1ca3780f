# pyright: basic
"""The SQL that applies staged rows to a table, and a dry run of it before the commit.

Violations of a foreign key, a trigger or a second unique index show only at the write. So for a
table with these, the batch is applied before the commit in a savepoint that is rolled back: a
refused row is then a bad row, while a committed batch could not be published.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import adbc_driver_postgresql.dbapi as adbc
from psycopg import sql

from ....spi.errors import RowsRefused
from ..connecting import brief, is_away
from ..names import TableName, columns, typed_columns
from . import keys
from .layout import IS_DELETE, SEQUENCE, TargetRows
from .packing import packed_column, staged_rows
from .tables import TargetColumn, TargetTable

_NOT_OF_ROWS: Final = frozenset({"42", "0A", "25", "55", "HV", "XX"})
"""SQLSTATE classes of errors of the statement, the table, or a server, not of rows."""


class TableChange(NamedTuple):
    """The statements that apply the rows of one staging table to a table."""

    target: TableName
    columns: Mapping[str, TargetColumn]
    """The target's columns that are staged, by name."""
    key: Sequence[str]
    mode: str
    staged: TableName
    has_deletes: bool
    order: str = ""
    """The column with the version of a row; empty: the last row wins."""
    packed: str = ""
    """The staged column that also has a row's position; see `packing`."""

    @property
    def statements(self) -> Sequence[sql.Composed]:
        """Return the statements to run, in this order."""
        if not self.key:
            return (self._insert(self._rows),)
        if self.mode == keys.UPDATE:
            return (self._update,) if self._changes else ()
        # A deleted row's value of a second unique index is free for the rows that are put in.
        return (self._delete, self._upsert) if self.has_deletes else (self._upsert,)

    @property
    def _rows(self) -> sql.Composed:
        """Return the staged rows, cast to the target's current types."""
        return sql.SQL("SELECT {} FROM {}").format(self._values, self._staged)

    @property
    def _last(self) -> sql.Composed:
        """Return the last row of each key, in the original order."""
        more = columns([SEQUENCE, IS_DELETE] if self.has_deletes else [SEQUENCE])
        query = sql.SQL(
            "SELECT DISTINCT ON ({0}) * FROM (SELECT {1}, {2} FROM {3}) s ORDER BY {0}, {4}{5} DESC"
        )
        key, at = columns(self.key), sql.Identifier(SEQUENCE)
        first = sql.SQL("{} DESC NULLS LAST, ").format(sql.Identifier(self.order))
        newest = first if self.order else sql.SQL("")
        return query.format(key, self._values, more, self._staged, newest, at)

    @property
    def _staged(self) -> sql.Composable:
        return staged_rows(self.staged, self.columns, self.packed, has_deletes=self.has_deletes)

    @property
    def _values(self) -> sql.Composed:
        return typed_columns({name: each.type for name, each in self.columns.items()})

    @property
    def _kept(self) -> sql.Composed:
        gone = sql.Identifier(IS_DELETE)
        return sql.SQL("NOT l.{}").format(gone) if self.has_deletes else sql.SQL("true").format()

    @property
    def _same(self) -> sql.Composed:
        pairs = (sql.SQL("t.{0} = l.{0}").format(sql.Identifier(each)) for each in self.key)
        return sql.SQL(" AND ").join(pairs)

    @property
    def _changes(self) -> list[str]:
        """The columns that an update sets; the server makes values of GENERATED ALWAYS itself."""
        made = {name for name, each in self.columns.items() if each.is_always_made}
        return [name for name in self.columns if name not in {*self.key, *made}]

    @property
    def _delete(self) -> sql.Composed:
        gone = sql.SQL("DELETE FROM {} t USING ({}) l WHERE {} AND l.{} AND {}")
        is_delete, newer = sql.Identifier(IS_DELETE), self._is_newer("l")
        return gone.format(self.target.sql, self._last, self._same, is_delete, newer)

    @property
    def _upsert(self) -> sql.Composed:
        rows = sql.SQL("SELECT {} FROM ({}) l WHERE {} ORDER BY l.{}")
        at = sql.Identifier(SEQUENCE)
        insert = self._insert(rows.format(columns(self.columns), self._last, self._kept, at))
        sets = sql.SQL(", ").join(
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(each)) for each in self._changes
        )
        does = sql.SQL("UPDATE SET {} WHERE {}").format(sets, self._is_newer("excluded"))
        does = does if self._changes else sql.SQL("NOTHING").format()
        conflict = sql.SQL("{} ON CONFLICT ({}) DO {}")
        return conflict.format(insert, columns(self.key), does)

    @property
    def _update(self) -> sql.Composed:
        sets = sql.SQL(", ").join(
            sql.SQL("{0} = l.{0}").format(sql.Identifier(each)) for each in self._changes
        )
        update = sql.SQL("UPDATE {} t SET {} FROM ({}) l WHERE {} AND {} AND {}")
        newer = self._is_newer("l")
        return update.format(self.target.sql, sets, self._last, self._same, self._kept, newer)

    def _is_newer(self, row: str) -> sql.Composed:
        """Return the condition that a row is not older than the target's row."""
        if not self.order:
            return sql.SQL("true").format()
        shape = sql.SQL("(t.{0} IS NULL OR {1}.{0} >= t.{0})")
        return shape.format(sql.Identifier(self.order), sql.Identifier(row))

    def _insert(self, rows: sql.Composed) -> sql.Composed:
        is_over = any(each.is_always_made for each in self.columns.values())
        over = sql.SQL("OVERRIDING SYSTEM VALUE" if is_over else "")
        insert = sql.SQL("INSERT INTO {} AS t ({}) {} {}")
        return insert.format(self.target.sql, columns(self.columns), over, rows)


def change_of(
    target: TargetTable, batch: TargetRows, staged: TableName, mode: str, order: str
) -> TableChange:
    """Return the change that the rows of a batch make; `staged` is their staging table."""
    found = map(target.by_name.__getitem__, batch.rows.column_names)
    chosen = {each.name: each for each in found if not each.is_computed}
    key = () if mode == keys.INSERT else target.key
    beside = (batch.deletes is not None, order, packed_column(target, batch))
    return TableChange(target.name, chosen, key, mode, staged, *beside)


def try_changes(connection: "adbc.Connection", changes: Sequence[TableChange]) -> None:
    """Apply rows to their tables, and roll back to a savepoint; raises `RowsRefused`.

    It runs in the transaction that stages them. Deferred constraints are checked, too.
    """
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT fairlead_dry_run")
        make_changes(cursor, changes)
        look_at_deferred(cursor, [each.target for each in changes])
        cursor.execute("ROLLBACK TO SAVEPOINT fairlead_dry_run")


def make_changes(cursor: "adbc.Cursor", changes: Sequence[TableChange]) -> None:
    """Apply rows to their tables; raises `RowsRefused`."""
    with rows_refused([each.target for each in changes]):
        for each in changes:
            for statement in each.statements:
                cursor.execute(statement.as_string())


def look_at_deferred(cursor: "adbc.Cursor", targets: Sequence[TableName]) -> None:
    """Check deferred constraints after all rows were applied, since they may span tables.

    Raises `RowsRefused`.
    """
    with rows_refused(targets):
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


@contextmanager
def rows_refused(targets: Sequence[TableName]) -> Generator[None]:
    """Raise errors that rows cause as `RowsRefused`; other errors pass."""
    try:
        yield
    except adbc.Error as error:
        if not is_away(error) and (error.sqlstate or "42")[:2] not in _NOT_OF_ROWS:
            raise RowsRefused(
                f"{' and '.join(map(str, targets))}: a row would be refused: "
                f"{_reason(str(error))}. "
                "Nothing of the batch was written"
            ) from None
        raise


def _reason(text: str) -> str:
    """Return the server's message, with the key in it."""
    details = [each.strip() for each in text.splitlines() if each.startswith("DETAIL:")]
    return " ".join([brief(text), *(each.removeprefix("DETAIL:").strip() for each in details)])
