"""One transaction puts a batch in place: the marker moves on, the rows go in, staging goes.

The marker holds the last batch of each task that was published. Its row is locked by the update,
so of any number that publish a batch one does, and the others find it done.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from ......events.commits import CommitId, Manifest
from ......events.model import Resource, Token
from ....spi.errors import SinkBroken
from ...marks import PublishedBatch
from ..names import TableName, columns, typed
from . import keys
from .layout import IS_DELETE, SEQUENCE
from .tables import TargetColumn, look

MARKER: Final = "fairlead_published"

_MAKE: Final = """
CREATE TABLE IF NOT EXISTS {} (
    cluster text, connector text, task int, epoch bigint NOT NULL, generation bigint NOT NULL,
    batch bigint NOT NULL, published_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (cluster, connector, task))"""
_MOVE: Final = """
INSERT INTO {} AS m (cluster, connector, task, epoch, generation, batch)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (cluster, connector, task) DO UPDATE SET epoch = excluded.epoch,
    generation = excluded.generation, batch = excluded.batch, published_at = now()
WHERE (m.epoch, m.generation, m.batch) < (excluded.epoch, excluded.generation, excluded.batch)"""
_READ: Final = """
SELECT epoch, generation, batch FROM {} WHERE (cluster, connector, task) = (%s, %s, %s)"""


class Marker(NamedTuple):
    """The table of markers in one schema, for the tasks of one cluster."""

    schema: str
    cluster_id: str

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.schema, MARKER)

    def make(self, connection: "psycopg.Connection[Any]") -> None:
        """Make the table unless it is there; raises `SinkBroken` if there is no such schema."""
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
        """Return the last batch that is known to be published, None if none is."""
        query, values = sql.SQL(_READ).format(self.name.sql), (self.cluster_id, *task)
        row = connection.execute(query, values).fetchone()
        if row is None:
            return None
        epoch, generation, batch = row
        return PublishedBatch(Token(epoch, generation), batch)

    def move(self, connection: "psycopg.Connection[Any]", commit_id: CommitId) -> bool:
        """Move a task's marker on to a batch; False if it is there, or beyond, already."""
        connector, task, token, batch = commit_id
        values = (self.cluster_id, connector, task, *token, batch)
        return connection.execute(sql.SQL(_MOVE).format(self.name.sql), values).rowcount > 0

    def remedy(self, task: Resource) -> str:
        """Return how a person makes a task's marker be forgotten."""
        values = map(sql.Literal, (self.cluster_id, *task))
        made = sql.SQL("DELETE FROM {} WHERE (cluster, connector, task) = ({})")
        return made.format(self.name.sql, sql.SQL(", ").join(values)).as_string()


class TableChange(NamedTuple):
    """What the rows of one staging table do to a table: the statements of it."""

    target: TableName
    columns: Mapping[str, TargetColumn]
    """Those of the target that are staged, by name."""
    key: Sequence[str]
    mode: str
    staged: TableName
    has_deletes: bool

    @property
    def statements(self) -> Sequence[sql.Composed]:
        """What to run, in this order."""
        if not self.key:
            return (self._insert(self._rows),)
        if self.mode == keys.UPDATE:
            return (self._update,) if self._changes else ()
        done = [self._upsert]
        if self.has_deletes:
            gone = sql.SQL("DELETE FROM {} t USING ({}) l WHERE {} AND l.{}")
            is_delete = sql.Identifier(IS_DELETE)
            done.append(gone.format(self.target.sql, self._last, self._same, is_delete))
        return done

    @property
    def _rows(self) -> sql.Composed:
        """The staged rows, each value as the type that the target has now."""
        return sql.SQL("SELECT {} FROM {}").format(self._values, self.staged.sql)

    @property
    def _last(self) -> sql.Composed:
        """The last row of each key, in the order in which they came."""
        more = columns([SEQUENCE, IS_DELETE] if self.has_deletes else [SEQUENCE])
        query = sql.SQL(
            "SELECT DISTINCT ON ({0}) * FROM (SELECT {1}, {2} FROM {3}) s ORDER BY {0}, {4} DESC"
        )
        key, at = columns(self.key), sql.Identifier(SEQUENCE)
        return query.format(key, self._values, more, self.staged.sql, at)

    @property
    def _values(self) -> sql.Composed:
        return typed({name: each.type for name, each in self.columns.items()})

    @property
    def _kept(self) -> sql.Composed:
        gone = sql.Identifier(IS_DELETE)
        return sql.SQL("NOT l.{}").format(gone) if self.has_deletes else sql.SQL("true").format()

    @property
    def _same(self) -> sql.Composed:
        pairs = (sql.SQL("t.{0} = l.{0}").format(sql.Identifier(each)) for each in self.key)
        return sql.SQL(" AND ").join(pairs)

    @property
    def _changes(self) -> list[str]:
        return [name for name in self.columns if name not in self.key]

    @property
    def _upsert(self) -> sql.Composed:
        rows = sql.SQL("SELECT {} FROM ({}) l WHERE {}")
        insert = self._insert(rows.format(columns(self.columns), self._last, self._kept))
        sets = sql.SQL(", ").join(
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(each)) for each in self._changes
        )
        does = sql.SQL("UPDATE SET {}").format(sets) if self._changes else sql.SQL("NOTHING")
        conflict = sql.SQL("{} ON CONFLICT ({}) DO {}")
        return conflict.format(insert, columns(self.key), does)

    @property
    def _update(self) -> sql.Composed:
        sets = sql.SQL(", ").join(
            sql.SQL("{0} = l.{0}").format(sql.Identifier(each)) for each in self._changes
        )
        update = sql.SQL("UPDATE {} t SET {} FROM ({}) l WHERE {} AND {}")
        return update.format(self.target.sql, sets, self._last, self._same, self._kept)

    def _insert(self, rows: sql.Composed) -> sql.Composed:
        is_over = any(each.is_always_made for each in self.columns.values())
        over = sql.SQL("OVERRIDING SYSTEM VALUE" if is_over else "")
        insert = sql.SQL("INSERT INTO {} ({}) {} {}")
        return insert.format(self.target.sql, columns(self.columns), over, rows)


def put_in_place(
    connection: "psycopg.Connection[Any]", marker: Marker, manifest: Manifest, commit_id: CommitId
) -> None:
    """Publish a batch, unless it is; raises `SinkBroken` if it cannot go in as things are."""
    schema, mode = str(manifest.note["schema"]), str(manifest.note["mode"])
    key = json.loads(str(manifest.note["key"]))
    emptied = json.loads(str(manifest.note.get("emptied", "[]"))) or [False] * len(manifest.parts)
    staged = [TableName(schema, f"{manifest.staging}{at}") for at in range(len(manifest.parts))]
    with connection.transaction():
        if marker.move(connection, commit_id):
            for name, part, is_emptied in zip(staged, manifest.parts, emptied, strict=True):
                target = TableName(*json.loads(part.path))
                if is_emptied:
                    connection.execute(sql.SQL("TRUNCATE {}").format(target.sql))
                for statement in _change(connection, target, name, mode, key).statements:
                    connection.execute(statement)
        for name in staged:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name.sql))


def _change(
    connection: "psycopg.Connection[Any]",
    target: TableName,
    staged: TableName,
    mode: str,
    key: Sequence[str],
) -> TableChange:
    there, aside = look(connection, target), look(connection, staged)
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
