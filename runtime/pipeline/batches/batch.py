"""One batch, from ranges to staged rows: the only Spark job that a task runs, but for bad rows.

The source gives its rows as a frame of Spark, as a table that this process holds, or as parts that
Arrow reads. Parts and tables without transforms pass by the JVM, if the sink takes them so. What
fails is asked again: by the source whether it can read otherwise, or name the range that is to
blame; by a bisection for the rows that a transform or the sink refuses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import unwrap
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from ....events.commits import CommitId, Manifest
from ..spi.connector import Pipeline
from ..spi.errors import (
    Away,
    BadInput,
    LostRange,
    RowsRefused,
    SchemaRefused,
    SinkBroken,
    Unreadable,
)
from ..spi.rows import TYPE_CONFLICT, ArrowSchema, ArrowTable, LaneCount, PartedRows, Rejects
from ..spi.sink import Sink
from ..spi.source import BatchPlan
from .bisection import (
    as_rejects,
    failing_rows,
    failure_of_row,
    refusal_of_sink,
    with_files,
    without,
    without_files,
)
from .counting import RowCount, above_queries
from .dead_letters import BadRows
from .frames import arrow_schema_of, frame_of, plain_rows_of, rows_of
from .session import TaskSession
from .topic_chains import TopicChains, tells_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SELF_EXPLANATORY: Final = (Away, SinkBroken, SchemaRefused, Unreadable)
"""Errors whose own text names the cause."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The outcome of a batch: its manifest, and how many rows were read and rejected."""

    manifest: Manifest
    rows_in: int
    rejected: int = 0
    failed: tuple[tuple[str, Rejects], ...] = ()
    """The rows that transforms or the sink fail for, each with the stage."""
    lanes: LaneCount | None = None
    """How much went by Arrow; None: nothing did."""


_OF_SINK: Final = "the sink's format, options, partitions or columns need Spark"
_OF_ENDS: Final = "the source or the sink needs Spark"
_NOTHING: Final = Staged(Manifest("", "", 0, 0, 0), 0)
"""A batch of which no row reaches the sink."""


class Target:
    """The sink of one attempt of a task, which is prepared for each new schema."""

    def __init__(self, sink: Sink[Any]) -> None:
        self._sink = sink
        self._schema: ArrowSchema | None = None
        """The schema that it was last prepared for; None: none yet."""
        self._prepares = getattr(unwrap(sink.prepare), "__func__", None) is not Sink[Any].prepare
        """Whether the sink needs schemas; without `prepare` of its own, none is determined."""

    def prepare(self, rows: "DataFrame | ArrowTable") -> None:
        """Prepare the sink for the schema of these rows if it is new; raises `SchemaRefused`."""
        if not self._prepares:
            return
        table = _arrow(rows)
        self.prepare_for(
            table.schema if table is not None else arrow_schema_of(cast("DataFrame", rows).schema)
        )

    def prepare_for(self, schema: ArrowSchema) -> None:
        """Prepare the sink for a schema if it is new; raises `SchemaRefused`."""
        if self._prepares and schema != self._schema:
            self._sink.prepare(schema)
            self._schema = schema


@dataclass(frozen=True, slots=True)
class Batch:
    """A plan under its commit id."""

    pipeline: Pipeline
    target: Target
    plan: BatchPlan[Any]
    commit_id: CommitId
    session: TaskSession = TaskSession({})  # noqa: RUF009  # it holds nothing
    chains: list[TopicChains] = field(default_factory=list[TopicChains])
    """What transforms topics, each by itself; empty: all rows go through at once."""

    def run(self, spark: "SparkSession") -> Staged:
        """Read, transform and stage; raises `BadInput` where the source knows the cause.

        Rows are counted as they pass, which costs no job of its own.
        """
        spark = self.session.beside(spark)
        lost: list[LostRange] = []
        staged = self._stage_readable(spark, lost)
        pipeline = self.pipeline
        if staged is _NOTHING:
            # Nothing reached the transforms: their rejects are those of the batch before.
            pipeline = replace(pipeline, transforms=())
        elif self.chains:
            pipeline = replace(pipeline, transforms=tuple(self.chains[-1].applied))
        for transform in pipeline.transforms:
            transform.conclude()
        told = pipeline.sink.rejects(spark) if pipeline.sink.rejected else ()
        failed = (*staged.failed, *(("sink", each) for each in told))
        bad_rows = BadRows(pipeline, self.commit_id, lost, failed)
        rejected = bad_rows.reject(spark, staged.rows_in)
        self.pipeline.source.verify(self.plan.ranges)
        staged = staged if staged.manifest.rows else self._without_files(staged)
        manifest = replace(staged.manifest, dead_letters=rejected.dead_letters)
        lanes = staged.lanes or self._lanes_of_spark()
        return Staged(manifest, staged.rows_in + rejected.unread, rejected.rows, lanes=lanes)

    def _lanes_of_spark(self) -> LaneCount:
        """Return why the whole batch went through Spark."""
        if self.pipeline.transforms:
            return LaneCount(why_spark="transforms")
        if not self.pipeline.by_arrow:
            return LaneCount(why_spark="engine.lane=spark")
        of_source = self.pipeline.source.lane_count()
        if of_source.why_spark and (self.pipeline.sink.takes_arrow or not of_source.ranges):
            return of_source._replace(ranges=0)
        return LaneCount(why_spark=_OF_SINK if of_source.ranges else _OF_ENDS)

    def run_held(self) -> Staged | None:
        """Stage rows that this process holds, without Spark; None: it needs Spark.

        Spark is needed for rows that are bad, or that the sink refuses while that is tolerated.
        """
        source, ranges = self.pipeline.source, self.plan.ranges
        try:
            table = source.table(ranges)
            staged = None if table is None else self._stage_held(table)
        except Unreadable:
            return None
        except RowsRefused:
            if self.pipeline.tolerance.most_searched:
                return None
            raise
        except _SELF_EXPLANATORY:
            raise
        except Exception as error:
            if blamed := source.blame(error):
                raise blamed from error
            raise
        has_bad = self.pipeline.sink.rejected or any(each.count() for each in source.rejects())
        if staged is None or has_bad:
            return None
        source.verify(ranges)
        return staged if staged.manifest.rows else self._without_files(staged)

    def _stage_held(self, table: ArrowTable, spark: "SparkSession | None" = None) -> Staged | None:
        """Stage a table without a job of Spark's; None: Spark has to stage it."""
        self._table_of(table)
        sink, rows = self.pipeline.sink, table.num_rows
        lanes = LaneCount(len(self.plan.ranges), rows)
        if _lacks_columns(table):
            return replace(_NOTHING, lanes=lanes)
        held = table if sink.takes_arrow else plain_rows_of(table)
        if held is None:
            return None
        self.target.prepare(held)
        self.pipeline.lineage.columns(held, held)
        if sink.takes_arrow:
            write = sink.write if sink.writes_at_once else sink.stage
            manifest: Manifest | None = write(held, self.commit_id, self.plan.bytes)
        else:
            manifest = sink.stage_table(held, self.commit_id, self.plan.bytes, spark)
        if manifest is None:
            return None
        return Staged(replace(manifest, rows=rows), rows, lanes=lanes)

    def _stage_readable(self, spark: "SparkSession", lost: list[LostRange]) -> Staged:
        """Stage the ranges of the plan, but for those that turn out to be unreadable."""
        ranges = self.plan.ranges
        while ranges:
            try:
                return self._stage_or_blame(spark, ranges)
            except Unreadable as unreadable:
                gone = [each.range for each in unreadable.lost]
                self.pipeline.source.verify(gone)  # else they may be readable later
                left = tuple(each for each in ranges if each not in gone)
                if len(left) == len(ranges):
                    raise
                ranges = left
                lost += unreadable.lost
        return _NOTHING

    def _stage_or_blame(self, spark: "SparkSession", ranges: Sequence[Any]) -> Staged:
        try:
            return self._stage_narrowed(spark, ranges)
        except _SELF_EXPLANATORY:
            raise
        except Exception as error:
            blamed = self.pipeline.source.blame(error)
            if blamed:
                raise blamed from error
            raise

    def _stage_narrowed(self, spark: "SparkSession", ranges: Sequence[Any]) -> Staged:
        """Stage ranges; again if the source can then name the range that caused an error."""
        try:
            return self._stage(spark, ranges)
        except _SELF_EXPLANATORY:
            raise
        except Exception as error:
            if not self.pipeline.source.narrow(error):
                raise
        return self._stage(spark, ranges)

    def _stage(self, spark: "SparkSession", ranges: Sequence[Any]) -> Staged:
        rows = self.pipeline.source.read(spark, ranges)
        if isinstance(rows, PartedRows):
            return self._stage_parts(spark, rows) or self._stage_rows(spark, ranges, rows.frame())
        table = _arrow(rows)
        if table is not None and table.num_rows and self._transforms_topics(table):
            return self._stage_topics(spark, table)
        return self._stage_rows(spark, ranges, rows)

    def _transforms_topics(self, table: ArrowTable) -> bool:
        """Return whether transforms see the rows of each topic by themselves."""
        pipeline = self.pipeline
        return bool(pipeline.transforms) and pipeline.sink.parts_topics and tells_topics(table)

    def _stage_rows(
        self, spark: "SparkSession", ranges: Sequence[Any], rows: "DataFrame | ArrowTable"
    ) -> Staged:
        table = self._table_of(rows)
        if table is not None and _lacks_columns(table):
            return _NOTHING  # transforms and the sink would miss them
        if table is not None and self.pipeline.sink.takes_arrow and not self.pipeline.transforms:
            self.pipeline.lineage.columns(table, table)
            lanes = LaneCount(len(ranges), table.num_rows)
            return replace(self._stage_table(spark, table), lanes=lanes)
        if (
            table is not None
            and self.pipeline.by_arrow
            and (staged := self._stage_held(table, spark))
        ):
            return staged
        is_planned = len(ranges) == len(self.plan.ranges)
        rows_in = table.num_rows if table is not None else self.plan.rows if is_planned else -1
        frame = cast("DataFrame", rows) if table is None else frame_of(spark, table)
        # Without transforms they are those that the sink counts. A count on the way takes each
        # row out of the code that Spark generates.
        incoming = RowCount() if rows_in < 0 and self.pipeline.transforms else None
        frame = incoming.on(frame) if incoming else frame
        try:
            transformed = self._transformed(frame)
            self.pipeline.lineage.columns(frame, transformed)
            staged = self._stage_frame(spark, transformed)
        except RowsRefused:
            if not self.pipeline.tolerance.most_searched:
                raise
            return self._stage_accepted(spark, ranges)
        except Exception as error:
            if not self._is_of_rows(error):
                raise
            return self._stage_passing(spark, ranges)
        rows_in = incoming.rows if incoming else rows_in
        return staged if rows_in < 0 else replace(staged, rows_in=rows_in)

    def _table_of(self, rows: "DataFrame | ArrowTable") -> ArrowTable | None:
        """Return rows that are a table; None: they are a frame.

        Raises `BadInput` if topics have one name for two types, and nothing keeps them apart.
        """
        table = _arrow(rows)
        metadata: Any = None if table is None else cast("Any", table).schema.metadata
        flaw: bytes | None = metadata.get(TYPE_CONFLICT) if metadata else None
        is_parted = self.pipeline.sink.parts_topics and not self.pipeline.transforms
        if flaw and not is_parted:
            raise BadInput(flaw.decode())
        return table

    def _stage_topics(self, spark: "SparkSession", table: ArrowTable) -> Staged:
        """Transform the rows of each topic by themselves, and stage them together."""
        chains = TopicChains(self.pipeline)
        self.chains.append(chains)
        staged = self._stage_table(spark, chains.transform(spark, table))
        failed = *chains.failed, *staged.failed
        return replace(staged, rows_in=table.num_rows, failed=failed)

    def _stage_parts(self, spark: "SparkSession", rows: PartedRows) -> Staged | None:
        """Stage rows that Arrow reads, in this process or in tasks of Spark; None: Spark has to."""
        sink = self.pipeline.sink
        if self.pipeline.transforms or (rows.rest is not None and sink.takes_arrow):
            return None
        empty = cast("Any", rows.schema).empty_table()
        self.pipeline.lineage.columns(empty, empty)
        lanes = self.pipeline.source.lane_count()
        if sink.takes_arrow:
            staged = self._stage_table(spark, rows.table())
            return replace(staged, lanes=lanes._replace(rows=staged.rows_in))
        if sink.writes_at_once:
            return None
        self.target.prepare_for(rows.schema)
        parts = sink.stage_parts(spark, rows, self.commit_id, self.plan.bytes)
        if parts is None:
            return None
        return Staged(parts.manifest, parts.manifest.rows, lanes=lanes._replace(rows=parts.rows))

    def _whole(self, spark: "SparkSession", ranges: Sequence[Any]) -> "DataFrame | ArrowTable":
        """Return rows that are not in parts."""
        rows = self.pipeline.source.read(spark, ranges)
        return rows.frame() if isinstance(rows, PartedRows) else rows

    def _transformed(self, frame: "DataFrame") -> "DataFrame":
        for transform in self.pipeline.transforms:
            frame = transform.apply(frame)
        return above_queries(frame) if self.pipeline.transforms else frame

    def _is_of_rows(self, error: Exception) -> bool:
        """Return whether a transform fails for some rows only, and they may be rejected."""
        may_be = self.pipeline.transforms and self.pipeline.tolerance.most_searched
        if not may_be or failure_of_row(error) is None:
            return False
        return self.pipeline.source.blame(error) is None

    def _stage_passing(self, spark: "SparkSession", ranges: Sequence[Any]) -> Staged:
        """Stage the rows that no transform fails for; all of them are held in the worker."""
        rows = self._whole(spark, ranges)
        is_table = _arrow(rows) is not None
        held = _held(rows if is_table else with_files(cast("DataFrame", rows)))
        table, files = without_files(held)

        def attempt(part: ArrowTable) -> None:
            self._transformed(frame_of(spark, part)).write.format("noop").mode("append").save()

        most = self.pipeline.tolerance.most_searched
        failing = failing_rows(table, attempt, failure_of_row, most)
        frame = self._transformed(frame_of(spark, without(table, failing)))
        staged = self._stage_frame(spark, frame)
        bad = ("transform", self._rejects(spark, table, failing, files))
        failed = (bad, *staged.failed) if failing else staged.failed
        return replace(staged, rows_in=table.num_rows, failed=failed)

    def _stage_accepted(self, spark: "SparkSession", ranges: Sequence[Any]) -> Staged:
        """Stage the rows that the sink does not refuse; all of them are held in the worker."""
        table = _held(self._whole(spark, ranges))
        rows = _held(self._transformed(frame_of(spark, table)))
        return replace(self._stage_table(spark, rows), rows_in=table.num_rows)

    def _stage_frame(self, spark: "SparkSession", frame: "DataFrame") -> Staged:
        """Stage a frame in the form that the sink takes; count its rows unless the sink does."""
        sink, size = self.pipeline.sink, self.plan.bytes
        if sink.takes_arrow:
            return self._stage_table(spark, _held(frame))
        self.target.prepare(frame)
        write = sink.write if sink.writes_at_once else sink.stage
        if sink.counts_rows:
            manifest = write(frame, self.commit_id, size)
            return Staged(manifest, manifest.rows)
        outgoing = RowCount()
        manifest = write(outgoing.on(frame), self.commit_id, size)
        return Staged(replace(manifest, rows=outgoing.rows), outgoing.rows)

    def _stage_table(self, spark: "SparkSession", table: ArrowTable) -> Staged:
        """Stage a table, without the rows that the sink refuses if that is tolerated."""
        sink, size = self.pipeline.sink, self.plan.bytes
        most = self.pipeline.tolerance.most_searched
        self.target.prepare(table)

        def rows_for_sink(part: ArrowTable) -> Any:  # noqa: ANN401  # as the sink takes them
            return part if sink.takes_arrow else frame_of(spark, part)

        def stage(part: ArrowTable) -> Manifest:
            return sink.stage(rows_for_sink(part), self.commit_id, size)

        def write(part: ArrowTable) -> Manifest:
            if not sink.writes_at_once:
                return stage(part)
            return sink.write(rows_for_sink(part), self.commit_id, size)

        try:
            return Staged(replace(write(table), rows=table.num_rows), table.num_rows)
        except RowsRefused:
            if not most:
                raise
        refused = failing_rows(table, stage, refusal_of_sink, most)
        if sink.writes_at_once:
            sink.discard(self.commit_id)  # the attempts
        left = without(table, refused)
        failed = (("sink", self._rejects(spark, table, refused)),) if refused else ()
        manifest = replace(write(left), rows=left.num_rows)
        return Staged(manifest, table.num_rows, failed=failed)

    def _rejects(
        self,
        spark: "SparkSession",
        table: ArrowTable,
        reasons: Mapping[int, str],
        files: ArrowTable | None = None,
    ) -> Rejects:
        return as_rejects(spark, table, reasons, self.pipeline.tolerance.hide, files)

    def _without_files(self, staged: Staged) -> Staged:
        """Drop the empty file that Spark writes when there is no row."""
        self.pipeline.sink.discard(self.commit_id)
        return replace(staged, manifest=replace(staged.manifest, bytes=0, files=0, parts=()))


def _arrow(rows: object) -> ArrowTable | None:
    is_arrow = isinstance(rows, pa.Table)  # pyright: ignore[reportUnknownMemberType]
    return cast("ArrowTable", rows) if is_arrow else None


def _lacks_columns(table: ArrowTable) -> bool:
    """Return whether a batch without rows has only columns about records."""
    return not table.num_rows and all(each.startswith("_") for each in table.schema.names)


def _held(rows: "DataFrame | ArrowTable") -> ArrowTable:
    """Return rows as an Arrow table in the worker's memory."""
    table = _arrow(rows)
    if table is not None:
        return table
    return rows_of(cast("DataFrame", rows))
