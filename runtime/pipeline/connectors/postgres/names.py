"""Names of tables as configs and people write them, and as SQL does."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from psycopg import sql


class TableName(NamedTuple):
    """A table by its schema and its own name, as the catalog spells them."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str, schema: str) -> "TableName":
        """Return what `schema.table` or `table` means; each may be quoted as in SQL."""
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
    def sql(self) -> sql.Identifier:
        """The name in SQL."""
        return sql.Identifier(self.schema, self.table)

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


def _closing(text: str) -> int:
    """Return where the quoted part that a text begins with ends, -1 if it does not."""
    at = 1
    while (at := text.find('"', at)) > 0:
        if text[at + 1 : at + 2] != '"':
            return at
        at += 2
    return -1


def words(text: str) -> sql.SQL:
    """Return what the catalog says, the name of a type, as SQL; never what a user says."""
    return sql.SQL(text)  # pyright: ignore[reportArgumentType]


def columns(names: Iterable[str]) -> sql.Composed:
    """Return names of columns as SQL lists them."""
    return sql.SQL(", ").join(map(sql.Identifier, names))


def typed(types: Mapping[str, str]) -> sql.Composed:
    """Return columns as a select list has them, each as the type that is given for it."""
    return sql.SQL(", ").join(
        sql.SQL("{0}::{1} AS {0}").format(sql.Identifier(name), words(kind))
        for name, kind in types.items()
    )
