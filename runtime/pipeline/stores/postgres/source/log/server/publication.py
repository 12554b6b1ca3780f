# pyright: basic
"""The publication of a slot: its tables, and their replica identities.

A published table without a replica identity rejects UPDATE and DELETE: such a table is refused
before it is published.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

from ......spi.errors import BadInput
from ....names import TableName
from ....tables import keys
from ....tables.checks.unread import listed
from ....tables.session import DatabaseSnapshot

_LOOK: Final = """
SELECT puballtables, pubupdate OR pubdelete, pubviaroot, array_remove(ARRAY[
        CASE WHEN NOT pubinsert THEN 'c' END, CASE WHEN NOT pubupdate THEN 'u' END,
        CASE WHEN NOT pubdelete THEN 'd' END], NULL) FROM pg_publication WHERE pubname = %s"""
_NO_TRUNCATE: Final = sql.SQL(
    "SELECT NOT coalesce(bool_and(pubtruncate), true) FROM pg_publication WHERE pubname = {}"
)
_IN_PART: Final = """
SELECT t.schemaname::text, t.tablename::text, coalesce('WHERE ' || (to_jsonb(t)->>'rowfilter'),
    'without ' || (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
            AND jsonb_typeof(to_jsonb(t)->'attnames') = 'array'
            AND NOT (to_jsonb(t)->'attnames') ? a.attname::text)) AS part
FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename WHERE pubname = %s"""
"""The tables of a publication with its row filters, or the columns that it leaves out."""
_TABLES: Final = (
    "SELECT schemaname::text, tablename::text FROM pg_publication_tables WHERE pubname = %s"
)
_WITHOUT_IDENTITY: Final = """
SELECT n.nspname::text, c.relname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (n.nspname::text, c.relname::text) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
    AND (c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
    OR c.relreplident = 'i' AND NOT EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident))
ORDER BY 1, 2"""
_NAMES: Final = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}


@dataclass(frozen=True)
class Publication:
    """A publication; `mode` says who creates it."""

    name: str
    mode: str
    skipped: frozenset[str] = frozenset()
    """The operations that it need not publish."""
    has_snapshot: bool = True
    """Whether rows are read that it may leave out."""

    def flaw(self, connection: "psycopg.Connection[Any]", tables: Sequence[TableName]) -> str:
        """Return why it cannot publish tables; empty: it can."""
        row = connection.execute(_LOOK, (self.name,)).fetchone()
        if row is None and self.mode == keys.DISABLED:
            return (
                f"there is no publication {self.name}: {self._make(tables)}; or set "
                f"{keys.AUTOCREATE}={keys.FILTERED}"
            )
        if row is not None and row[2]:
            return (
                f"the publication {self.name} publishes partitions by their root, whose rows "
                "cannot be told apart: ALTER PUBLICATION … SET (publish_via_partition_root = false)"
            )
        if row is not None and (flaw := self._flaw_in_parts(connection, row[3], tables)):
            return flaw
        missing = self._missing(connection, tables) if row is not None else []
        if missing and (self.mode != keys.FILTERED or (row and row[0])):
            return f"the publication {self.name} lacks {listed(missing)}: {self._add(missing)}"
        tells_changes = row is None or row[1]
        if tells_changes and (bare := self._without_identity(connection, tables)):
            return (
                f"{listed(bare)}: there is no primary key, and no other replica identity, so that "
                "no change of a row could be told, and PostgreSQL would refuse all of them: ALTER "
                f"TABLE … ADD PRIMARY KEY …, ALTER TABLE … REPLICA IDENTITY FULL, or {keys.EXCLUDE}"
            )
        return ""

    def _flaw_in_parts(
        self,
        connection: "psycopg.Connection[Any]",
        unpublished: Sequence[str],
        tables: Collection[TableName],
    ) -> str:
        """Return which changes it leaves out, so that rows of the target stay as they were."""
        name = sql.Identifier(self.name).as_string()
        if lacks := [each for each in unpublished if each not in self.skipped]:
            told, skipped = " and ".join(_NAMES[each] for each in lacks), ",".join(unpublished)
            return (
                f"the publication {self.name} does not publish {told}, so that these would be "
                f"missing in the target without a word: ALTER PUBLICATION {name} SET (publish = "
                f"'insert, update, delete, truncate'), or say so: {keys.SKIPPED}={skipped}. "
                "What it has left out so far is in no log"
            )
        rows = connection.execute(_IN_PART, (self.name,)) if self.has_snapshot else ()
        for schema, table, part in rows:
            if part and TableName(schema, table) in tables:
                return (
                    f"the publication {self.name} publishes {schema}.{table} {part}: what the "
                    "snapshot has beside that would never change in the target. Publish all of it "
                    "(leave out rows and columns by a transform), or read only what it publishes: "
                    f"{keys.SNAPSHOT_MODE}={keys.NO_DATA}. What it has left out is in no log"
                )
        return ""

    def remarks(self, snapshot: DatabaseSnapshot) -> Sequence[str]:
        """Return what to know about it, for the status."""
        (is_lacking,) = snapshot.row(_NO_TRUNCATE.format(sql.Literal(self.name)))
        if not is_lacking or "t" in self.skipped:
            return ()
        text = f"the publication {self.name} does not publish TRUNCATE: rows that one removes stay"
        return (f"{text}; {keys.SKIPPED}=t says that this is meant",)

    def lacks(self, connection: "psycopg.Connection[Any]", tables: Sequence[TableName]) -> str:
        """Return which of some tables it lacks, for messages; empty: none, or it is unusable."""
        row = connection.execute(_LOOK, (self.name,)).fetchone()
        if row is None or row[2]:
            return ""
        return listed(self._missing(connection, tables))

    def make(self, connection: "psycopg.Connection[Any]", tables: Sequence[TableName]) -> None:
        """Create it, or add missing tables; raises `BadInput` if a user has to do it."""
        if flaw := self.flaw(connection, tables):
            raise BadInput(flaw)
        statement = ""
        try:
            if connection.execute(_LOOK, (self.name,)).fetchone() is None:
                statement = self._make(tables)
                connection.execute(statement.encode())
            elif missing := self._missing(connection, tables):
                statement = self._add(missing)
                connection.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise BadInput(
                f"{str(error).splitlines()[0]}: have the tables' owner do it: {statement}; and set "
                f"{keys.AUTOCREATE}={keys.DISABLED}"
            ) from None

    def drop(self, connection: "psycopg.Connection[Any]") -> None:
        """Drop it, if `make` created it."""
        if self.mode != keys.DISABLED:
            name = sql.Identifier(self.name)
            connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(name))

    def _missing(
        self, connection: "psycopg.Connection[Any]", tables: Collection[TableName]
    ) -> list[TableName]:
        there = {TableName(*row) for row in connection.execute(_TABLES, (self.name,))}
        return [each for each in tables if each not in there]

    @staticmethod
    def _without_identity(
        connection: "psycopg.Connection[Any]", tables: Collection[TableName]
    ) -> list[TableName]:
        names = ([each.schema for each in tables], [each.table for each in tables])
        return [TableName(*row) for row in connection.execute(_WITHOUT_IDENTITY, names)]

    def _make(self, tables: Sequence[TableName]) -> str:
        name = sql.Identifier(self.name).as_string()
        every = self.mode == keys.ALL_TABLES
        return f"CREATE PUBLICATION {name} FOR {'ALL TABLES' if every else f'TABLE {_sql(tables)}'}"

    def _add(self, tables: Sequence[TableName]) -> str:
        return f"ALTER PUBLICATION {sql.Identifier(self.name).as_string()} ADD TABLE {_sql(tables)}"


def _sql(tables: Sequence[TableName]) -> str:
    return ", ".join(each.only.as_string() for each in tables)
