# pyright: basic
"""Creates PostgreSQL sources and sinks as a task does, and drives them like one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg
import pyarrow as pa
from adbc_driver_manager import AdbcDatabase

from fairlead.events.commits import Document, Lag, identity
from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import Context, ExternalAccess
from fairlead.runtime.pipeline.spi.offsets import PartitionOffset, Seek
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead.runtime.pipeline.spi.source import Limit, Source
from fairlead_tests.connectors import pipes
from fairlead_tests.connectors.pipes import CLUSTER, TASK, config_from, config_to, take
from fairlead_tests.postgres_server import PASSWORD, Database

AMPLE = Limit(1_000_000, 1 << 26, 4096)


def source_config(database: Database, given: Mapping[str, str]) -> dict[str, str]:
    """Return the config of a database source; keys without `source.`, with `_` for dots."""
    return config_from("postgres", given, **_connection(database))


def sink_config(database: Database, **given: str) -> dict[str, str]:
    """Return the config of a database sink; keys without `sink.`, with `_` for dots."""
    return config_to("postgres", given, **_connection(database), table_name_format="t")


def _connection(database: Database) -> dict[str, str]:
    return {"connection_url": database.url, "connection_password": PASSWORD}


def sink_of(database: Database, **given: str) -> Sink[Any]:
    """Create a task's sink from its config."""
    return pipes.sink_of(sink_config(database, **given))


def tables_of(database: Database) -> set[str]:
    """Return the names of all tables in the database."""
    query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace >= 2200"
    return {name for (name,) in database.run(query) if not name.startswith(("pg_", "sql_"))}


def rows(table: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the rows of some columns."""
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


@dataclass
class Reading:
    """A connector that reads a database, with its tasks, without a worker."""

    database: Database
    config: dict[str, str]
    offsets: dict[str, Document] = field(default_factory=dict)
    split: Sequence[Mapping[str, str]] = ()
    sources: list[Source[Any]] = field(default_factory=list)
    settled: dict[str, Document] | None = None
    """The offsets known to be published; None: all committed ones."""

    @classmethod
    def of(cls, database: Database, **given: str) -> "Reading":
        config = source_config(database, given)
        assert SparkPipeline.validate(config).errors == {}
        return cls(database, config)

    def begin(self, tasks: int = 1) -> None:
        """Compute the task configs again, and create the sources of all tasks."""
        self.close()
        context = self._context(Resource(TASK.connector))
        kind = keys.SOURCE_TYPES.find("postgres")
        connector = kind(context, self.config, keys.keys_of(self.config).parse(self.config))
        try:
            self.split = connector.split(tasks)
        finally:
            connector.stop()
        for task, told in enumerate(self.split):
            config = {**self.config, **told}
            settings = keys.task_keys_of(config).parse(config)
            context = self._context(Resource(TASK.connector, task))
            self.sources.append(kind.source(context, config, settings))

    def _context(self, resource: Resource) -> Context:
        def logged() -> Mapping[str, Document]:
            return dict(self.offsets)

        def settled() -> Mapping[str, Document]:
            return logged() if self.settled is None else self.settled

        return Context(
            resource,
            print,
            self.split,
            cluster_id=CLUSTER,
            logged_offsets=logged,
            published_offsets=settled,
        )

    def seek(self, to: Seek) -> None:
        """Set a stopped connector's offsets, and restart it."""
        known = [PartitionOffset(_document(each), self.offsets[each]) for each in self.offsets]
        kind = keys.SOURCE_TYPES.find("postgres")
        for partition, offset in kind.seek(self.config, ExternalAccess(), to, known):
            kind.check_offset(self.config, partition, offset)
            if offset is None:
                self.offsets.pop(identity(partition), None)
            else:
                self.offsets[identity(partition)] = offset
        self.begin()

    def lag(self) -> Lag | None:
        """Return what is left to read while no task runs."""
        known = [PartitionOffset(_document(each), self.offsets[each]) for each in self.offsets]
        return keys.SOURCE_TYPES.find("postgres").lag(self.config, ExternalAccess(), known)

    def take(self, limit: Limit = AMPLE) -> list[pa.Table]:
        """Read with all tasks until no input is left."""
        if not self.sources:
            self.begin()
        found: list[pa.Table] = []
        while batch := [
            take(source, plan, self.offsets)
            for source in self.sources
            if (plan := source.plan(self.offsets, limit)).ranges
        ]:
            found += batch
        return found

    def rows(self, *names: str, limit: Limit = AMPLE) -> list[Any]:
        """Read until no input is left, and return the rows of some columns, sorted."""
        return sorted(row for table in self.take(limit) for row in rows(table, names))

    def changes(self, *names: str, limit: Limit = AMPLE) -> list[Any]:
        """Read, and return the rows of the operation and some columns, in their order."""
        return [row for table in self.take(limit) for row in rows(table, ["__op", *names])]

    def close(self) -> None:
        for source in self.sources:
            source.close()
        self.sources.clear()


def _document(spelled: str) -> dict[str, str | int]:
    pairs = (each.split("=", 1) for each in spelled.split(","))
    return {key: value.strip("'") if "'" in value else int(value) for key, value in pairs}


_TYPES: LiteralString = (
    "SELECT array_agg(oid ORDER BY oid) FROM pg_type WHERE typrelid = 0 AND typcategory <> 'A'"
)


class KnownDatabase(AdbcDatabase):
    """A database as ADBC knows it, which outlives its sessions."""

    def close(self) -> None:
        """Stay: sessions to come use it as well."""


class KnownDatabases:
    """Has ADBC learn the types of a database once for all tests, until it has others.

    It reads them all again for each session that a source or a sink opens, which would be most of
    what the tests cost. The sessions themselves are opened as ever.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[int, ...]], AdbcDatabase] = {}

    def of(self, database: Database) -> Callable[..., AdbcDatabase]:
        """Return what makes databases in the place of ADBC; those of other servers are new."""
        place = f"port={database.server.port} "

        def make(*, uri: str, **options: str) -> AdbcDatabase:
            if place not in uri or f"dbname={database.name} " not in uri:
                return AdbcDatabase(uri=uri, **options)
            try:
                ((types,),) = database.run(_TYPES)
            except psycopg.OperationalError:  # which the driver tells in its own words
                return AdbcDatabase(uri=uri, **options)
            if (uri, (*types,)) not in self._known:
                self._known[uri, (*types,)] = KnownDatabase(uri=uri, **options)
            return self._known[uri, (*types,)]

        return make
