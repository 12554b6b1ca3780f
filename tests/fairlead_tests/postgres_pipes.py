# pyright: basic
"""Sinks and sources of PostgreSQL as a task gets them, and what a task does with them in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fairlead.events.commits import CommitId, Document, Manifest, identity
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.connectors.builtin import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.builtin.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.sink import Sink, Tenure
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit, Source
from fairlead_tests.postgres_server import PASSWORD, Database

TASK = Resource("orders", 0)
FIRST, SECOND = Token(1, 0), Token(2, 0)
CLUSTER = "a-cluster"
AMPLE = Limit(1_000_000, 1 << 26, 4096)


def sink_config(database: Database, **given: str) -> dict[str, str]:
    """Return a config that ends in a database; further keys without `sink.`, `_` for dots."""
    return {
        "name": TASK.connector,
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": "/nowhere",
        "sink.type": "postgres",
        "sink.connection.url": database.url,
        "sink.connection.password": PASSWORD,
        "sink.table.name.format": "t",
        **{f"sink.{key.replace('_', '.')}": value for key, value in given.items()},
    }


def sink_of(database: Database, **given: str) -> Sink[Any]:
    """Return a task's sink as its config describes it."""
    config = sink_config(database, **given)
    assert SparkPipeline.validate(config).errors == {}
    settings = keys.task_keys_of(config).parse(config)
    context = Context(TASK, print, cluster_id=CLUSTER)
    return keys.SINK_TYPES.find("postgres").sink(context, config, settings)


@dataclass
class SinkLog:
    """What the log knows of a task's commits."""

    token: Token = FIRST
    batch: int = 0
    last: CommitId | None = None
    published: CommitId | None = None
    waiting: list[tuple[CommitId, Manifest]] = field(default_factory=list)

    def next_id(self) -> CommitId:
        found = CommitId(*TASK, self.token, self.batch)
        self.batch += 1
        return found

    def acquire(self, sink: Sink[Any], token: Token | None = None) -> None:
        """Begin as a task does under a token."""
        if token is not None and token != self.token:
            self.token, self.batch = token, 0
        known = None if self.waiting else self.published
        sink.acquire(Tenure(TASK, self.token, self.last, known))
        self.publish(sink)
        sink.sweep(TASK, self.token)

    def stage(self, sink: Sink[Any], rows: pa.Table) -> tuple[CommitId, Manifest]:
        """Prepare the sink, and stage a batch."""
        commit_id = self.next_id()
        sink.prepare(rows.schema)
        return commit_id, sink.stage(rows, commit_id, rows.nbytes)

    def count(self, staged: tuple[CommitId, Manifest]) -> None:
        """Make a staged batch count."""
        self.last = staged[0]
        self.waiting.append(staged)

    def publish(self, sink: Sink[Any]) -> None:
        """Publish what counts."""
        while self.waiting:
            commit_id, manifest = self.waiting[0]
            sink.publish(manifest, commit_id, commit_id.batch)
            self.published = commit_id
            del self.waiting[0]

    def write(self, sink: Sink[Any], rows: pa.Table) -> None:
        """Have a batch go all its way."""
        self.count(self.stage(sink, rows))
        self.publish(sink)


def tables_of(database: Database) -> set[str]:
    """Return the names of all tables in the database."""
    query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace >= 2200"
    return {name for (name,) in database.run(query) if not name.startswith(("pg_", "sql_"))}


def take(source: Source[Any], plan: BatchPlan[Any], offsets: dict[str, Document]) -> pa.Table:
    """Read one batch, count it and acknowledge it."""
    spark: Any = None
    table = source.read(spark, plan.ranges)
    source.verify(plan.ranges)
    for advance in plan.advances:
        assert offsets.get(identity(advance.partition)) == advance.start
        assert advance.end is not None
        offsets[identity(advance.partition)] = advance.end
    source.acknowledge(plan.advances)
    return table


def rows(table: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the rows of some columns."""
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def source_config(database: Database, given: Mapping[str, str]) -> dict[str, str]:
    """Return a config that begins in a database; further keys without `source.`, `_` for dots."""
    return {
        "name": TASK.connector,
        "connector.class": "SparkPipeline",
        "source.type": "postgres",
        "source.connection.url": database.url,
        "source.connection.password": PASSWORD,
        "sink.format": "parquet",
        "sink.path": "/nowhere",
        **{f"source.{key.replace('_', '.')}": value for key, value in given.items()},
    }


@dataclass
class Reading:
    """A connector that reads a database, with its tasks, without a worker."""

    database: Database
    config: dict[str, str]
    offsets: dict[str, Document] = field(default_factory=dict)
    split: Sequence[Mapping[str, str]] = ()
    sources: list[Source[Any]] = field(default_factory=list)

    @classmethod
    def of(cls, database: Database, **given: str) -> "Reading":
        config = source_config(database, given)
        assert SparkPipeline.validate(config).errors == {}
        return cls(database, config)

    def begin(self, tasks: int = 1) -> None:
        """Split the work anew, and make the sources of all tasks."""
        self.close()
        context = Context(Resource(TASK.connector), print, self.split, cluster_id=CLUSTER)
        kind = keys.SOURCE_TYPES.find("postgres")
        connector = kind(context, self.config, keys.keys_of(self.config).parse(self.config))
        try:
            self.split = connector.split(tasks)
        finally:
            connector.stop()
        for task, told in enumerate(self.split):
            config = {**self.config, **told}
            settings = keys.task_keys_of(config).parse(config)
            context = Context(Resource(TASK.connector, task), print, cluster_id=CLUSTER)
            self.sources.append(kind.source(context, config, settings))

    def take(self, limit: Limit = AMPLE) -> list[pa.Table]:
        """Read with all tasks until none has anything more."""
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
        """Read likewise, and return the rows of some columns, sorted."""
        return sorted(row for table in self.take(limit) for row in rows(table, names))

    def close(self) -> None:
        for source in self.sources:
            source.close()
        self.sources.clear()
