# pyright: basic, reportAttributeAccessIssue=false
"""Writes rows directly to their tables, in the transaction that would stage them.

COPY writes to the table itself if it can. Otherwise rows pass through an unlogged table of that
transaction, which need not survive a crash.
"""

from collections.abc import Sequence
from typing import NamedTuple

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from psycopg import sql

from ..names import TableName
from . import keys, staging
from .changes import TableChange, look_at_deferred, make_changes, rows_refused
from .layout import TargetRows
from .tables import TargetTable


class TargetBatch(NamedTuple):
    """The rows of a batch for one table, and the change that they make."""

    target: TargetTable
    rows: TargetRows
    change: TableChange


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
