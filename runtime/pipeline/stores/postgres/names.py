"""Names of tables and columns, in configs and in SQL."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from psycopg import sql

NAME_BYTES: Final = 63
"""The length at which PostgreSQL cuts names."""


class TableName(NamedTuple):
    """The schema and name of a table, as in the catalog."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str, schema: str) -> "TableName":
        """Parse `schema.table` or `table`; each part may be quoted as in SQL."""
        parts: list[str] = []
        rest = f"{text.strip()}."
        while rest:
            if rest.startswith('"') and (end := _closing(rest)) > 0:
                part, rest = rest[1:end].replace('""', '"'), rest[end + 2 :]
            else:
                part, _, rest = rest.partition(".")
            parts.append(part)
        if not parts or not all(parts):
            raise ValueError(f"{text!r} is no name of a table")
        return cls(".".join(parts[:-1]) or schema, parts[-1])

    @property
    def only(self) -> sql.Composed:
        """The name in SQL, without the tables that inherit from it."""
        return sql.SQL("ONLY {}").format(self.sql)

    @property
    def sql(self) -> sql.Identifier:
        """The name in SQL."""
        return sql.Identifier(self.schema, self.table)

    @property
    def key(self) -> str:
        """The name in offsets, unlike that of any other table: a dotted schema is quoted."""
        return f"{_quoted(self.schema)}.{self.table}"

    @property
    def spellings(self) -> frozenset[str]:
        """The texts that patterns may match: the parts as they are, and dotted ones quoted."""
        return frozenset({str(self), self.quoted})

    @property
    def quoted(self) -> str:
        """The name with dotted parts quoted."""
        return f"{_quoted(self.schema)}.{_quoted(self.table)}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


def _quoted(part: str) -> str:
    """Return a part of a name, quoted as in SQL if it would be taken for several."""
    is_plain = "." not in part and not part.startswith('"')
    return part if is_plain else '"{}"'.format(part.replace('"', '""'))


def _closing(text: str) -> int:
    """Return the position of the closing quote of a quoted prefix; -1: there is none."""
    at = 1
    while (at := text.find('"', at)) > 0:
        if text[at + 1 : at + 2] != '"':
            return at
        at += 2
    return -1


def raw_sql(text: str) -> sql.SQL:
    """Return trusted text from the catalog, such as a type name, as SQL; never user input."""
    return sql.SQL(text)  # pyright: ignore[reportArgumentType]


def columns(names: Iterable[str]) -> sql.Composed:
    """Return a list of column names in SQL."""
    return sql.SQL(", ").join(map(sql.Identifier, names))


def typed_columns(types: Mapping[str, str]) -> sql.Composed:
    """Return a select list with each column cast to its given type."""
    return sql.SQL(", ").join(
        sql.SQL("{0}::{1} AS {0}").format(sql.Identifier(name), raw_sql(kind))
        for name, kind in types.items()
    )
