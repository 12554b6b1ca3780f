# pyright: basic
"""The SQL by which the server casts texts of the WAL to columns, and looks up stored values."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from psycopg import sql

from ....names import TableName, raw_sql
from ....tables.columns import SourceColumn
from ....tables.session import DatabaseSnapshot
from .versions import RowVersion

_MADE: Final = "SELECT {} FROM (SELECT {} FROM unnest({}) g({})) r"
_STORED: Final = """
SELECT o.at::int8 AS at, {} FROM unnest({}) WITH ORDINALITY o({}, at) JOIN {} t ON {}"""


class LogColumn(NamedTuple):
    """A column of a table at the change."""

    source: SourceColumn
    type: str
    """The SQL type."""
    text_type: str
    """The same for texts of the log: labels stay texts, as their enum may have others by now."""
    is_primary: bool


def typed_values(
    snapshot: DatabaseSnapshot, layout: Sequence[LogColumn], rows: Sequence[RowVersion]
) -> dict[str, Any]:
    """Return the columns of rows by name, converted as those of the table."""
    if not layout:
        return {}
    texts = [*zip(*(each.values for each in rows), strict=True)] if rows else [()] * len(layout)
    typed = (
        sql.SQL("{}::{} AS {}").format(
            _name(f"c{at}"), raw_sql(each.text_type), _name(each.source.name)
        )
        for at, each in enumerate(layout)
    )
    chosen = (each.source.expression for each in layout)
    names = [f"c{at}" for at in range(len(layout))]
    parts = (_joined(chosen), _joined(typed), _arrays(names), _joined(map(_name, names)))
    found = snapshot.table(sql.SQL(_MADE).format(*parts), _parameters(texts))
    return {each.source.name: each.source.finished(found[each.source.name]) for each in layout}


def stored_texts(
    snapshot: DatabaseSnapshot,
    name: TableName,
    layout: Sequence[LogColumn],
    rows: Sequence[RowVersion],
    key: Sequence[int],
    columns: Sequence[int],
) -> pa.Table:
    """Read columns of the rows with some keys, as texts, with the key's number, from 1."""
    wanted = (
        sql.SQL("t.{}::text AS {}").format(_name(layout[at].source.name), _name(f"v{at}"))
        for at in columns
    )
    names = [f"k{at}" for at in key]
    same = (
        sql.SQL("t.{} = o.{}::{}").format(
            _name(layout[at].source.name), _name(f"k{at}"), raw_sql(layout[at].type)
        )
        for at in key
    )
    parts = (_joined(wanted), _arrays(names), _joined(map(_name, names)), name.only)
    query = sql.SQL(_STORED).format(*parts, sql.SQL(" AND ").join(same))
    return snapshot.table(query, _parameters([[each.values[at] for each in rows] for at in key]))


def _parameters(texts: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Return arrays of texts as one row of parameters."""
    kind = pa.list_(pa.string())
    return pa.record_batch({str(at): pa.array([each], kind) for at, each in enumerate(texts)})


def _arrays(names: Sequence[str]) -> sql.Composed:
    return _joined(raw_sql(f"${at}::text[]") for at in range(1, len(names) + 1))


def _joined(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _name(text: str) -> sql.Identifier:
    return sql.Identifier(text)
