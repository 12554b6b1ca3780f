# pyright: basic
"""Converts changes to rows; the server casts their text values, as it does for snapshot rows.

A row has the columns of its table, and metadata: `__op` (c, u, d, t; r for a row of the snapshot),
`__lsn` (of the commit), `__seq` (the number of the change in it), `__ts_ms` (commit time),
`__deleted`. A deleted row has its key, with replica identity FULL all values. An update of the key
becomes a delete and a create.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import pyarrow as pa
from psycopg import sql

from .....spi.config import ParsedConfig
from ...base_types import base_type
from ...names import TableName, words
from ...tables import keys
from ...tables.catalog import TableShape
from ...tables.columns import SourceColumn, TypeMapping
from ...tables.reading import TOPIC
from ...tables.session import DatabaseSnapshot, ReadSession, TableChanged
from .pgoutput import UNCHANGED, Change, Operation, Relation, Value, Values
from .shares import FollowedTable

OP, LSN, SEQ, TIME, DELETED = "__op", "__lsn", "__seq", "__ts_ms", "__deleted"
COLUMNS: Final = pa.schema(
    [
        (OP, pa.string()),
        (LSN, pa.int64()),
        (SEQ, pa.int64()),
        (TIME, pa.int64()),
        (DELETED, pa.bool_()),
    ]
)
"""The metadata columns."""

_LAYOUT: Final = f"""
SELECT k.name, t.kind, t.width, t.dimensions,
    format_type(CASE t.lists WHEN 0 THEN t.oid WHEN 1 THEN t.array ELSE k.oid END, t.width) AS type,
    CASE t.type WHEN 'e' THEN CASE t.lists WHEN 0 THEN 'text' ELSE 'text[]' END END AS told,
    coalesce(a.attnum = ANY (i.indkey::int2[]), false) AS is_primary
FROM unnest({{}}::text[], {{}}::oid[], {{}}::int4[]) WITH ORDINALITY k(name, oid, width, place)
LEFT JOIN pg_attribute a ON a.attrelid = to_regclass({{}}) AND a.attname = k.name
    AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN {base_type("k.oid", "k.width", "coalesce(a.attndims, 1)")} t ON true
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
ORDER BY k.place"""  # noqa: S608  # of constants
_MADE: Final = "SELECT {} FROM (SELECT {} FROM unnest({}) g({})) r"
_STORED: Final = """
SELECT o.at::int8 AS at, {} FROM unnest({}) WITH ORDINALITY o({}, at) JOIN {} t ON {}"""


class _Column(NamedTuple):
    source: SourceColumn
    type: str
    """The SQL type."""
    told: str
    """The same for texts of the log: labels stay texts, as their enum may have others by now."""
    is_primary: bool


class ChangedRows(NamedTuple):
    """The rows of changes; `left_out` counts updates whose TOAST values are gone."""

    table: pa.Table
    left_out: int


class ChangeRows:
    """Converts changes to rows in a read session."""

    def __init__(self, session: ReadSession, settings: ParsedConfig) -> None:
        self._session = session
        self._mapping = TypeMapping.of(settings)
        self._prefix = settings.text(keys.TOPIC_PREFIX)
        skipped = settings.items(keys.SKIPPED)
        self._skipped = {each for each in Operation if each.value in skipped}
        self._layouts: dict[Relation, tuple[_Column, ...]] = {}

    def make(self, table: FollowedTable, changes: Sequence[Change]) -> ChangedRows:
        """Convert changes to a table, all of the same layout; raises as the session does."""
        relation = changes[0].relation
        layout = self._layouts.get(relation) or self._layout(relation)
        key = relation.key or tuple(at for at, each in enumerate(layout) if each.is_primary)
        told = [*_expanded(changes, key)]
        known = _known_before(told, key)
        if any(UNCHANGED in each.values for each in known):
            known = self._stored(relation, layout, known, key)
        rows = [each for each in known if UNCHANGED not in each.values]
        left_out = len(told) - len(rows)
        rows = [each for each in rows if each.operation not in self._skipped]
        with self._session.snapshot() as snapshot:
            values = _values(snapshot, layout, rows)
        return ChangedRows(self._with_change(table, values, rows), left_out)

    def nothing(self, tables: Sequence[FollowedTable]) -> pa.Table | None:
        """Return an empty table with the columns of one of the tables."""
        for table in tables:
            with suppress(TableChanged), self._session.snapshot() as snapshot:
                shape = TableShape.read(snapshot, table.name, self._mapping, is_logged=True)
                empty = shape.schema.empty_table()
                return self.read(empty.append_column(TOPIC, pa.array([], pa.string())), 0)
        return None

    def read(self, rows: pa.Table, time_ms: int) -> pa.Table:
        """Return snapshot rows with metadata columns."""
        told = (Operation.READ.value, 0, 0, time_ms, False)
        for name, value in zip(COLUMNS.names, told, strict=True):
            column = pa.repeat(pa.scalar(value, COLUMNS.field(name).type), rows.num_rows)
            rows = rows.append_column(name, column)
        return rows

    def _layout(self, relation: Relation) -> tuple[_Column, ...]:
        """Return the columns of a table at the change, with the types of the present catalog."""
        names = [each.name for each in relation.columns]
        oids = [each.type_oid for each in relation.columns]
        widths = [each.width for each in relation.columns]
        given = map(sql.Literal, (names, oids, widths, relation.name.sql.as_string()))
        with self._session.snapshot() as snapshot:
            found = snapshot.table(sql.SQL(_LAYOUT).format(*given)).to_pylist()
        made = self._layouts[relation] = tuple(self._column(each) for each in found)
        return made

    def _column(self, row: dict[str, Any]) -> _Column:
        kind, width = row["kind"] or "text", -1 if row["width"] is None else row["width"]
        made = SourceColumn.of(row["name"], kind, width, row["dimensions"] or 1, self._mapping)
        type_name = row["type"] or "text"
        return _Column(made, type_name, row["told"] or type_name, row["is_primary"])

    def _stored(
        self,
        relation: Relation,
        layout: Sequence[_Column],
        changes: Sequence["_Row"],
        key: Sequence[int],
    ) -> list["_Row"]:
        """Return changes with unchanged TOAST values read from the present rows.

        The WAL does not have them. If a value has changed since, a later change has it.
        """
        lacking = [each for each in changes if UNCHANGED in each.values]
        columns = sorted(
            {at for each in lacking for at, v in enumerate(each.values) if v is UNCHANGED}
        )
        filled: dict[int, _Row] = {}
        for _ in range(2 if key else 0):
            # A look that waits while its table is rewritten sees no rows: only a second one tells.
            if left := [each for each in lacking if id(each) not in filled]:
                filled |= self._filled(relation, layout, left, key, columns)
        return [filled.get(id(each), each) for each in changes]

    def _filled(
        self,
        relation: Relation,
        layout: Sequence[_Column],
        lacking: Sequence["_Row"],
        key: Sequence[int],
        columns: Sequence[int],
    ) -> dict[int, "_Row"]:
        """Return those changes, by their `id`, whose rows are in the table, with their values."""
        try:
            with self._session.snapshot() as snapshot:
                found = _look_up(snapshot, relation.name, layout, lacking, key, columns)
        except TableChanged:
            return {}
        rows = ((lacking[row["at"] - 1], row) for row in found.to_pylist())
        return {id(each): each.with_values(row, columns) for each, row in rows}

    def _with_change(
        self, table: FollowedTable, values: dict[str, Any], rows: Sequence["_Row"]
    ) -> pa.Table:
        values[TOPIC] = pa.repeat(pa.scalar(self._prefix + table.topic, pa.string()), len(rows))
        told = [
            (
                each.operation.value,
                each.change.position.lsn,
                each.change.position.seq,
                each.change.time_ms,
                each.operation is Operation.DELETE,
            )
            for each in rows
        ]
        columns = zip(*told, strict=True) if told else ((),) * len(COLUMNS)
        for name, column in zip(COLUMNS.names, columns, strict=True):
            values[name] = pa.array(column, COLUMNS.field(name).type)
        return pa.table(values)


class _Row(NamedTuple):
    """One row of a change; an update of the key gives two."""

    change: Change
    operation: Operation
    values: Values

    def with_values(self, found: dict[str, Any], columns: Iterable[int]) -> "_Row":
        """Return the row with missing values filled in, by position."""
        values = [*self.values]
        for at in columns:
            values[at] = found[f"v{at}"] if values[at] is UNCHANGED else values[at]
        return self._replace(values=tuple(values))


def _expanded(changes: Sequence[Change], key: Sequence[int]) -> Iterator[_Row]:
    for change in changes:
        old, operation = change.old, change.operation
        if old and any(old[at] != change.values[at] for at in key):
            yield _Row(change, Operation.DELETE, old)
            operation = Operation.CREATE
        yield _Row(change, operation, change.values)


def _known_before(rows: Sequence[_Row], key: Sequence[int]) -> list[_Row]:
    """Return rows with unchanged values taken from earlier rows of the same key."""
    if not key or not any(UNCHANGED in each.values for each in rows):
        return [*rows]
    known: dict[tuple[Value, ...], Values] = {}
    made: list[_Row] = []
    for each in rows:
        whose = tuple(each.values[at] for at in key)
        values, before = each.values, known.get(whose)
        if before is not None:
            pairs = zip(values, before, strict=True)
            values = tuple(was if now is UNCHANGED else now for now, was in pairs)
        if each.operation is Operation.TRUNCATE:
            known.clear()
        elif each.operation is Operation.DELETE:
            known.pop(whose, None)
        else:
            known[whose] = values
        made.append(each._replace(values=values))
    return made


def _values(
    snapshot: DatabaseSnapshot, layout: Sequence[_Column], rows: Sequence[_Row]
) -> dict[str, Any]:
    """Return the columns of rows by name, converted as those of the table."""
    if not layout:
        return {}
    texts = [*zip(*(each.values for each in rows), strict=True)] if rows else [()] * len(layout)
    typed = (
        sql.SQL("{}::{} AS {}").format(_name(f"c{at}"), words(each.told), _name(each.source.name))
        for at, each in enumerate(layout)
    )
    chosen = (each.source.expression for each in layout)
    names = [f"c{at}" for at in range(len(layout))]
    parts = (_joined(chosen), _joined(typed), _arrays(names), _joined(map(_name, names)))
    found = snapshot.table(sql.SQL(_MADE).format(*parts), _parameters(texts))
    return {each.source.name: each.source.finished(found[each.source.name]) for each in layout}


def _look_up(
    snapshot: DatabaseSnapshot,
    name: TableName,
    layout: Sequence[_Column],
    rows: Sequence[_Row],
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
            _name(layout[at].source.name), _name(f"k{at}"), words(layout[at].type)
        )
        for at in key
    )
    parts = (_joined(wanted), _arrays(names), _joined(map(_name, names)), name.sql)
    query = sql.SQL(_STORED).format(*parts, sql.SQL(" AND ").join(same))
    return snapshot.table(query, _parameters([[each.values[at] for each in rows] for at in key]))


def _parameters(texts: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Return arrays of texts as one row of parameters."""
    kind = pa.list_(pa.string())
    return pa.record_batch({str(at): pa.array([each], kind) for at, each in enumerate(texts)})


def _arrays(names: Sequence[str]) -> sql.Composed:
    return _joined(words(f"${at}::text[]") for at in range(1, len(names) + 1))


def _joined(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _name(text: str) -> sql.Identifier:
    return sql.Identifier(text)
