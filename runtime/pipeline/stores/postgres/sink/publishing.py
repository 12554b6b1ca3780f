"""Publication of a batch in one transaction: moves the marker, applies the rows, drops staging.

The marker table has the last published batch of each task. The update locks its row, so of
concurrent publishers one applies the batch, and the others find it published.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from ......events.commits import CommitId, Manifest
from ......events.model import Resource, Token
from ....spi.errors import SinkBroken
from ...marks import PublishedBatch
from ..names import TableName
from . import keys
from .changes import TableChange
from .layout import IS_DELETE, SEQUENCE
from .tables import read_table

MARKER: Final = "fairlead_published"

_MAKE: Final = """
CREATE TABLE IF NOT EXISTS {} (
    cluster text, connector text, task int, epoch bigint NOT NULL, generation bigint NOT NULL,
    batch bigint NOT NULL, published_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (cluster, connector, task))"""
_MOVE: Final = """
INSERT INTO {} AS m (cluster, connector, task, epoch, generation, batch)
VALUES ({}, {}, {}, {}, {}, {})
ON CONFLICT (cluster, connector, task) DO UPDATE SET epoch = excluded.epoch,
    generation = excluded.generation, batch = excluded.batch, published_at = now()
WHERE (m.epoch, m.generation, m.batch) < (excluded.epoch, excluded.generation, excluded.batch)
RETURNING batch"""
_READ: Final = """
SELECT epoch, generation, batch FROM {} WHERE (cluster, connector, task) = (%s, %s, %s)"""


class Marker(NamedTuple):
    """The marker table in one schema, for the tasks of one cluster."""

    schema: str
    cluster_id: str

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.schema, MARKER)

    def make(self, connection: "psycopg.Connection[Any]") -> None:
        """Create the table if it does not exist; raises `SinkBroken` without the schema."""
        found = connection.execute(
            "SELECT to_regclass(%s)", (self.name.sql.as_string(),)
        ).fetchone()
        if found and found[0]:
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (MARKER,))
            try:
                connection.execute(sql.SQL(_MAKE).format(self.name.sql))
            except psycopg.errors.InvalidSchemaName:
                raise SinkBroken(
                    f"there is no schema {self.schema}: make it, or change {keys.SCHEMA}"
                ) from None

    def read(self, connection: "psycopg.Connection[Any]", task: Resource) -> PublishedBatch | None:
        """Return a task's last published batch; None: there is none."""
        query, values = sql.SQL(_READ).format(self.name.sql), (self.cluster_id, *task)
        row = connection.execute(query, values).fetchone()
        if row is None:
            return None
        epoch, generation, batch = row
        return PublishedBatch(Token(epoch, generation), batch)

    def move(self, connection: "psycopg.Connection[Any]", commit_id: CommitId) -> bool:
        """Move a task's marker to a batch; False if it is there, or later, already."""
        return connection.execute(self.move_statement(commit_id)).fetchone() is not None

    def move_statement(self, commit_id: CommitId) -> sql.Composed:
        """Return the statement that moves a task's marker, and returns a row if it did."""
        connector, task, token, batch = commit_id
        values = map(sql.Literal, (self.cluster_id, connector, task, *token, batch))
        return sql.SQL(_MOVE).format(self.name.sql, *values)

    def remedy(self, task: Resource) -> str:
        """Return the SQL by which a user removes a task's marker."""
        values = map(sql.Literal, (self.cluster_id, *task))
        made = sql.SQL("DELETE FROM {} WHERE (cluster, connector, task) = ({})")
        return made.format(self.name.sql, sql.SQL(", ").join(values)).as_string()


def put_in_place(
    connection: "psycopg.Connection[Any]", marker: Marker, manifest: Manifest, commit_id: CommitId
) -> None:
    """Publish a batch, if it is not; raises `SinkBroken` if the tables do not fit any more."""
    note = manifest.note
    mode, order = str(note["mode"]), str(note.get("order", ""))
    key = json.loads(str(note["key"]))
    emptied = json.loads(str(note.get("emptied", "[]"))) or [False] * len(manifest.parts)
    packed = json.loads(str(note.get("packed", "[]"))) or [""] * len(manifest.parts)
    staged = _staged(manifest)
    with connection.transaction():
        if marker.move(connection, commit_id):
            parts = zip(staged, manifest.parts, emptied, packed, strict=True)
            for name, part, is_emptied, one in parts:
                target = TableName(*json.loads(part.path))
                if is_emptied:
                    connection.execute(sql.SQL("TRUNCATE {}").format(target.sql))
                change = _change(connection, target, name, mode, key)
                is_mixed = change.has_deletes or bool(one)
                change = change._replace(order=order, packed=one, has_deletes=is_mixed)
                for statement in change.statements:
                    connection.execute(statement)
        for name in staged:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name.sql))


def staging_tables(manifest: Manifest) -> str:
    """Return the staging tables of a batch, for messages."""
    return ", ".join(map(str, _staged(manifest)))


def _staged(manifest: Manifest) -> list[TableName]:
    schema = str(manifest.note["schema"])
    return [TableName(schema, f"{manifest.staging}{at}") for at in range(len(manifest.parts))]


def _change(
    connection: "psycopg.Connection[Any]",
    target: TableName,
    staged: TableName,
    mode: str,
    key: Sequence[str],
) -> TableChange:
    there, aside = read_table(connection, target), read_table(connection, staged)
    if aside is None:
        raise SinkBroken(
            f"{staged}, where rows for {target} were staged, is not in {connection.info.dbname}. "
            "Nothing of the batch is published. If the sink was moved to another database, go back "
            "to the one before until its last batch is published"
        )
    if there is None:
        raise SinkBroken(f"{target} is gone, and a batch for it waits: bring it back")
    names = [name for name in aside.by_name if name not in {SEQUENCE, IS_DELETE}]
    if lost := [each for each in names if each not in there.by_name]:
        raise SinkBroken(
            f"{target} has lost {', '.join(lost)}, and a batch that has it waits: bring it back"
        )
    key = () if mode == keys.INSERT else key or there.primary_key
    chosen = {name: there.by_name[name] for name in names}
    return TableChange(target, chosen, key, mode, staged, IS_DELETE in aside.by_name)
