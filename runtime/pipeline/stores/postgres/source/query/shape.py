# pyright: basic
"""A query with its columns, and the growing columns for incremental reads."""

from dataclasses import dataclass
from typing import Any, Final, Self

import psycopg
import pyarrow as pa
from psycopg import sql

from .....spi.config import ConfigInvalid, ParsedConfig
from .....spi.errors import Away, SourceAway
from ...base_types import base_type
from ...connecting import Server, brief, is_away
from ...names import raw_sql
from ...tables import keys
from ...tables.columns import TOPIC, SourceColumn, TypeMapping

XID: Final = "xid8"
_NUMBERS: Final = frozenset({"int2", "int4", "int8", "oid", XID})
_TIMES: Final = frozenset({"timestamp", "timestamptz", "date"})
_TYPES: Final = f"""
SELECT t.kind, t.width FROM unnest(%s::oid[], %s::int4[]) WITH ORDINALITY k(oid, width, place)
CROSS JOIN {base_type("k.oid", "k.width")} t ORDER BY k.place"""  # noqa: S608  # of constants
_HIDDEN: Final = (
    "row security applies to a table of the query, and only the rows that it shows to the role are "
    "read: ALTER ROLE … BYPASSRLS shows all"
)
_NOTHING_OF: Final = sql.SQL("SELECT * FROM {} LIMIT 0")


@dataclass(frozen=True)
class GrowingColumn:
    """A growing column; `member` is its name in offsets."""

    member: str
    name: str
    kind: str

    @property
    def text(self) -> sql.Composed:
        """Its value as text in offsets."""
        return sql.SQL("{}::text").format(sql.Identifier(self.name))

    def literal(self, value: object) -> sql.Composed:
        """Return a value in SQL."""
        return sql.SQL("{}::{}").format(sql.Literal(str(value)), raw_sql(self.kind))


@dataclass(frozen=True)
class QueryShape:
    """A query, its columns, and its growing columns (none in bulk mode)."""

    query: str
    columns: tuple[SourceColumn, ...]
    growing: tuple[GrowingColumn, ...]
    remark: str = ""
    """The remark that rows may be hidden from the role."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the query's rows."""
        return pa.schema([(each.name, each.type) for each in self.columns])

    @property
    def relation(self) -> sql.Composed:
        """The query as a relation in SQL."""
        return _relation(self.query)

    @classmethod
    def read(cls, server: Server, settings: ParsedConfig) -> Self:
        """Describe a query; raises `ConfigInvalid` if the server refuses it, `SourceAway`."""
        query = settings.text(keys.QUERY).strip().rstrip(";")
        with _reached(server) as connection:
            try:
                connection.execute("BEGIN READ ONLY")
                cursor = connection.execute(_NOTHING_OF.format(_relation(query)))
                description, result = cursor.description or (), cursor.pgresult
                oids = [each.type_code for each in description]
                widths = [result.fmod(at) if result else -1 for at in range(len(description))]
                types = connection.execute(_TYPES, (oids, widths)).fetchall()
                is_hidden = _is_under_row_security(connection, _relation(query))
            except psycopg.Error as error:
                if is_away(error):
                    raise SourceAway(f"{server.shown}: {brief(str(error))}") from None
                raise ConfigInvalid(f"{keys.QUERY}: {brief(str(error))}") from None
        mapping = TypeMapping.of(settings)
        columns = tuple(
            SourceColumn.of(each.name, kind, width, 1, mapping)
            for each, (kind, width) in zip(description, types, strict=True)
        )
        names = [each.name for each in description]
        if twice := sorted({each for each in names if names.count(each) > 1}):
            raise ConfigInvalid(f"{keys.QUERY}: gives {', '.join(twice)} twice: name them by AS")
        if TOPIC in map(str.lower, names):
            raise ConfigInvalid(
                f"{keys.QUERY}: gives {TOPIC}, by which rows tell their topic, so that its values "
                "would be lost: name it otherwise by AS"
            )
        by_name = {name: kind for name, (kind, _) in zip(names, types, strict=True)}
        return cls(query, columns, _growing(settings, by_name), _HIDDEN if is_hidden else "")


def _is_under_row_security(connection: "psycopg.Connection[Any]", query: sql.Composed) -> bool:
    """Return whether a query that is allowed is so only with the rows that policies show."""
    connection.execute("SET LOCAL row_security = off")
    try:
        connection.execute(_NOTHING_OF.format(query))
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def _relation(query: str) -> sql.Composed:
    return sql.SQL("(\n{}\n) AS q").format(raw_sql(query))


def _reached(server: Server) -> "psycopg.Connection[Any]":
    try:
        return server.connect()
    except Away as away:
        raise SourceAway(str(away)) from None


def _growing(settings: ParsedConfig, kinds: dict[str, str]) -> tuple[GrowingColumn, ...]:
    """Return the growing columns of a mode, times before numbers."""
    mode, columns = settings.text(keys.MODE), list[GrowingColumn]()
    if mode in {keys.STAMPED, keys.BOTH}:
        for name in settings.items(keys.TIMESTAMP):
            columns.append(_column(keys.TIMESTAMP, "timestamp", name, kinds, _TIMES))
    if mode in {keys.INCREMENT, keys.BOTH}:
        name = settings.text(keys.INCREMENTING)
        columns.append(_column(keys.INCREMENTING, "incrementing", name, kinds, _NUMBERS))
    return tuple(columns)


def _column(
    key: str, member: str, name: str, kinds: dict[str, str], wanted: frozenset[str]
) -> GrowingColumn:
    if name not in kinds:
        raise ConfigInvalid(f"{key}: the query gives no column {name}")
    if kinds[name] not in wanted:
        allowed = ", ".join(sorted(wanted))
        raise ConfigInvalid(f"{key}: the query gives {name} as {kinds[name]}: it must be {allowed}")
    return GrowingColumn(member, name, kinds[name])
