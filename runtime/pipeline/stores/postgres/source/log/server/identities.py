# pyright: basic
"""The replica identities of tables: the columns that the WAL has of a row before its change.

They tell which row was deleted, and which one an update has replaced. So the columns by which the
target knows a row must be among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from psycopg import sql

from ....names import TableName
from ....sink import keys as sink_keys
from ....tables.catalog import FoundTable
from ....tables.session import DatabaseSnapshot

_IDENTITIES: Final = """
SELECT n.nspname::text AS schema, c.relname::text AS name, c.relreplident = 'f' AS is_full,
    ARRAY(SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
    ARRAY(SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
        AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
        WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY a.attnum) AS primary_key,
    ARRAY(SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
        AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
        WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary
            ELSE i.indisreplident END ORDER BY a.attnum) AS identity
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY ({}::oid[]) ORDER BY 1, 2"""


def key_of_target(config: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the columns by which a sink knows a row; empty: unknown, None: it adds rows."""
    is_keyed = config.get(sink_keys.INSERT_MODE) in {sink_keys.UPSERT, sink_keys.UPDATE}
    named = config.get(sink_keys.PK_FIELDS, "").split(",")
    return tuple(filter(None, map(str.strip, named))) if is_keyed else None


@dataclass(frozen=True)
class LackingIdentity:
    """A table whose replica identity does not have all columns of a key."""

    name: TableName
    identity: Sequence[str]
    lacking: Sequence[str]

    @property
    def flaw(self) -> str:
        """Why rows would stay in the target."""
        lacking, identity = ", ".join(self.lacking), ", ".join(self.identity)
        return (
            f"{self.name}: the log has only the columns of its replica identity ({identity}) of a "
            f"row before its change, and the key of the target has {lacking}: a row that is "
            f"deleted, or whose {lacking} changes, would stay in the target. ALTER TABLE "
            f"{self.name.sql.as_string()} REPLICA IDENTITY FULL, or set {sink_keys.PK_FIELDS} to "
            f"columns of {identity}"
        )

    @property
    def remark(self) -> str:
        """The gap in deletes and changes of the key, for a target whose key is not known."""
        lacking, identity = ", ".join(self.lacking), ", ".join(self.identity)
        return (
            f"deletes of {self.name} have only the columns of its replica identity ({identity}), "
            f"and a change of {lacking}, its primary key, is an update that does not tell the old "
            "one: REPLICA IDENTITY FULL has both"
        )


@dataclass(frozen=True)
class Identities:
    """The identities of some tables, against the key of the target."""

    lacking: Sequence[LackingIdentity]
    is_keyed: bool

    @classmethod
    def find(
        cls, snapshot: DatabaseSnapshot, tables: Sequence[FoundTable], key: tuple[str, ...] | None
    ) -> Self:
        """Find the tables whose identity lacks columns of the key, or of their own primary key."""
        query = sql.SQL(_IDENTITIES).format(sql.Literal([each.oid for each in tables]))
        rows = (_lacking(row, key or ()) for row in snapshot.table(query).to_pylist())
        return cls([each for each in rows if each.lacking], key is not None)

    @property
    def flaw(self) -> str:
        """Why rows would stay in the target; empty: none would, as far as is known."""
        return "; ".join(each.flaw for each in self.lacking[:1]) if self.is_keyed else ""

    @property
    def remarks(self) -> Sequence[str]:
        """The remarks for a target of unknown key; none for a known one."""
        return [] if self.is_keyed else [each.remark for each in self.lacking]


def _lacking(row: Mapping[str, Any], key: Sequence[str]) -> LackingIdentity:
    wanted = [each for each in key if each in row["columns"]] or row["primary_key"]
    is_told = row["is_full"] or not row["identity"]  # else it is refused as it is
    lacking = [] if is_told else [each for each in wanted if each not in row["identity"]]
    return LackingIdentity(TableName(row["schema"], row["name"]), row["identity"], lacking)
