# pyright: basic
"""The tables to read, and their columns, from the catalog."""

import math
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
from psycopg import sql

from ....spi.config import ParsedConfig
from ....spi.errors import BadInput
from ....untrusted.patterns import compile_pattern
from ..base_types import base_type
from ..names import TableName
from . import keys
from .columns import SourceColumn, TypeMapping, refuse_taken
from .session import DatabaseSnapshot, TableChanged

_TABLES: Final = """
SELECT n.nspname::text AS schema, c.relname::text AS name, rn.nspname::text AS root_schema,
    r.relname::text AS root, c.oid::int8 AS oid, pg_relation_filenode(c.oid)::int8 AS file,
    c.relpersistence = 'p' AS is_in_log
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid)::oid, c.oid)
JOIN pg_namespace rn ON rn.oid = r.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname !~ '^pg_'
    AND n.nspname <> 'information_schema' AND EXISTS (SELECT FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) ORDER BY 1, 2"""
_PAGES: Final = """
SELECT o AS oid,
    coalesce(pg_relation_size(o::oid) / current_setting('block_size')::int8, 0)::int8 AS pages
FROM unnest({}::int8[]) o"""
"""The pages of some tables."""
_PARTS: Final = """
SELECT relid::oid::int8 AS oid FROM pg_partition_tree(to_regclass({})) WHERE level > 0"""
_SHAPE: Final = f"""
SELECT c.oid::int8 AS oid, pg_table_size(c.oid)::int8 AS bytes,
    pg_relation_size(c.oid) / current_setting('block_size')::int8 AS pages,
    greatest(c.reltuples, 0)::int8 AS rows, pg_relation_filenode(c.oid)::int8 AS file,
    c.relfilenode::int8 AS seen_file,
    a.attname::text AS name, t.kind, t.width, t.dimensions, a.attnotnull AS required,
    coalesce(a.attnum = ANY (i.indkey::int2[]), false) AS is_primary
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
CROSS JOIN {base_type("a.atttypid", "a.atttypmod", "a.attndims")} t
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.oid = {{}}::regclass AND a.attnum > 0 AND NOT a.attisdropped
    AND (a.attgenerated = '' OR {{}}) ORDER BY a.attnum"""  # noqa: S608  # of constants
_FILE: Final = "SELECT pg_relation_filenode({}::oid)::int8 AS file"
_ROWS_EACH_PAGE: Final = 64
"""The assumed rows of a page with much TOAST data, while the server has counted none."""
_REMARK_PAUSE_S: Final = 60.0
"""The pause between two looks for remarks."""
_OWN: Final = re.compile(r"fairlead_published|fairlead_.*_\d+_\d+_\d+_\d+_\d+")
"""Matches the marker and staging tables of a sink."""


@dataclass(frozen=True)
class FoundTable:
    """A table to read."""

    name: TableName
    root: TableName
    """The partitioned table that it belongs to, or the table itself."""
    oid: int
    file: int
    """Its relfilenode, which changes if the table is rewritten."""

    @property
    def topic(self) -> str:
        """The topic of its rows, without the prefix."""
        return str(self.root)


@dataclass(frozen=True)
class TableFilter:
    """The include and exclude rules of a config.

    `is_logged`: the tables are read by the WAL, which has no changes of unlogged ones.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    is_logged: bool = False

    @classmethod
    def of(cls, settings: ParsedConfig) -> Self:
        """Return the rules of a config."""
        bare = settings.items(keys.WHITELIST)
        named = [each if re.search(r"\.", each) else rf".*\.{each}" for each in bare]
        include = (*settings.items(keys.INCLUDE), *named)
        is_logged = settings.text(keys.MODE) == keys.LOG
        return cls(include, settings.items(keys.EXCLUDE), is_logged)

    def find(self, snapshot: DatabaseSnapshot) -> Sequence[FoundTable]:
        """Return the existing tables that match, by name; waits for no lock on a table."""
        rows = snapshot.table(sql.SQL(_TABLES)).to_pylist()
        tables = [
            FoundTable(
                TableName(each["schema"], each["name"]),
                TableName(each["root_schema"], each["root"]),
                each["oid"],
                each["file"],
            )
            for each in rows
            if each["is_in_log"] or not self.is_logged
        ]
        return [each for each in tables if self.means(each.name, each.root)]

    def is_new(self, snapshot: DatabaseSnapshot, name: TableName) -> bool:
        """Return whether a table with changes belongs to the tables to read.

        Raises `BadInput` if it is a partitioned one of them, whose partitions are read.
        """
        tables = self.find(snapshot)
        query = sql.SQL(_PARTS).format(sql.Literal(name.sql.as_string()))
        parts = {each["oid"] for each in snapshot.table(query).to_pylist()}
        if any(each.oid in parts for each in tables):
            raise BadInput(
                f"changes of {name} came by their root: the publication had "
                "publish_via_partition_root = true then, and of such rows nobody knows where they "
                "were. Set it to false. Read the tables again: stop the connector, drop its slot, "
                "seek to earliest, resume"
            )
        return any(each.name == name for each in tables)

    def means(self, name: TableName, root: TableName) -> bool:
        """Return whether a table, or the partitioned table that it belongs to, is to be read."""
        names = name.spellings | root.spellings
        is_in = not self.include or _fits(self.include, names)
        is_own = _OWN.fullmatch(name.table)
        return is_in and not is_own and not self.leaves_out(name, root)

    def leaves_out(self, name: TableName, root: TableName) -> bool:
        """Return whether a table is excluded by name."""
        return _fits(self.exclude, name.spellings | root.spellings)


@dataclass(frozen=True)
class TableShape:
    """The columns and sizes of a table in one catalog snapshot."""

    columns: tuple[SourceColumn, ...]
    kinds: dict[str, str]
    """The name of each column's type, as `base_type` has it."""
    nullable: frozenset[str]
    oid: int
    file: int
    pages: int
    row_bytes: int
    """The estimated size of a row, with its TOAST data."""
    page_bytes: int
    """The estimated data of a page, with TOAST data."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table's rows."""
        return pa.schema([(each.name, each.type) for each in self.columns])

    @classmethod
    def read(
        cls,
        snapshot: DatabaseSnapshot,
        name: TableName,
        mapping: TypeMapping,
        *,
        is_logged: bool = False,
    ) -> Self:
        """Read the shape of a table in a snapshot; raises `TableChanged`, `TableRefused`.

        `is_logged` leaves out generated columns, which the WAL does not have.
        """
        given = (sql.Literal(name.sql.as_string()), sql.Literal(not is_logged))
        rows = snapshot.table(sql.SQL(_SHAPE).format(*given)).to_pylist()
        if not rows:
            raise TableChanged(f"{name} has no columns")
        refuse_taken(f"{name}", [each["name"] for each in rows], is_logged=is_logged)
        first = rows[0]
        if first["seen_file"] != first["file"]:
            raise TableChanged(f"{name} was rewritten just now")
        pages, size = max(first["pages"], 1), first["bytes"]
        return cls(
            tuple(_columns_of(rows, mapping)),
            {each["name"]: each["kind"] for each in rows},
            frozenset(each["name"] for each in rows if not each["required"]),
            first["oid"],
            first["file"],
            pages,
            max(16, size // first["rows"])
            if first["rows"]
            else max(200, size // pages // _ROWS_EACH_PAGE),
            max(1, size // pages),
        )


def _columns_of(rows: Sequence[Mapping[str, Any]], mapping: TypeMapping) -> Iterator[SourceColumn]:
    key = [each["name"] for each in rows if each["is_primary"]]
    for each in rows:
        kind = each["kind"], each["width"], each["dimensions"]
        yield SourceColumn.of(each["name"], *kind, mapping, key)


def pages_of(snapshot: DatabaseSnapshot, tables: Sequence[FoundTable]) -> Mapping[int, int]:
    """Return the number of pages of tables, by oid; waits for those that are locked exclusively."""
    query = sql.SQL(_PAGES).format(sql.Literal([each.oid for each in tables]))
    return {each["oid"]: each["pages"] for each in snapshot.table(query).to_pylist()}


def look_for_rewrite(snapshot: DatabaseSnapshot, name: TableName, shape: TableShape) -> None:
    """Raise `TableChanged` if a table was rewritten or replaced since its shape was read.

    TRUNCATE and forms of ALTER TABLE write a table anew, and to snapshots from before it has no
    rows then. A read waits for their lock, so its snapshot may be such a one.
    """
    (file,) = snapshot.row(sql.SQL(_FILE).format(sql.Literal(shape.oid)))
    if file != shape.file:
        raise TableChanged(f"{name} was rewritten while it was read")


def refuse_replaced(name: TableName, earlier: int, oid: int) -> None:
    """Raise `BadInput` if a table has another oid than at an earlier read; 0: it is unknown."""
    if earlier not in {0, oid}:
        raise BadInput(
            f"{name} was dropped and made anew, or another table has its name now: what is in it "
            "may be older than what would be read next. Read the tables again: stop the connector, "
            "seek to earliest, resume"
        )


def _fits(patterns: Sequence[str], names: Collection[str]) -> bool:
    return any(compile_pattern(each).matches(name) for each in patterns for name in names)


@dataclass
class CatalogRemarks:
    """The remarks about the tables in the catalog, looked up again now and then.

    `look` returns those of the present.
    """

    look: Callable[[DatabaseSnapshot], Sequence[str]]
    text: str = ""
    """The remarks of the last look, as one text."""
    _at: float = -math.inf
    """The monotonic time of the last look."""

    @property
    def is_due(self) -> bool:
        """Whether the remarks have to be refreshed."""
        return time.monotonic() - self._at >= _REMARK_PAUSE_S

    def refresh(self, snapshot: DatabaseSnapshot) -> None:
        """ProbeResult, if it is time; raises as the session does."""
        if self.is_due:
            self.text = "; ".join(self.look(snapshot))
            self._at = time.monotonic()
