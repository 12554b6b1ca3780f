# pyright: basic
"""Tables that hold a batch until it is published: logged ones, since its commit makes it real.

Their names are functions of the task, the token and the batch, so that what never counted is found
by its name. Values are staged as the types that they will have, so that what the target cannot
hold is refused before the batch counts; what ADBC cannot write as such is staged as text, and cast
once to see that it can be.
"""

import re
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
from psycopg import sql

from ......events.commits import CommitId
from ......events.model import Resource, Token
from ....spi.errors import BadInput
from ..arrow_types import StagedColumn, staged
from ..connecting import brief, is_data
from ..names import TableName, words
from .layout import IS_DELETE, SEQUENCE, TargetRows
from .tables import TargetTable

_READABLE: Final = 16
"""Letters of a connector's name that names of its tables begin with."""
_OWN: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relname LIKE %s AND pg_has_role(c.relowner, 'USAGE')"""


class Staging(NamedTuple):
    """Where the batches of one task are staged."""

    cluster_id: str
    task: Resource

    @property
    def prefix(self) -> str:
        """What the names of all of its tables begin with."""
        shown = re.sub(r"[^a-z0-9]+", "_", self.task.connector.lower())[:_READABLE]
        whose = f"{self.cluster_id}\0{self.task.connector}".encode()
        return f"fairlead_{shown}_{blake2b(whose, digest_size=5).hexdigest()}_{self.task.task}_"

    def table(self, commit_id: CommitId, number: int) -> str:
        """Return the name of the table for the rows of one target; they count from 0."""
        epoch, generation = commit_id.token
        return f"{self.prefix}{epoch}_{generation}_{commit_id.batch}_{number}"

    def of_batch(
        self, connection: "psycopg.Connection[Any]", commit_id: CommitId
    ) -> list[TableName]:
        """Return the tables of a batch that are there."""
        batch = (*commit_id.token, commit_id.batch)
        return [name for name, whose in self._tables(connection) if whose == batch]

    def up_to(self, connection: "psycopg.Connection[Any]", token: Token) -> list[TableName]:
        """Return the tables of a token and older ones that are there."""
        return [name for name, whose in self._tables(connection) if whose[:2] <= tuple(token)]

    def _tables(
        self, connection: "psycopg.Connection[Any]"
    ) -> list[tuple[TableName, tuple[int, ...]]]:
        pattern = self.prefix.replace("_", r"\_") + "%"
        names = [TableName(*row) for row in connection.execute(_OWN, (pattern,))]
        shape = re.compile(re.escape(self.prefix) + r"(\d+)_(\d+)_(\d+)_\d+")
        found = ((name, shape.fullmatch(name.table)) for name in names)
        return [(name, tuple(map(int, match.groups()))) for name, match in found if match]


def write(
    connection: "adbc.Connection", name: TableName, target: TargetTable, batch: TargetRows
) -> None:
    """Stage the rows for one target in a new table, in ADBC's transaction; raises `BadInput`."""
    columns = {
        each: _staged(batch.rows[each], target, each)
        for each in batch.rows.column_names
        if not target.by_name[each].is_computed
    }
    values = {each: column.values for each, column in columns.items()}
    types = {
        each: _type(target, each, column, has_deletes=batch.deletes is not None)
        for each, column in columns.items()
    }
    if target.key:
        values[SEQUENCE], types[SEQUENCE] = pa.array(range(batch.rows.num_rows), pa.int64()), "int8"
    if batch.deletes is not None:
        values[IS_DELETE], types[IS_DELETE] = batch.deletes, "bool"
    made = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(each), words(kind)) for each, kind in types.items()
    )
    casts = [
        sql.SQL("count({}::{})").format(sql.Identifier(each), words(target.by_name[each].type))
        for each, column in columns.items()
        if column.is_cast
    ]
    with connection.cursor() as cursor:
        cursor.execute(_text(sql.SQL("DROP TABLE IF EXISTS {}").format(name.sql)))
        cursor.execute(_text(sql.SQL("CREATE TABLE {} ({})").format(name.sql, made)))
        try:
            rows = pa.table(values)
            cursor.adbc_ingest(name.table, rows, mode="append", db_schema_name=name.schema)
            if casts:
                tried = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(casts), name.sql)
                cursor.execute(_text(tried))
                cursor.fetchall()
        except adbc.Error as error:
            if is_data(error):
                raise BadInput(f"{target.name} refuses a row: {_told(str(error))}") from None
            raise


def drop(connection: "psycopg.Connection[Any]", names: list[TableName]) -> None:
    """Drop tables; those of other owners stay."""
    for name in names:
        with suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name.sql))


def _staged(column: pa.ChunkedArray, target: TargetTable, name: str) -> StagedColumn:
    wanted = target.by_name[name]
    try:
        return staged(column, wanted.kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadInput(
            f"{target.name}: column {name} of type {wanted.type} cannot hold {column.type}: {error}"
        ) from None


def _type(target: TargetTable, name: str, column: StagedColumn, *, has_deletes: bool) -> str:
    """Return the type of a column of staging: the target's own, or text that becomes that.

    A row that deletes needs no value beside its key.
    """
    wanted = target.by_name[name]
    kind = column.type if column.is_cast else wanted.type
    if name in target.key or (wanted.is_required and not has_deletes):
        return f"{kind} NOT NULL"
    if not wanted.is_required:
        return kind
    named = (f"{name} is required", name, IS_DELETE)
    rule, value, gone = (sql.Identifier(each).as_string() for each in named)
    return f"{kind} CONSTRAINT {rule} CHECK ({value} IS NOT NULL OR {gone})"


def _told(text: str) -> str:
    """Return what the server says of values, without the words of the client around it."""
    lines = [each.strip() for each in text.splitlines()]
    said = [each for each in lines if each.startswith("CONTEXT:")]
    first = brief(lines[0])
    return f"{first} ({said[0].removeprefix('CONTEXT:').strip()})" if said else first


def _text(statement: sql.Composable) -> str:
    return statement.as_string()
