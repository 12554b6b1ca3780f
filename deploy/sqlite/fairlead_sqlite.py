# pyright: basic
"""An example of a custom source and sink: a SQLite table, with exactly-once delivery.

As a source the table needs an `INTEGER PRIMARY KEY AUTOINCREMENT`: SQLite has one writer at a time,
so such keys become visible in their order, and none is reused.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from fairlead.sdk import (
    Advance,
    CommitId,
    Context,
    Definition,
    Delivery,
    Document,
    ExternalAccess,
    Fetched,
    FetchingSource,
    Importance,
    Limit,
    Manifest,
    OffsetRefused,
    Offsets,
    ParsedConfig,
    PartitionOffset,
    Resource,
    Seek,
    SeekEnd,
    Sink,
    SinkAway,
    SinkType,
    SourceAway,
    SourceType,
    Token,
    check_members,
    identity,
    seek_from_the_beginning,
    text_key,
)


class SqliteSourceType(SourceType):
    """`source.type=sqlite`: one table, in one task."""

    delivery = Delivery.EXACTLY_ONCE

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        return _keys("source", "read")

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        check_members("partition", partition, {"database": str, "table": str})
        if offset is not None:
            check_members("offset", offset, {"rowid": int})
            if partition != _partition(config):
                raise OffsetRefused(f"partition: this connector reads {_partition(config)}")

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: ExternalAccess, to: Seek, offsets: Offsets
    ) -> Offsets:
        if to is SeekEnd.EARLIEST:
            return seek_from_the_beginning(to, offsets)
        if to is not SeekEnd.LATEST:
            raise OffsetRefused("to: a table keeps no times: give earliest, latest or a rowid")
        query = f"SELECT max(rowid) FROM {_quoted(config['source.table'])}"
        try:
            with _open(config["source.database"], "ro") as database:
                last = database.execute(query).fetchone()[0]
        except sqlite3.OperationalError as error:
            raise SourceAway(f"{config['source.database']}: {error}") from None
        return [PartitionOffset(_partition(config), {"rowid": last} if last else None)]

    @classmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> "SqliteSource":
        return SqliteSource(config["source.database"], config["source.table"])


class SqliteSource(FetchingSource):
    """Reads rows in the order of their key; the offset is the last key that was read."""

    def __init__(self, database: str, table: str) -> None:
        self._database, self._table = database, table

    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched | None:
        partition = {"database": self._database, "table": self._table}
        start = offsets.get(identity(partition))
        query = f"SELECT rowid, * FROM {_quoted(self._table)} WHERE rowid > ? ORDER BY 1 LIMIT ?"
        try:
            with _open(self._database, "ro") as database:
                cursor = database.execute(query, (start["rowid"] if start else 0, limit.rows))
                rows, is_full = _fetched(cursor, limit.bytes)
                names = [each[0] for each in cursor.description[1:]]
        except sqlite3.OperationalError as error:
            raise SourceAway(f"{self._database}: {error}") from None
        if not rows:
            return None
        _, *columns = zip(*rows, strict=True)
        advance = Advance(partition, start, {"rowid": rows[-1][0]})
        table = pa.table(dict(zip(names, map(list, columns), strict=True)))
        return Fetched(table, (advance,), backlog=is_full or len(rows) == limit.rows)


class SqliteSinkType(SinkType):
    """`sink.type=sqlite`: one table, which the first batch creates."""

    delivery = Delivery.EXACTLY_ONCE

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        return _keys("sink", "appended to")

    @classmethod
    def sink(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> "SqliteSink":
        return SqliteSink(config["sink.database"], config["sink.table"])


class SqliteSink(Sink["pa.Table"]):
    """Stages a batch in a separate table; a mark of the last batch makes publishing idempotent.

    New columns are added to the table; missing ones are null.
    """

    takes_arrow = True

    def __init__(self, database: str, table: str) -> None:
        self._database, self._table = database, table

    def prepare(self, schema: "pa.Schema") -> None:
        table = _quoted(self._table)
        with self._begun() as database:
            there = _columns(database, table)
            if not there:
                database.execute(f"CREATE TABLE {table} ({', '.join(map(_quoted, schema.names))})")
            for name in set(schema.names).difference(there or schema.names):
                database.execute(f"ALTER TABLE {table} ADD COLUMN {_quoted(name)}")

    def stage(self, rows: "pa.Table", commit_id: CommitId, input_bytes: int) -> Manifest:
        staging, names = _staging(commit_id), ", ".join(map(_quoted, rows.column_names))
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        with self._begun() as database:
            database.execute(f"DROP TABLE IF EXISTS {_quoted(staging)}")
            database.execute(f"CREATE TABLE {_quoted(staging)} ({names})")
            marks = ", ".join("?" * rows.num_columns)
            database.executemany(f"INSERT INTO {_quoted(staging)} VALUES ({marks})", values)
        note = {"table": self._table, "staging": staging}
        return Manifest("", "", rows.num_rows, rows.nbytes, 1, note=note)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        task, target = f"{commit_id.connector}-{commit_id.task}", str(manifest.note["table"])
        table, staging = _quoted(target), _quoted(str(manifest.note["staging"]))
        with self._begun() as database:
            database.execute(_MARKS)
            if database.execute(_MARK, (task, target, sequence)).rowcount:
                names = ", ".join(map(_quoted, _columns(database, staging)))
                database.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {staging}")
                database.execute(f"DROP TABLE {staging}")

    def discard(self, commit_id: CommitId) -> None:
        with self._begun() as database:
            database.execute(f"DROP TABLE IF EXISTS {_quoted(_staging(commit_id))}")

    def sweep(self, resource: Resource, token: Token) -> None:
        with self._begun() as database:
            for (name,) in database.execute("SELECT name FROM sqlite_master").fetchall():
                whose, *numbers = name.rsplit("|", 3)
                if whose == f"_fairlead|{resource}" and tuple(map(int, numbers[:2])) <= token:
                    database.execute(f"DROP TABLE {_quoted(name)}")

    @contextmanager
    def _begun(self) -> Iterator[sqlite3.Connection]:
        """Run the context in one transaction, which waits for those of other tasks."""
        try:
            with _open(self._database, "rwc") as database:
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise SinkAway(f"{self._database}: {error}") from None


_MARKS = """CREATE TABLE IF NOT EXISTS _fairlead_published
    (task, target, sequence, PRIMARY KEY (task, target))"""
_MARK = """INSERT INTO _fairlead_published VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET sequence = excluded.sequence WHERE excluded.sequence > sequence"""


def _staging(commit_id: CommitId) -> str:
    connector, task, token, batch = commit_id
    return f"_fairlead|{connector}-{task}|{token[0]}|{token[1]}|{batch}"


def _fetched(cursor: sqlite3.Cursor, most_bytes: int) -> tuple[list[tuple[Any, ...]], bool]:
    """Return rows up to about a size, and whether that was reached."""
    rows, size = list[tuple[Any, ...]](), 0
    for row in cursor:
        rows.append(row)
        size += sum(len(each) if isinstance(each, str | bytes) else 8 for each in row)
        if size >= most_bytes:
            return rows, True
    return rows, False


@contextmanager
def _open(path: str, mode: str) -> Iterator[sqlite3.Connection]:
    where = f"file:{path}?mode={mode}"
    with closing(sqlite3.connect(where, timeout=10, uri=True, isolation_level=None)) as database:
        yield database


def _partition(config: Mapping[str, str]) -> Document:
    return {"database": config["source.database"], "table": config["source.table"]}


def _keys(end: str, what: str) -> Sequence[Definition]:
    texts = {"database": f"The file whose table is {what}.", "table": f"The table that is {what}."}
    return [
        text_key(f"{end}.{name}", text, importance=Importance.HIGH, required=True)
        for name, text in texts.items()
    ]


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [each[1] for each in database.execute(f"PRAGMA table_info({table})")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
