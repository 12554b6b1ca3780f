# pyright: basic
"""Warnings about relations that patterns match, or that inherit from a table, and are not read.

A table is read without the tables that inherit from it, in each mode: these are tables of their
own. A partition belongs to its partitioned table, as long as it is a table.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from psycopg import sql

from .....spi.config import ParsedConfig
from .....spi.errors import NotReady
from ...names import TableName
from .. import keys
from ..catalog import FoundTable, TableFilter
from ..session import DatabaseSnapshot

_RELATIONS: Final = """
WITH RECURSIVE below AS (
    SELECT i.inhrelid AS child, i.inhparent AS parent FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid AND NOT c.relispartition
    UNION SELECT b.child, i.inhparent FROM below b
    JOIN pg_inherits i ON i.inhrelid = b.parent)
SELECT n.nspname::text AS schema, c.relname::text AS name, rn.nspname::text AS root_schema,
    r.relname::text AS root, c.relkind::text AS kind, c.relpersistence = 'u' AS is_unlogged,
    (SELECT json_agg(json_build_array(an.nspname, a.relname) ORDER BY a.oid)::text FROM below b
        JOIN pg_class a ON a.oid = b.parent JOIN pg_namespace an ON an.oid = a.relnamespace
        WHERE b.child = c.oid) AS above
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid)::oid, c.oid)
JOIN pg_namespace rn ON rn.oid = r.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f') AND c.relpersistence <> 't' AND n.nspname !~ '^pg_'
    AND n.nspname <> 'information_schema' ORDER BY 1, 2"""
_HIDDEN: Final = """
WITH mine AS (
    SELECT polrelid, polpermissive, pg_get_expr(polqual, polrelid) = 'true' AS shows_all
    FROM pg_policy WHERE polcmd IN ('r', '*') AND EXISTS (SELECT FROM unnest(polroles) o
        WHERE CASE WHEN o = 0 THEN true ELSE pg_has_role(current_user, o, 'USAGE') END))
SELECT o AS oid, current_user::text AS role FROM unnest({}::int8[]) o
WHERE row_security_active(o::oid) AND (
    NOT EXISTS (SELECT FROM mine WHERE polrelid = o::oid AND polpermissive AND shows_all)
    OR EXISTS (SELECT FROM mine WHERE polrelid = o::oid AND NOT polpermissive AND NOT shows_all))"""
"""The tables of which row security may hide rows from the role."""
_VIEWS: Final = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_SHOWN: Final = 5


@dataclass(frozen=True)
class UnreadTables:
    """The reasons why matching relations, or rows of tables, are not read."""

    views: Mapping[TableName, str]
    """Views and foreign tables that patterns match."""
    tables: Mapping[TableName, str]
    """Tables whose rows one would expect: unlogged ones, foreign partitions, inheriting tables."""
    hidden: Sequence[TableName]
    """Tables that row security shows in part."""
    role: str
    """The role that reads."""
    together: Sequence[str]
    """Warnings about tables that are read into one topic."""

    @classmethod
    def find(
        cls, snapshot: DatabaseSnapshot, rules: TableFilter, tables_read: Sequence[FoundTable]
    ) -> Self:
        """Find relations that match `rules` and are not read, and hidden rows in `tables_read`."""
        views, tables = dict[TableName, str](), dict[TableName, str]()
        for row in snapshot.table(sql.SQL(_RELATIONS)).to_pylist():
            name = TableName(row["schema"], row["name"])
            if reason := _reason(row, name, rules):
                tables[name] = reason
            elif row["kind"] in _VIEWS and rules.means(name, name):
                views[name] = f"is {_VIEWS[row['kind']]}, which is not read as tables are: name it "
                views[name] += f"in {keys.QUERY}"
        names = {each.oid: each.name for each in tables_read}
        query = sql.SQL(_HIDDEN).format(sql.Literal([*names]))
        rows = snapshot.table(query).to_pylist()
        role = rows[0]["role"] if rows else ""
        hidden = [names[each["oid"]] for each in rows]
        return cls(views, tables, hidden, role, _of_one_topic(tables_read))

    @property
    def flaw_in_log(self) -> str:
        """Why rows with changes would be missing in the snapshot; empty: none would."""
        if not self.hidden:
            return ""
        return (
            f"row security hides rows of {listed(self.hidden)} from the role {self.role}, while "
            f"the log has the changes of all: ALTER ROLE {self.role} BYPASSRLS, or {keys.EXCLUDE}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks about tables, for the status."""
        by_reason: dict[str, list[TableName]] = {}
        for name, reason in self.tables.items():
            by_reason.setdefault(reason, []).append(name)
        texts = [f"{listed(names)} {reason}" for reason, names in by_reason.items()]
        texts += self.together
        if self.hidden:
            texts.append(
                f"row security hides rows of {listed(self.hidden)} from the role {self.role}, and "
                f"only those that it shows are read: ALTER ROLE {self.role} BYPASSRLS, or a policy "
                "FOR SELECT USING (true), shows all"
            )
        return tuple(texts)


def refuse_none(
    snapshot: DatabaseSnapshot, settings: ParsedConfig, tables: Sequence[FoundTable]
) -> None:
    """Raise `NotReady` if no table matches."""
    if not tables:
        remarks = UnreadTables.find(snapshot, TableFilter.of(settings), tables).remarks
        raise NotReady("; ".join(("no table matches yet", *remarks)))


def listed(names: Sequence[TableName]) -> str:
    """Return names for messages, the first of them if there are many."""
    shown = ", ".join(map(str, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _of_one_topic(tables: Sequence[FoundTable]) -> Sequence[str]:
    """Return which tables have one topic because of dots in their names."""
    roots: dict[str, set[TableName]] = {}
    for each in tables:
        roots.setdefault(each.topic, set()).add(each.root)
    return [
        f"{' and '.join(sorted(each.quoted for each in names))} are tables of one topic, {topic}"
        for topic, names in roots.items()
        if len(names) > 1
    ]


def _reason(row: Mapping[str, Any], name: TableName, rules: TableFilter) -> str:
    """Return why a table is not read whose rows one would expect; empty: it is, or none would."""
    root = TableName(row["root_schema"], row["root"])
    is_matched, is_table = rules.means(name, root), row["kind"] == "r"
    if row["is_unlogged"] and is_table and is_matched and rules.is_logged:
        return (
            f"is not read, for it is unlogged, and its changes are in no log: {keys.MODE}="
            f"{keys.XMIN} reads it; or ALTER TABLE … SET LOGGED, or {keys.EXCLUDE}"
        )
    if row["kind"] == "f" and root != name and is_matched:
        return (
            f"is not read, for it is a foreign table, although a partition of {root}: name it in "
            f"{keys.QUERY}, or in {keys.EXCLUDE}"
        )
    parents = [TableName(*each) for each in json.loads(row["above"] or "[]")]
    above = [each for each in parents if rules.means(each, each)]
    if not above or (is_matched and is_table) or rules.leaves_out(name, root):
        return ""
    text = f"is not read, although it inherits from {listed(above)}, for tables are read without"
    rest = f"name it in {keys.INCLUDE}" if is_table else f"name it in {keys.QUERY}"
    return f"{text} those that inherit from them: {rest}, or in {keys.EXCLUDE}"
