# pyright: basic, reportAttributeAccessIssue=false
"""Writes rows directly to their tables, in the transaction that would stage them.

COPY writes to the table itself if it can. Otherwise rows pass through an unlogged table of that
transaction, which need not survive a crash.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from ..arrow_types import longest
from ..names import TableName
from . import keys, staging
from .changes import TableChange, look_at_deferred, make_changes, rows_refused
from .layout import TargetRows
from .tables import TargetColumn, TargetTable

_LONG: Final = 500
"""An indexed value of more bytes is tried first: a row of a B-tree has at most 2704."""


class TargetBatch(NamedTuple):
    """The rows of a batch for one table, and the change that they make."""

    target: TargetTable
    rows: TargetRows
    change: TableChange

    @property
    def shows_late(self) -> bool:
        """Whether it shows only at the write that the table refuses a row."""
        given = {*self.rows.rows.column_names}
        columns = (each for each in self.target.columns if each.name in given)
        return self.target.shows_late or any(map(self._is_in_doubt, columns))

    def _is_in_doubt(self, column: TargetColumn) -> bool:
        """Tell whether it has values too long for an index, or nulls that the table may refuse."""
        values, deletes = self.rows.rows[column.name], self.rows.deletes
        if column.name in self.target.indexed and longest(values) > _LONG:
            return True
        if not column.refuses_null or not values.null_count:
            return False
        nulls = values.is_null()
        return bool(pc.any(nulls if deletes is None else pc.greater(nulls, deletes)).as_py())


def put_in(connection: "adbc.Connection", batches: Sequence[TargetBatch]) -> None:
    """Write the rows of a batch to their tables; raises `RowsRefused`.

    It runs in the connection's transaction; deferred constraints are checked, too.
    """
    with connection.cursor() as cursor:
        for each in batches:
            if each.rows.is_emptied:
                staging.refuse_truncate(cursor, each.target.name)
                cursor.execute(sql.SQL("TRUNCATE {}").format(each.target.name.sql).as_string())
            if not _copied(cursor, each):
                staging.write(connection, each.change.staged, each.target, each.rows, logged=False)
                make_changes(cursor, [each.change])
                dropped = sql.SQL("DROP TABLE {}").format(each.change.staged.sql)
                cursor.execute(dropped.as_string())
        look_at_deferred(cursor, [each.target.name for each in batches])


def _copied(cursor: "adbc.Cursor", batch: TargetBatch) -> bool:
    """Write rows to their table by COPY, if possible; tell whether it was."""
    target, rows, change = batch
    if change.mode != keys.INSERT or rows.deletes is not None or not target.takes_copy:
        return False
    given = staging.columns_of(target, rows)
    if any(each.is_cast for each in given.values()):
        return False
    values = pa.table({name: each.values for name, each in given.items()})
    name: TableName = target.name
    with rows_refused([name]):
        cursor.adbc_ingest(name.table, values, mode="append", db_schema_name=name.schema)
    return True
