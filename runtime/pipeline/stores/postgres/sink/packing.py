# pyright: basic
"""Staging tables for rows with as many columns as PostgreSQL's tables can have.

There is no room for the columns that a staging table has beside those of its target: a row's
position, and whether it deletes. So one column is an array of texts that has these and its value.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
from psycopg import sql

from ..arrow_types import StagedColumn, staged
from ..names import TableName
from .layout import IS_DELETE, SEQUENCE, TargetRows
from .tables import TargetColumn, TargetTable

_MOST_COLUMNS: Final = 1600
_TEXTS: Final = ("text", "varchar", "json", "jsonb", "bpchar")


def packed_column(target: TargetTable, batch: TargetRows) -> str:
    """Return the column that also carries the order and the delete flag; empty: there is room."""
    written = [at for at in batch.rows.schema if not target.by_name[at.name].is_computed]
    beside = 0 if not target.key else 1 if batch.deletes is None else 2
    if len(written) + beside <= _MOST_COLUMNS:
        return ""
    free = [target.by_name[at.name] for at in written if not pa.types.is_nested(at.type)]
    found = [each for each in free if each.name not in target.key]
    return min(found, key=_cost, default=target.columns[-1]).name


def _cost(column: TargetColumn) -> tuple[bool, bool]:
    return column.refuses_null, column.kind not in _TEXTS


def packed(values: pa.ChunkedArray, deletes: pa.ChunkedArray | None) -> StagedColumn:
    """Return the array of a row's position, whether it deletes, and its value, as texts."""
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        texts = [each and f"\\x{each.hex()}" for each in values.to_pylist()]
    else:
        texts = staged(values, "").values.to_pylist()
    flags = ["f"] * len(texts) if deletes is None else [str(each) for each in deletes.to_pylist()]
    rows = [[str(at), *each] for at, each in enumerate(zip(flags, texts, strict=True))]
    made = pa.chunked_array([pa.array(rows, pa.list_(pa.string()))])
    return StagedColumn(made, "text[]", is_cast=True)


def packed_type(column: TargetColumn) -> str:
    """Return the SQL type of the packed column, which refuses a null where its target does."""
    if not column.is_required:
        return "text[]"
    name = sql.Identifier(column.name).as_string()
    rule = sql.Identifier(f"{column.name} is required").as_string()
    return f"text[] CONSTRAINT {rule} CHECK ({name}[3] IS NOT NULL OR {name}[2]::bool)"


def staged_rows(
    name: TableName, columns: Iterable[str], column: str, *, has_deletes: bool
) -> sql.Composable:
    """Return a staging table as a relation with all of its columns; `column`: the packed one."""
    if not column:
        return name.sql
    shown: Sequence[tuple[str, str]] = [("3", column), ("1", SEQUENCE), ("2", IS_DELETE)]
    casts = {SEQUENCE: "::int8", IS_DELETE: "::bool"}
    parts = [sql.Identifier(each) for each in columns if each != column]
    unpacked = [
        sql.SQL("{}[{}]{} AS {}").format(
            *(sql.Identifier(column), sql.SQL(at), sql.SQL(casts.get(each, ""))),  # pyright: ignore[reportArgumentType]
            sql.Identifier(each),
        )
        for at, each in shown
        if each != IS_DELETE or has_deletes
    ]
    query = sql.SQL("(SELECT {} FROM {}) AS staged")
    return query.format(sql.SQL(", ").join([*parts, *unpacked]), name.sql)
