# pyright: basic
"""Sources and sinks of Kafka as a task gets them, and what a task does with them in turn."""

import time
from collections.abc import Callable
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
from fairlead.runtime.pipeline.spi.types import SourceType

TASK = Resource("orders", 0)
CLUSTER = "a-cluster"
FIRST, SECOND = Token(1, 0), Token(2, 0)
PATIENCE_S = 60.0
LIMIT = Limit(1_000, 1 << 20, 1)


def source_config(bootstrap: str, **given: str) -> dict[str, str]:
    """Return a config that begins in topics; further keys without `source.`, `_` for dots."""
    return {
        "name": TASK.connector,
        "connector.class": "SparkPipeline",
        "source.type": "kafka",
        "source.bootstrap.servers": bootstrap,
        "sink.format": "parquet",
        "sink.path": "/nowhere",
        **{f"source.{key.replace('_', '.')}": value for key, value in given.items()},
    }


def source_type(
    config: dict[str, str], split: tuple[dict[str, str], ...] = (), warned: Any = print
) -> SourceType:
    """Return what a connector has of a config."""
    assert SparkPipeline.validate(config).errors == {}
    context = Context(Resource(TASK.connector), warned, split)
    return keys.SOURCE_TYPES.find("kafka")(context, config, keys.keys_of(config).parse(config))


class Reading:
    """A task's source with its offsets, as one start of the task after another has them."""

    def __init__(self, config: dict[str, str], offsets: dict[str, Document] | None = None) -> None:
        self.config = config
        self.offsets = {} if offsets is None else offsets
        self.warnings: list[str] = []
        self.advances: list[Any] = []
        self.source = self._made()

    def again(self) -> None:
        """Begin again, as another start of the task does."""
        self.source.close()
        self.source = self._made()

    def plan(self, limit: Limit = LIMIT) -> BatchPlan[Any]:
        """Look until there is something to read."""
        found: BatchPlan[Any] = until(
            lambda: self.source.plan(self.offsets, limit), lambda plan: plan.ranges
        )
        return found

    def take(self, plan: BatchPlan[Any], spark: Any = None) -> Any:
        """Read a batch and count it."""
        rows = self.source.read(spark, plan.ranges)
        self.source.verify(plan.ranges)
        for advance in plan.advances:
            assert self.offsets.get(identity(advance.partition)) == advance.start
            assert advance.end is not None
            self.offsets[identity(advance.partition)] = advance.end
        return rows

    def read(self, rows: int, limit: Limit = LIMIT) -> pa.Table:
        """Read batch after batch until there are so many rows."""
        found = [self.take(self.plan(limit))]
        while sum(each.num_rows for each in found) < rows:
            found.append(self.take(self.plan(limit)))
        return pa.concat_tables(found)

    def looks_in_vain(self, times: int = 20) -> bool:
        """Tell whether so many looks find nothing."""
        for _ in range(times):
            if self.source.plan(self.offsets, LIMIT).ranges:
                return False
            time.sleep(0.05)
        return True

    def _made(self) -> Source[Any]:
        (share,) = source_type(self.config).split(1)
        config = {**self.config, **share}
        settings = keys.task_keys_of(config).parse(config)
        context = Context(TASK, self.warnings.append)
        return keys.SOURCE_TYPES.find("kafka").source(context, config, settings)


def until(look: Callable[[], Any], fits: Callable[[Any], Any]) -> Any:
    """Look until what is seen fits."""
    deadline = time.monotonic() + PATIENCE_S
    while not fits(seen := look()):
        assert time.monotonic() < deadline, seen
        time.sleep(0.02)
    return seen


def sink_config(bootstrap: str, staging: object, **given: str) -> dict[str, str]:
    """Return a config that ends in topics; further keys without `sink.`, `_` for dots."""
    return {
        "name": TASK.connector,
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": "/nowhere",
        "sink.type": "kafka",
        "sink.bootstrap.servers": bootstrap,
        "sink.staging.path": str(staging),
        **{f"sink.{key.replace('_', '.')}": value for key, value in given.items()},
    }


def sink_of(config: dict[str, str], task: Resource = TASK, cluster_id: str = CLUSTER) -> Sink[Any]:
    """Return a task's sink as its config describes it."""
    assert SparkPipeline.validate(config).errors == {}
    settings = keys.task_keys_of(config).parse(config)
    context = Context(task, print, cluster_id=cluster_id)
    return keys.SINK_TYPES.find("kafka").sink(context, config, settings)


@dataclass
class SinkLog:
    """What the log knows of the commits of a task."""

    task: Resource
    token: Token = FIRST
    batch: int = 0
    last: CommitId | None = None
    published: CommitId | None = None
    waiting: list[tuple[CommitId, Manifest]] = field(default_factory=list)
    """What counts and is not known to be published, oldest first."""

    def acquire(self, sink: Sink[Any], token: Token) -> None:
        """Begin as a task does under a token."""
        if token != self.token:
            self.token, self.batch = token, 0
        known = None if self.waiting else self.published
        sink.acquire(Tenure(self.task, self.token, self.last, known))
        self.publish(sink)
        sink.sweep(self.task, self.token)

    def stage(self, sink: Sink[Any], rows: pa.Table) -> tuple[CommitId, Manifest]:
        """Prepare the sink, and stage a batch."""
        commit_id = CommitId(*self.task, self.token, self.batch)
        self.batch += 1
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
            self.told()

    def told(self) -> None:
        """Learn that the oldest batch that waited is published."""
        self.published = self.waiting.pop(0)[0]

    def write(self, sink: Sink[Any], rows: pa.Table) -> None:
        """Have a batch go all its way."""
        self.count(self.stage(sink, rows))
        self.publish(sink)
