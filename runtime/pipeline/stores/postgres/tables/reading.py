# pyright: basic
"""Reads rows of a table or a query in a database snapshot, converted to Arrow types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from psycopg import sql

from ..names import TableName
from .catalog import TableShape, look_for_rewrite
from .columns import TOPIC, SourceColumn
from .session import DatabaseSnapshot, naming


class Read(NamedTuple):
    """Rows, and the values of additional expressions."""

    rows: pa.Table
    beside: dict[str, pa.ChunkedArray]


@dataclass(frozen=True)
class RowReader:
    """Reads columns of a relation."""

    relation: sql.Composable
    columns: Sequence[SourceColumn]
    topic: str

    def read(
        self,
        snapshot: DatabaseSnapshot,
        where: sql.Composable,
        beside: Mapping[str, sql.Composable] | None = None,
        rest: sql.Composable | None = None,
    ) -> Read:
        """Return the rows that meet a condition; `rest` is the SQL after it: ORDER BY, LIMIT."""
        more = [
            sql.SQL("{} AS {}").format(expression, sql.Identifier(f"__beside_{name}"))
            for name, expression in (beside or {}).items()
        ]
        chosen = sql.SQL(", ").join([*(each.expression for each in self.columns), *more])
        query = sql.SQL("SELECT {} FROM {} WHERE {} {}")
        found = snapshot.table(query.format(chosen, self.relation, where, rest or sql.SQL("")))
        values: dict[str, Any] = {
            each.name: each.finished(found[each.name]) for each in self.columns
        }
        values[TOPIC] = pa.repeat(pa.scalar(self.topic, pa.string()), found.num_rows)
        told = {name: found[f"__beside_{name}"] for name in beside or {}}
        return Read(pa.table(values), told)


@dataclass(frozen=True)
class TableReader:
    """Reads one table, with its present columns."""

    name: TableName
    shape: TableShape
    topic: str

    def read(
        self,
        snapshot: DatabaseSnapshot,
        where: sql.Composable,
        beside: Mapping[str, sql.Composable] | None = None,
        rest: sql.Composable | None = None,
    ) -> Read:
        """Return the rows that meet a condition; raises `TableChanged`."""
        rows = RowReader(self.name.only, self.shape.columns, self.topic)
        with naming(self.name):
            found = rows.read(snapshot, where, beside, rest)
        look_for_rewrite(snapshot, self.name, self.shape)
        return found
