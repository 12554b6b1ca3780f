"""One batch, from ranges to staged rows: the only Spark job that a task runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import (
    to_arrow_schema,  # pyright: ignore[reportUnknownVariableType]
)

from ....events.commits import CommitId, Manifest
from .arrow import ArrowSchema, ArrowTable
from .errors import Away, SchemaRefused, SinkBroken
from .spi import BatchPlan, Pipeline, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Staged:
    """What a batch came to: its manifest, and how many rows were read for it."""

    manifest: Manifest
    rows_in: int


class Target:
    """The sink of one attempt of a task, which is prepared for each new schema."""

    def __init__(self, sink: Sink[Any]) -> None:
        self._sink = sink
        self._schema: ArrowSchema | None = None
        """The last one that it was prepared for; None: none yet."""
        self._is_asked = getattr(sink.prepare, "__func__", None) is not Sink[Any].prepare
        """Whether schemas matter to it: to learn a frame's takes a while."""

    def prepare(self, rows: "DataFrame | ArrowTable") -> None:
        """Have the sink made ready for rows that are to be staged; raises `SchemaRefused`."""
        if not self._is_asked:
            return
        table = _arrow(rows)
        schema = table.schema if table is not None else _schema(cast("DataFrame", rows))
        if schema != self._schema:
            self._sink.prepare(schema)
            self._schema = schema


@dataclass(frozen=True, slots=True)
class Batch:
    """A plan under the commit id that its outcome will have."""

    pipeline: Pipeline
    target: Target
    plan: BatchPlan[Any]
    commit_id: CommitId

    def run(self, spark: "SparkSession") -> Staged:
        """Read, transform and stage; raises `BadInput` where the source knows what is to blame.

        Rows are counted as they pass, which costs no job of its own.
        """
        source = self.pipeline.source
        try:
            staged = self._stage(spark)
        except (Away, SinkBroken, SchemaRefused):
            raise
        except Exception as error:
            blamed = source.blame(error)
            if blamed:
                raise blamed from error
            raise
        for transform in self.pipeline.transforms:
            transform.conclude()
        source.verify(self.plan.ranges)
        return staged if staged.manifest.rows else self._without_files(staged)

    def _stage(self, spark: "SparkSession") -> Staged:
        sink, plan = self.pipeline.sink, self.plan
        rows = self.pipeline.source.read(spark, plan.ranges)
        table = _arrow(rows)
        if table is not None and sink.takes_arrow and not self.pipeline.transforms:
            self.target.prepare(table)
            manifest = sink.stage(table, self.commit_id, plan.bytes)
            return Staged(replace(manifest, rows=table.num_rows), table.num_rows)
        rows_in = plan.rows if table is None else table.num_rows
        frame = cast("DataFrame", rows) if table is None else _described(spark, table)
        incoming = _Count() if rows_in < 0 else None
        frame = incoming.on(frame) if incoming else frame
        for transform in self.pipeline.transforms:
            frame = transform.apply(frame)
        manifest = self._stage_frame(frame)
        return Staged(manifest, incoming.rows if incoming else rows_in)

    def _stage_frame(self, frame: "DataFrame") -> Manifest:
        """Hand a frame to the sink, as what it takes, and count its rows unless the sink does."""
        sink, size = self.pipeline.sink, self.plan.bytes
        if sink.takes_arrow:
            table = cast("ArrowTable", frame.toArrow())  # pyright: ignore[reportUnknownMemberType]
            self.target.prepare(table)
            return replace(sink.stage(table, self.commit_id, size), rows=table.num_rows)
        self.target.prepare(frame)
        if sink.counts_rows:
            return sink.stage(frame, self.commit_id, size)
        outgoing = _Count()
        manifest = sink.stage(outgoing.on(frame), self.commit_id, size)
        return replace(manifest, rows=outgoing.rows)

    def _without_files(self, staged: Staged) -> Staged:
        """Drop the empty file that Spark writes when there is no row."""
        self.pipeline.sink.discard(self.commit_id)
        return replace(staged, manifest=replace(staged.manifest, bytes=0, files=0, parts=()))


def _arrow(rows: object) -> ArrowTable | None:
    is_arrow = isinstance(rows, pa.Table)  # pyright: ignore[reportUnknownMemberType]
    return cast("ArrowTable", rows) if is_arrow else None


def _schema(frame: "DataFrame") -> ArrowSchema:
    return cast("ArrowSchema", to_arrow_schema(frame.schema, timezone="UTC"))


def _described(spark: "SparkSession", table: ArrowTable) -> "DataFrame":
    return spark.createDataFrame(cast("Any", table))  # pyright: ignore[reportUnknownMemberType]


class _Count:
    """How many rows passed a point of a frame while its job ran."""

    def __init__(self) -> None:
        self._observation = Observation()

    def on(self, frame: "DataFrame") -> "DataFrame":
        return frame.observe(self._observation, sf.count(sf.lit(1)).alias("rows"))

    @property
    def rows(self) -> int:
        return int(observed(self._observation).get("rows", 0))


def observed(observation: Observation) -> Mapping[str, Any]:
    """Return what was counted while a job ran; nothing if Spark saw that no row could pass."""
    try:
        return observation.get
    except Py4JNetworkError:
        raise  # the JVM is gone, and nobody knows how many there were
    except Py4JError:
        return {}  # Spark left the point out
