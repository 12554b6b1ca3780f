# pyright: basic
"""The target tables: their columns and constraints, and DDL that adapts them to rows.

Before a batch is staged, its schema is compared with the table as the catalog has it
(`read_table`). A table that lacks columns, or has narrower types, is created or altered if the
config allows it (`TableRules.fitted`). Several tasks may do that at once, so it happens under an
advisory lock, and the table is read again under it. Without a change no lock is taken.

The server checks rows when they are published, after the commit, when it is too late to refuse
them. So staging checks what the catalog tells: the types, NOT NULL, CHECK constraints and unique
keys (`TargetTable.once`). Triggers, rules, foreign keys and row security show only at a write
(`shows_late`): then staging makes a dry run, if the config has not switched it off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import psycopg
import pyarrow as pa
from psycopg import sql

from ....spi.errors import SchemaRefused
from ..arrow_types import WIDENS, digits_of, sql_type_of
from ..base_types import base_type
from ..names import NAME_BYTES, TableName, columns, raw_sql
from . import keys

_COLUMNS = f"""
SELECT a.attname, CASE WHEN t.has_domains THEN '_"' || t.kind || '"' ELSE t.kind END,
       format_type(a.atttypid, a.atttypmod), t.width,
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = '',
       a.attidentity = 'a', a.attgenerated <> '', a.attnotnull
FROM pg_attribute a CROSS JOIN {base_type("a.atttypid", "a.atttypmod")} t
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""  # noqa: S608  # of constants
_UNIQUE = """
SELECT i.indisprimary, array_agg(a.attname::text ORDER BY k.place)
FROM pg_index i CROSS JOIN unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(attnum, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
    AND i.indisvalid AND i.indimmediate
GROUP BY i.indexrelid, i.indisprimary"""
_CHECKS = """
SELECT c.conname::text, pg_get_expr(c.conbin, c.conrelid), array_agg(a.attname::text)
FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
WHERE c.conrelid = to_regclass(%s) AND c.contype = 'c'
    AND pg_get_constraintdef(c.oid) NOT LIKE '%%NOT ENFORCED' GROUP BY c.oid"""
_SHOWS_LATE = """
SELECT relkind <> 'r' OR relhasrules OR row_security_active(t)
    OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t AND NOT tgisinternal AND tgenabled <> 'D')
    OR EXISTS (SELECT FROM pg_constraint WHERE (conrelid = t AND (contype IN ('f', 'x')
        OR contype IN ('p', 'u') AND condeferrable
        OR contype = 'c' AND NOT coalesce(conkey OPERATOR(pg_catalog.<@) given, false)))
        OR (confrelid = t AND contype = 'f' AND NOT %(adds)s))
    OR EXISTS (SELECT FROM pg_attribute a JOIN pg_type y ON y.oid = atttypid
        WHERE attrelid = t AND attnum > 0 AND NOT attisdropped
        AND (attgenerated <> '' OR typtype = 'd' AND attnum <> ALL (given)))
    OR EXISTS (SELECT FROM pg_index i WHERE indrelid = t AND indisunique
        AND (indpred IS NOT NULL OR indexprs IS NOT NULL
        OR to_jsonb(i) ->> 'indnullsnotdistinct' = 'true'
        OR EXISTS (SELECT FROM pg_collation l WHERE NOT collisdeterministic
            AND l.oid = ANY (indcollation))))
    OR NOT %(adds)s AND (SELECT count(*) > 1 FROM pg_index WHERE indrelid = t AND indisunique)
FROM (SELECT oid AS t, relkind, relhasrules, ARRAY(SELECT attnum FROM pg_attribute
        WHERE attrelid = c.oid AND attname = ANY (%(given)s)) AS given
    FROM pg_class c WHERE oid = to_regclass(%(table)s) AND relkind <> 'f') asked"""
"""Tells whether rows with the columns `given` may be refused for what only shows at a write:
triggers, foreign keys, partitions, constraints of columns that they do not have. Of a foreign table
it tells nothing: what is sent there may not be rolled back."""
_INDEXED = """
SELECT DISTINCT a.attname::text FROM pg_index i JOIN pg_class c ON c.oid = indexrelid
JOIN pg_am m ON m.oid = relam AND amname = 'btree' JOIN pg_attribute a ON a.attrelid = indrelid
WHERE indrelid = to_regclass(%s) AND a.attnum = ANY (indkey)"""
_MAY_READ = "SELECT has_table_privilege(to_regclass(%s), 'SELECT')"
_TAKES_COPY = """
SELECT relkind IN ('r', 'p') AND NOT relhasrules AND NOT row_security_active(oid)
FROM pg_class WHERE oid = to_regclass(%s)"""


class TargetColumn(NamedTuple):
    """A column of a target table."""

    name: str
    kind: str
    """The name of the type under it, as `base_type` has it; of an array of domains another."""
    type: str
    """The type in SQL, with its width."""
    width: int
    """The catalog's `atttypmod`; -1: none."""
    is_required: bool
    """Whether rows without it are refused."""
    is_always_made: bool
    """Whether its values are GENERATED ALWAYS."""
    is_computed: bool
    refuses_null: bool


class RowCheck(NamedTuple):
    """A CHECK constraint."""

    name: str
    condition: str
    """SQL over the columns of the row."""
    columns: Sequence[str]


@dataclass(frozen=True)
class TargetTable:
    """A table in its present state; `key` has the key columns, empty without a key."""

    name: TableName
    columns: tuple[TargetColumn, ...]
    primary_key: tuple[str, ...]
    unique: tuple[frozenset[str], ...]
    """The columns of each unique index."""
    key: tuple[str, ...] = ()
    checks: tuple[RowCheck, ...] = ()
    once: tuple[frozenset[str], ...] = ()
    """The unique columns whose values a batch must not repeat."""
    shows_late: bool = False
    """Whether some constraints only show at a write."""
    indexed: frozenset[str] = frozenset()
    """The columns of its B-trees, which take no long values."""
    takes_copy: bool = False
    """Whether COPY works like INSERT: it is not a view, without rules and row security."""
    by_name: dict[str, TargetColumn] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {each.name: each for each in self.columns})


def read_table(connection: "psycopg.Connection[Any]", name: TableName) -> TargetTable | None:
    """Read a table from the catalog; None: it does not exist."""
    row = connection.execute("SELECT to_regclass(%s)::oid", (name.sql.as_string(),)).fetchone()
    oid = row[0] if row else None
    if oid is None:
        return None
    found = tuple(TargetColumn(*each) for each in connection.execute(_COLUMNS, (oid,)))
    unique = connection.execute(_UNIQUE, (oid,)).fetchall()
    primary = next((tuple(each) for is_primary, each in unique if is_primary), ())
    return TargetTable(name, found, primary, tuple(frozenset(each) for _, each in unique))


@dataclass(frozen=True)
class TableRules:
    """The rules of a config for tables: DDL that is allowed, and the key."""

    may_create: bool
    may_evolve: bool
    adds: bool
    """Whether each row is inserted, so that its key must be new."""
    has_key: bool
    is_replaced: bool
    """Whether a row replaces the row of its key, which needs a unique index."""
    key: tuple[str, ...]
    order: str = ""
    """The column with the version of a row."""
    has_dry_run: bool = True
    """Whether to make a dry run if constraints only show at a write."""

    def fitted(
        self,
        connection: "psycopg.Connection[Any]",
        name: TableName,
        schema: pa.Schema,
        *,
        only_deletes: bool = False,
    ) -> TargetTable:
        """Create or alter a table for rows of a schema, and return it; raises `SchemaRefused`.

        `only_deletes`: the rows need no columns that the table demands. Concurrent tasks are
        serialised by a lock.
        """
        _refuse_long(name, schema)
        with connection.transaction():
            table = read_table(connection, name)
            if table and not self._missing(table, schema) and not self._narrow(table, schema):
                return self._checked(connection, table, schema, only_deletes=only_deletes)
            lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
            connection.execute(lock, (f"fairlead {name}",))
            table = read_table(connection, name)
            if table is None:
                self._create(connection, name, schema)
            else:
                self._evolve(connection, table, schema)
            if made := read_table(connection, name):
                return self._checked(connection, made, schema, only_deletes=only_deletes)
            raise SchemaRefused(f"{name} is gone again")

    def _keyed(self, table: TargetTable) -> TargetTable:
        """Return a table with its key; raises `SchemaRefused` if it has no fitting index."""
        if not self.has_key:
            return table
        if not self.key and not table.primary_key:
            raise SchemaRefused(
                f"{table.name} has no primary key: name the columns of one in {keys.PK_FIELDS}"
            )
        if self.key and self.is_replaced and frozenset(self.key) not in table.unique:
            raise SchemaRefused(
                f"{table.name} has no unique index on {', '.join(self.key)}, the key of its rows: "
                f"make one, or change {keys.PK_FIELDS}"
            )
        return replace(table, key=self.key or table.primary_key)

    def _create(
        self, connection: "psycopg.Connection[Any]", name: TableName, schema: pa.Schema
    ) -> None:
        if not self.may_create:
            raise SchemaRefused(
                f"there is no table {name}: make it, or set {keys.AUTO_CREATE}=true"
            )
        if self.has_key and not self.key:
            raise SchemaRefused(
                f"there is no table {name}, and no {keys.PK_FIELDS} to make it with"
            )
        parts = [_made(each) for each in schema]
        if self.has_key:
            parts.append(sql.SQL("PRIMARY KEY ({})").format(columns(self.key)))
        made = sql.SQL("CREATE TABLE {} ({})").format(name.sql, sql.SQL(", ").join(parts))
        connection.execute(made)

    def _evolve(
        self, connection: "psycopg.Connection[Any]", table: TargetTable, schema: pa.Schema
    ) -> None:
        missing, narrow = self._missing(table, schema), self._narrow(table, schema)
        if missing and not self.may_evolve:
            names = ", ".join(f"{each.name} {sql_type_of(each.type)}" for each in missing)
            raise SchemaRefused(
                f"{table.name} has no column {names}: add it, set {keys.AUTO_EVOLVE}=true, or name "
                f"the columns to write in {keys.WHITELIST}"
            )
        steps = [sql.SQL("ADD COLUMN {}").format(_made(each)) for each in missing] + [
            sql.SQL("ALTER COLUMN {} TYPE {}").format(sql.Identifier(name), raw_sql(wider))
            for name, wider in narrow.items()
        ]
        if steps:
            altered = sql.SQL("ALTER TABLE {} {}").format(table.name.sql, sql.SQL(", ").join(steps))
            connection.execute(altered)

    def _missing(self, table: TargetTable, schema: pa.Schema) -> list[pa.Field]:
        return [each for each in schema if each.name not in table.by_name]

    def _narrow(self, table: TargetTable, schema: pa.Schema) -> dict[str, str]:
        """Return the columns to widen, with their new types."""
        if not self.may_evolve:
            return {}
        known = [each for each in schema if each.name in table.by_name]
        found = {each.name: _wider(table.by_name[each.name], each.type) for each in known}
        return {name: wider for name, wider in found.items() if wider}

    def _checked(
        self,
        connection: "psycopg.Connection[Any]",
        table: TargetTable,
        schema: pa.Schema,
        *,
        only_deletes: bool,
    ) -> TargetTable:
        """Check that rows fit a table; return it with its constraints. Raises `SchemaRefused`."""
        table = self._keyed(table)
        names = set(schema.names)
        lacking = [at.name for at in table.columns if at.is_required and at.name not in names]
        if lacking and not only_deletes:
            raise SchemaRefused(
                f"{table.name} demands {', '.join(lacking)}, which rows do not have: give it a "
                "default, let it be null, or add it by a transform"
            )
        if without := [each for each in table.key if each not in names]:
            raise SchemaRefused(f"rows for {table.name} have no {', '.join(without)}, of their key")
        if self.order and self.order not in names:
            raise SchemaRefused(f"rows for {table.name} have no {self.order}: see {keys.ORDER}")
        regclass = (table.name.sql.as_string(),)
        checks = (RowCheck(*each) for each in connection.execute(_CHECKS, regclass))
        may_read = connection.execute(_MAY_READ, regclass).fetchone() == (True,)
        once = table.unique if self.adds and may_read else ()
        parameters = {"adds": self.adds, "table": table.name.sql.as_string(), "given": [*names]}
        shows = connection.execute(_SHOWS_LATE, parameters).fetchone() == (True,)
        late = shows or bool(self.adds and table.unique and not may_read)
        copied = connection.execute(_TAKES_COPY, regclass).fetchone() == (True,)
        indexed = frozenset(name for (name,) in connection.execute(_INDEXED, regclass))
        table = replace(table, indexed=indexed, takes_copy=copied)
        return replace(table, checks=tuple(checks), once=once, shows_late=late)


def _refuse_long(name: TableName, schema: pa.Schema) -> None:
    """Raise `SchemaRefused` for names that PostgreSQL would cut, so that two may become one."""
    names = (name.schema, name.table, *schema.names)
    if long := [each for each in names if len(each.encode()) > NAME_BYTES]:
        raise SchemaRefused(
            f"{name}: PostgreSQL has no names of more than {NAME_BYTES} bytes: {', '.join(long)}. "
            f"Rename it by a transform, or see {keys.TABLE_FORMAT} and {keys.WHITELIST}"
        )


def _wider(column: TargetColumn, kind: pa.DataType) -> str | None:
    """Return the wider type that a column needs for an Arrow type; None: it fits."""
    wanted = sql_type_of(kind)
    bare = wanted.partition("(")[0]
    if bare == column.kind == "numeric" and column.type.startswith("numeric("):
        digits, scale = digits_of(column.width)
        if kind.precision - kind.scale > digits - scale or kind.scale > scale:
            scale = max(scale, kind.scale)
            whole = max(digits - scale, kind.precision - kind.scale)
            return f"numeric({whole + scale},{scale})"
    return wanted if bare in WIDENS.get(column.kind, ()) else None


def _made(column: pa.Field) -> sql.Composed:
    return sql.SQL("{} {}").format(sql.Identifier(column.name), raw_sql(sql_type_of(column.type)))
