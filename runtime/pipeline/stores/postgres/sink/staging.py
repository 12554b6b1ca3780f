# pyright: basic, reportAttributeAccessIssue=false
"""Staging tables, which hold a batch until it is published; they are logged, to be durable.

Their names have the task, the token and the batch, so that batches that were never committed are
found. Values are staged with the target's types, so that a value that the target cannot hold is
refused before the commit; types that ADBC cannot write are staged as text, and cast once as a
check. Refused are also rows that violate a CHECK, or have an existing key where rows are only
inserted: a retry would not help. Conflicts with other tables, or with concurrent writers, show at
the publication, which is then retried.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from ......events.commits import CommitId
from ......events.model import Resource, Token
from ....spi.errors import RowsRefused
from ...marks import PublishedBatch
from ..arrow_types import StagedColumn, is_alike, staged
from ..connecting import brief, is_data
from ..names import TableName, raw_sql, typed_columns
from . import keys, prepared
from .layout import IS_DELETE, SEQUENCE, TargetRows
from .packing import packed, packed_column, packed_type, staged_rows
from .tables import TargetTable

_REFERRING: Final = sql.SQL("""
WITH RECURSIVE emptied AS (SELECT to_regclass({})::oid AS oid
    UNION SELECT inhrelid FROM pg_inherits JOIN emptied ON inhparent = oid)
SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f'
    AND confrelid IN (TABLE emptied) AND conrelid NOT IN (TABLE emptied) LIMIT 1""")
"""Finds a table that refers to one that is emptied, or to a partition of it."""
_READABLE: Final = 16
"""How many characters of the connector's name the names of its tables have."""
_OWN: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relname LIKE %s AND pg_has_role(c.relowner, 'USAGE')"""


class Staging(NamedTuple):
    """The names of one task's staging tables and prepared transactions."""

    cluster_id: str
    task: Resource

    @property
    def prefix(self) -> str:
        """The prefix of all names."""
        shown = re.sub(r"[^a-z0-9]+", "_", self.task.connector.lower())[:_READABLE]
        whose = f"{self.cluster_id}\0{self.task.connector}".encode()
        return f"fairlead_{shown}_{blake2b(whose, digest_size=5).hexdigest()}_{self.task.task}_"

    def table(self, commit_id: CommitId, number: int) -> str:
        """Return the name of the staging table of a target, numbered from 0."""
        return f"{self.transaction(commit_id)}_{number}"

    def transaction(self, commit_id: CommitId) -> str:
        """Return the name of a batch's prepared transaction."""
        epoch, generation = commit_id.token
        return f"{self.prefix}{epoch}_{generation}_{commit_id.batch}"

    def drop(
        self, connection: "psycopg.Connection[Any]", which: Callable[[PublishedBatch], bool]
    ) -> None:
        """Remove staged batches, in tables and as prepared transactions."""
        tables = [TableName(*row) for row in connection.execute(_OWN, (self._pattern,))]
        drop(connection, [each for each in tables if self._is_of(which, each.table)])
        self.roll_back(connection, which)

    def roll_back(
        self, connection: "psycopg.Connection[Any]", which: Callable[[PublishedBatch], bool]
    ) -> None:
        """Roll back batches that are staged as prepared transactions."""
        names = prepared.find_prepared(connection, self._pattern)
        prepared.roll_back(connection, [each for each in names if self._is_of(which, each)])

    @property
    def _pattern(self) -> str:
        """The LIKE pattern of all names."""
        return self.prefix.replace("_", r"\_") + "%"

    def _is_of(self, which: Callable[[PublishedBatch], bool], name: str) -> bool:
        """Return whether a name belongs to a batch that `which` accepts."""
        match = re.fullmatch(re.escape(self.prefix) + r"(\d+)_(\d+)_(\d+)(?:_\d+)?", name)
        if match is None:
            return False
        epoch, generation, batch = map(int, match.groups())
        return which(PublishedBatch(Token(epoch, generation), batch))


def columns_of(target: TargetTable, batch: TargetRows) -> dict[str, StagedColumn]:
    """Return the columns to write to a table; raises `RowsRefused`."""
    return {
        each: _staged(batch.rows[each], target, each)
        for each in batch.rows.column_names
        if not target.by_name[each].is_computed
    }


def write(
    connection: "adbc.Connection",
    name: TableName,
    target: TargetTable,
    batch: TargetRows,
    *,
    logged: bool = True,
) -> None:
    """Stage the rows for one target in a new table, in ADBC's transaction; raises `RowsRefused`.

    An unlogged table is empty after a crash of the server.
    """
    staged_columns, has_deletes = columns_of(target, batch), batch.deletes is not None
    if one := packed_column(target, batch):
        staged_columns[one] = packed(batch.rows[one], batch.deletes)
    values = {each: column.values for each, column in staged_columns.items()}
    types = {
        each: _type(target, each, column, has_deletes=has_deletes)
        for each, column in staged_columns.items()
    }
    if one:
        types[one] = packed_type(target.by_name[one])
    elif target.key:
        values[SEQUENCE], types[SEQUENCE] = pa.array(range(batch.rows.num_rows), pa.int64()), "int8"
    if has_deletes and not one:
        values[IS_DELETE], types[IS_DELETE] = batch.deletes, "bool"
    definitions = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(each), raw_sql(kind)) for each, kind in types.items()
    )
    with connection.cursor() as cursor:
        if batch.is_emptied:
            refuse_truncate(cursor, target.name)
        cursor.execute(_text(sql.SQL("DROP TABLE IF EXISTS {}").format(name.sql)))
        create = sql.SQL("CREATE TABLE {} ({})" if logged else "CREATE UNLOGGED TABLE {} ({})")
        cursor.execute(_text(create.format(name.sql, definitions)))
        try:
            rows = pa.table(values)
            cursor.adbc_ingest(name.table, rows, mode="append", db_schema_name=name.schema)
            staged_as = staged_rows(name, staged_columns, one, has_deletes=has_deletes)
            StagedRows(staged_as, target, staged_columns, has_deletes).refuse_broken(cursor)
        except adbc.Error as error:
            if is_data(error):
                raise RowsRefused(f"{target.name} refuses a row: {_reason(str(error))}") from None
            raise


def refuse_truncate(cursor: "adbc.Cursor", name: TableName) -> None:
    """Raise `RowsRefused` if a table cannot be emptied since another one refers to it."""
    cursor.execute(_text(_REFERRING.format(sql.Literal(name.sql.as_string()))))
    if found := cursor.fetchone():
        raise RowsRefused(
            f"{name}: {found[0]} refers to it by a foreign key, so it takes no TRUNCATE: drop the "
            f"key, or set {keys.TRUNCATE_ENABLED}=false. Nothing of the batch was written"
        )


class StagedRows(NamedTuple):
    """The staged rows for one target, with checks of the target's constraints."""

    rows: sql.Composable
    """The staging table as a relation."""
    target: TargetTable
    given: Mapping[str, StagedColumn]
    """The target's columns that the rows have."""
    has_deletes: bool

    def refuse_broken(self, cursor: "adbc.Cursor") -> None:
        """Raise `RowsRefused`, or a server error, for a row that the target never accepts."""
        self._try_casts(cursor)
        for each in self.target.checks:
            if self.given.keys() >= {*each.columns}:
                broken = sql.SQL("WHERE NOT ({})").format(raw_sql(each.condition))
                why = f"it breaks {each.name}, CHECK ({each.condition})"
                self._refuse(cursor, sorted(each.columns), broken, why)
        for names in map(sorted, self.target.once):
            if self.given.keys() >= {*names}:
                self._refuse_known(cursor, names)

    def _try_casts(self, cursor: "adbc.Cursor") -> None:
        counts = [
            sql.SQL("count({}::{})").format(
                sql.Identifier(name), raw_sql(self.target.by_name[name].type)
            )
            for name, column in self.given.items()
            if column.is_cast
        ]
        if counts:
            query = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(counts), self.rows)
            cursor.execute(_text(query))
            cursor.fetchall()

    def _refuse_known(self, cursor: "adbc.Cursor", names: list[str]) -> None:
        """Raise `RowsRefused` if a key occurs twice in the batch, or in the target already."""
        remedy = f"set {keys.INSERT_MODE}={keys.UPSERT}, or leave it out by a transform"
        if twice := self._first_twice(cursor, names):
            raise self._refused(names, twice, f"it is not the only one of its batch; {remedy}")
        same = sql.SQL(" AND ").join(
            sql.SQL("t.{0} = s.{0}").format(sql.Identifier(each)) for each in names
        )
        there = sql.SQL("WHERE EXISTS (SELECT FROM {} t WHERE {})").format(
            self.target.name.sql, same
        )
        self._refuse(cursor, names, there, f"there is one already; {remedy}")

    def _first_twice(self, cursor: "adbc.Cursor", names: list[str]) -> Sequence[object]:
        """Return a key that two rows have; empty if there is none."""
        kept = {each: self.target.by_name[each] for each in names}
        if not all(is_alike(self.given[each], at.kind, at.width) for each, at in kept.items()):
            return self._first_twice_there(cursor, names)
        values = pa.table({each: self.given[each].values for each in names}).drop_null()
        counted = values.group_by(names).aggregate([([], "count_all")])
        twice = counted.filter(pc.greater(counted["count_all"], 1)).slice(0, 1)
        return [each for column in twice.select(names).columns for each in column.to_pylist()]

    def _first_twice_there(self, cursor: "adbc.Cursor", names: list[str]) -> Sequence[object]:
        """Return a key that two rows have by the server's comparison; empty if there is none."""
        values = typed_columns({each: self.target.by_name[each].type for each in names})
        identifiers = [sql.Identifier(each) for each in names]
        shown = sql.SQL(", ").join(sql.SQL("{}::text").format(each) for each in identifiers)
        there = sql.SQL(" AND ").join(
            sql.SQL("{} IS NOT NULL").format(each) for each in identifiers
        )
        query = sql.SQL(
            "SELECT {} FROM (SELECT {} FROM {}) s WHERE {} GROUP BY {} HAVING count(*) > 1 LIMIT 1"
        ).format(shown, values, self.rows, there, sql.SQL(", ").join(identifiers))
        cursor.execute(_text(query))
        return cursor.fetchone() or ()

    def _refuse(
        self, cursor: "adbc.Cursor", names: list[str], which: sql.Composed, why: str
    ) -> None:
        """Raise `RowsRefused` with the first row that a query finds, if any."""
        values = typed_columns({each: self.target.by_name[each].type for each in names})
        shown = sql.SQL(", ").join(
            sql.SQL("{}::text").format(sql.Identifier(each)) for each in names
        )
        kept = sql.SQL("WHERE NOT {}" if self.has_deletes else "").format(sql.Identifier(IS_DELETE))
        query = sql.SQL("SELECT {} FROM (SELECT {} FROM {} {}) s {} LIMIT 1")
        cursor.execute(_text(query.format(shown, values, self.rows, kept, which)))
        if found := cursor.fetchone():
            raise self._refused(names, found, why)

    def _refused(self, names: list[str], values: Sequence[object], why: str) -> RowsRefused:
        told = ", ".join("null" if each is None else str(each) for each in values)
        return RowsRefused(
            f"{self.target.name} refuses the row with ({', '.join(names)})=({told}): {why}. "
            "Nothing of the batch was written"
        )


def drop(connection: "psycopg.Connection[Any]", names: list[TableName]) -> None:
    """Drop tables, except those of other roles."""
    for name in names:
        with suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name.sql))


def _staged(column: pa.ChunkedArray, target: TargetTable, name: str) -> StagedColumn:
    wanted = target.by_name[name]
    try:
        return staged(column, wanted.kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RowsRefused(
            f"{target.name}: column {name} of type {wanted.type} cannot hold {column.type}: {error}"
        ) from None


def _type(target: TargetTable, name: str, column: StagedColumn, *, has_deletes: bool) -> str:
    """Return the type of a staging column: the target's, or text that is cast to it.

    A delete needs no value beside its key.
    """
    wanted = target.by_name[name]
    kind = column.type if column.is_cast else wanted.type
    if name in target.key or (wanted.is_required and not has_deletes):
        return f"{kind} NOT NULL"
    if not wanted.is_required:
        return kind
    named = (f"{name} is required", name, IS_DELETE)
    rule, value, gone = (sql.Identifier(each).as_string() for each in named)
    return f"{kind} CONSTRAINT {rule} CHECK ({value} IS NOT NULL OR {gone})"


def _reason(text: str) -> str:
    """Return the server's message about values, without the client's prefix."""
    lines = [each.strip() for each in text.splitlines()]
    said = [each for each in lines if each.startswith("CONTEXT:")]
    first = brief(lines[0])
    return f"{first} ({said[0].removeprefix('CONTEXT:').strip()})" if said else first


def _text(statement: sql.Composable) -> str:
    return statement.as_string()
