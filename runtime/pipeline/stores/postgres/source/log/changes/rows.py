# pyright: basic
"""Converts changes to rows; the server casts their text values, as it does for snapshot rows.

A row has the columns of its table, and metadata: `__op` (c, u, d, t; r for a row of the snapshot),
`__lsn` (of the commit), `__seq` (the number of the change in it), `__ts_ms` (commit time),
`__deleted`. A deleted row has its key, with replica identity FULL all values. An update of the key
becomes a delete and a create.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import pyarrow as pa
from psycopg import sql

from ......spi.config import ParsedConfig
from ....base_types import base_type
from ....names import TableName, raw_sql
from ....tables import keys
from ....tables.catalog import TableShape
from ....tables.columns import (
    DELETED,
    LSN,
    OP,
    SEQ,
    TIME,
    TOPIC,
    SourceColumn,
    TypeMapping,
    refuse_taken,
)
from ....tables.session import DatabaseSnapshot, ReadSession, TableChanged, naming
from .groups import FollowedChange, Group
from .pgoutput import UNCHANGED, Operation, Relation
from .shares import FollowedTable
from .versions import RowVersion, empties_a_part, known_before, versions_of

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
    CASE t.type WHEN 'e' THEN CASE t.lists WHEN 0 THEN 'text' ELSE 'text[]' END END AS text_type,
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


class ChangedRows(NamedTuple):
    """The rows of changes.

    `left_out` counts updates whose TOAST values are gone; `emptied` has the tables whose TRUNCATE
    has no row, as it left others of their topic as they are.
    """

    table: pa.Table
    left_out: int
    emptied: frozenset[TableName]


class ChangeRows:
    """Converts changes to rows in a read session."""

    def __init__(
        self, session: ReadSession, settings: ParsedConfig, target_key: tuple[str, ...] | None
    ) -> None:
        self.session = session
        self._target_key = target_key
        """The columns by which the target knows a row; empty: unknown, None: it adds rows."""
        self._mapping = TypeMapping.of(settings)
        self._prefix = settings.text(keys.TOPIC_PREFIX)
        skipped = settings.items(keys.SKIPPED)
        self._skipped = {each for each in Operation if each.value in skipped}
        self._layouts: dict[Relation, tuple[LogColumn, ...]] = {}

    def make(self, group: Group, siblings: Mapping[str, frozenset[TableName]]) -> ChangedRows:
        """Convert changes, all of the same columns, to rows; raises as the session does.

        `siblings` has the tables of each topic.
        """
        of: dict[int, list[FollowedChange]] = {}
        for each in group:  # by the relation's `id`: a hash of it would cost too much
            of.setdefault(id(each.change.relation), []).append(each)
        made = [self._of_one(changes, siblings) for changes in of.values()]
        rows = pa.concat_tables([each.table.select(made[0].table.column_names) for each in made])
        left_out = sum(each.left_out for each in made)
        emptied = frozenset[TableName]().union(*(each.emptied for each in made))
        return ChangedRows(_in_order(rows) if len(made) > 1 else rows, left_out, emptied)

    def columns_of(self, relation: Relation) -> Hashable:
        """Return the columns of a table's rows, in any order, to compare with those of others."""
        layout = self._layouts.get(relation) or self._layout(relation)
        return frozenset((each.source.name, each.source.type) for each in layout)

    def _of_one(
        self, followed: Sequence[FollowedChange], siblings: Mapping[str, frozenset[TableName]]
    ) -> ChangedRows:
        """Convert changes of one table, all of the same layout."""
        table, changes = followed[0].table, [each.change for each in followed]
        relation, topic = changes[0].relation, siblings.get(table.topic, frozenset[TableName]())
        layout = self._layouts.get(relation) or self._layout(relation)
        key = relation.key or self._key_of_whole(layout)
        versions = [*versions_of(changes, key)]
        filled = known_before(versions, key)
        if not all(each.is_whole for each in filled):
            filled = self._stored(relation, layout, filled, key)
        whole = [each for each in filled if each.is_whole]
        wanted = [each for each in whole if each.operation not in self._skipped]
        rows = [each for each in wanted if not empties_a_part(each.change, topic)]
        with naming(table.name), self.session.snapshot() as snapshot:
            values = typed_values(snapshot, layout, rows)
        emptied = frozenset([table.name] if len(rows) < len(wanted) else [])
        return ChangedRows(
            self._with_change(table, values, rows), len(versions) - len(whole), emptied
        )

    def empty_table(self, tables: Sequence[FollowedTable]) -> pa.Table | None:
        """Return an empty table with the columns of one of the tables."""
        for table in tables:
            with suppress(TableChanged), self.session.snapshot() as snapshot:
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

    def _layout(self, relation: Relation) -> tuple[LogColumn, ...]:
        """Return the columns of a table at the change, with the types of the present catalog."""
        names = [each.name for each in relation.columns]
        refuse_taken(f"{relation.name}", names, is_logged=True)
        oids = [each.type_oid for each in relation.columns]
        widths = [each.width for each in relation.columns]
        given = map(sql.Literal, (names, oids, widths, relation.name.sql.as_string()))
        with self.session.snapshot() as snapshot:
            found = snapshot.table(sql.SQL(_LAYOUT).format(*given)).to_pylist()
        key = [each["name"] for each in found if each["is_primary"]]
        made = self._layouts[relation] = tuple(self._column(each, key) for each in found)
        return made

    def _column(self, row: dict[str, Any], key: Sequence[str]) -> LogColumn:
        kind, width = row["kind"] or "text", -1 if row["width"] is None else row["width"]
        shape = kind, width, row["dimensions"] or 1
        made = SourceColumn.of(row["name"], *shape, self._mapping, key)
        type_name = row["type"] or "text"
        return LogColumn(made, type_name, row["text_type"] or type_name, row["is_primary"])

    def _key_of_whole(self, layout: Sequence[LogColumn]) -> tuple[int, ...]:
        """Return what tells rows apart whose old values are all known (REPLICA IDENTITY FULL).

        If nothing is known to, and the target has a key, then any value.
        """
        wanted = self._target_key or ()
        found = (each.is_primary or each.source.name in wanted for each in layout)
        key = tuple(at for at, is_of_it in enumerate(found) if is_of_it)
        return key or (() if self._target_key is None else tuple(range(len(layout))))

    def _stored(
        self,
        relation: Relation,
        layout: Sequence[LogColumn],
        changes: Sequence[RowVersion],
        key: Sequence[int],
    ) -> list[RowVersion]:
        """Return changes with unchanged TOAST values read from the present rows.

        The WAL does not have them. If a value has changed since, a later change has it.
        """
        lacking = [each for each in changes if not each.is_whole]
        columns = sorted(
            {at for each in lacking for at, v in enumerate(each.values) if v is UNCHANGED}
        )
        filled: dict[int, RowVersion] = {}
        for _ in range(2 if key else 0):
            # A look that waits while its table is rewritten sees no rows: only a second one tells.
            if left := [each for each in lacking if id(each) not in filled]:
                filled |= self._filled(relation, layout, left, key, columns)
        return [filled.get(id(each), each) for each in changes]

    def _filled(
        self,
        relation: Relation,
        layout: Sequence[LogColumn],
        lacking: Sequence[RowVersion],
        key: Sequence[int],
        columns: Sequence[int],
    ) -> dict[int, RowVersion]:
        """Return those changes, by their `id`, whose rows are in the table, with their values."""
        try:
            with self.session.snapshot() as snapshot:
                found = stored_texts(snapshot, relation.name, layout, lacking, key, columns)
        except TableChanged:
            return {}
        rows = ((lacking[row["at"] - 1], row) for row in found.to_pylist())
        return {id(each): each.with_values(row, columns) for each, row in rows}

    def _with_change(
        self, table: FollowedTable, values: dict[str, Any], rows: Sequence[RowVersion]
    ) -> pa.Table:
        values[TOPIC] = pa.repeat(pa.scalar(self._prefix + table.topic, pa.string()), len(rows))
        positions = [
            (
                each.operation.value,
                each.change.position.lsn,
                each.change.position.seq,
                each.change.time_ms,
                each.operation is Operation.DELETE,
            )
            for each in rows
        ]
        columns = zip(*positions, strict=True) if positions else ((),) * len(COLUMNS)
        for name, column in zip(COLUMNS.names, columns, strict=True):
            values[name] = pa.array(column, COLUMNS.field(name).type)
        return pa.table(values)


def _in_order(rows: pa.Table) -> pa.Table:
    """Return rows in the order of their changes; those of one change keep theirs."""
    places = [*zip(rows[LSN].to_pylist(), rows[SEQ].to_pylist(), strict=True)]
    return rows.take(sorted(range(rows.num_rows), key=places.__getitem__))
