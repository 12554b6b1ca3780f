# pyright: basic
"""Rows of one table, out of a snapshot of the database, as they are handed on."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
from psycopg import sql

from ..names import TableName
from .catalog import TableShape
from .session import DatabaseSnapshot

TOPIC: Final = "_topic"


class Read(NamedTuple):
    """Rows, and the values of the columns that were asked for beside them."""

    rows: pa.Table
    beside: dict[str, pa.ChunkedArray]


@dataclass(frozen=True)
class TableReader:
    """Reads one table, as it is made now."""

    name: TableName
    shape: TableShape
    topic: str

    def read(
        self,
        snapshot: DatabaseSnapshot,
        where: sql.Composable,
        beside: dict[str, sql.Composable] | None = None,
        rest: sql.Composable | None = None,
    ) -> Read:
        """Return the rows that meet a condition; `rest` is what follows it: an order, a limit."""
        more = [
            sql.SQL("{} AS {}").format(expression, sql.Identifier(f"__beside_{name}"))
            for name, expression in (beside or {}).items()
        ]
        chosen = sql.SQL(", ").join([*(each.expression for each in self.shape.columns), *more])
        query = sql.SQL("SELECT {} FROM {} WHERE {} {}")
        found = snapshot.table(query.format(chosen, self.name.sql, where, rest or sql.SQL("")))
        values: dict[str, Any] = {
            each.name: each.finished(found[each.name]) for each in self.shape.columns
        }
        values[TOPIC] = pa.repeat(pa.scalar(self.topic, pa.string()), found.num_rows)
        told = {name: found[f"__beside_{name}"] for name in beside or {}}
        return Read(pa.table(values), told)
