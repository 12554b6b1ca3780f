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

from .....spi.errors import BadInput
from ...names import TableName
from ...tables import keys

_LOOK: Final = """
SELECT puballtables, pubupdate OR pubdelete, pubviaroot FROM pg_publication WHERE pubname = %s"""
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
_SHOWN: Final = 5


@dataclass(frozen=True)
class Publication:
    """A publication; `mode` says who creates it."""

    name: str
    mode: str

    def flaw(self, connection: "psycopg.Connection[Any]", tables: Sequence[TableName]) -> str:
        """Return why it cannot publish tables; empty: it can."""
        found = connection.execute(_LOOK, (self.name,)).fetchone()
        if found is None and self.mode == keys.DISABLED:
            return (
                f"there is no publication {self.name}: {self._make(tables)}; or set "
                f"{keys.AUTOCREATE}={keys.FILTERED}"
            )
        if found is not None and found[2]:
            return (
                f"the publication {self.name} publishes partitions by their root, whose rows "
                "cannot be told apart: ALTER PUBLICATION … SET (publish_via_partition_root = false)"
            )
        missing = self._missing(connection, tables) if found is not None else []
        if missing and (self.mode != keys.FILTERED or (found and found[0])):
            return f"the publication {self.name} lacks {_listed(missing)}: {self._add(missing)}"
        tells_changes = found is None or found[1]
        if tells_changes and (bare := self._without_identity(connection, tables)):
            return (
                f"{_listed(bare)}: there is no primary key, and no other replica identity, so that "
                "no change of a row could be told, and PostgreSQL would refuse all of them: ALTER "
                f"TABLE … ADD PRIMARY KEY …, ALTER TABLE … REPLICA IDENTITY FULL, or {keys.EXCLUDE}"
            )
        return ""

    def lacks(self, connection: "psycopg.Connection[Any]", tables: Sequence[TableName]) -> str:
        """Return which of some tables it lacks, for messages; empty: none, or it is unusable."""
        found = connection.execute(_LOOK, (self.name,)).fetchone()
        if found is None or found[2]:
            return ""
        return _listed(self._missing(connection, tables))

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
    return ", ".join(each.sql.as_string() for each in tables)


def _listed(tables: Sequence[TableName]) -> str:
    shown = ", ".join(map(str, tables[:_SHOWN]))
    return shown if len(tables) <= _SHOWN else f"{shown} and {len(tables) - _SHOWN} more"
