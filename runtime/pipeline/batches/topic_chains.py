"""Transforms of a table that tells the columns of its topics: each topic goes through by itself.

A transform keeps what it has counted and rejected of its last frame, so each topic has copies of
its own. Its rows are held in the worker, since the sink takes tables. What a transform calls their
topic then is the topic that they go to.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from ..spi.config import ConfigInvalid
from ..spi.connector import Pipeline
from ..spi.errors import BadInput, SchemaRefused
from ..spi.rows import COLUMNS_OF_TOPICS, ArrowTable, Rejects
from ..spi.transform import Transform
from .bisection import as_rejects, failing_rows, failure_of_row, without
from .counting import above_queries
from .frames import frame_of, rows_of
from .topics import TOPIC, joined, parts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def tells_topics(table: ArrowTable) -> bool:
    """Return whether rows tell their topics, and which columns each topic has."""
    schema: Any = table.schema
    return TOPIC in schema.names and COLUMNS_OF_TOPICS in (schema.metadata or {})


@dataclass(frozen=True, slots=True)
class TopicChains:
    """The transforms of one batch."""

    pipeline: Pipeline
    applied: list[Transform] = field(default_factory=list[Transform])
    """The copies that rows went through, in the order of topics."""
    failed: list[tuple[str, Rejects]] = field(default_factory=list[tuple[str, Rejects]])
    """The rows that transforms fail for, with the stage."""

    def transform(self, spark: "SparkSession", table: ArrowTable) -> ArrowTable:
        """Return the rows of all topics; raises what a transform raises, with the topic."""
        self.applied.clear()
        self.failed.clear()
        parts: list[tuple[str, ArrowTable]] = []
        for topic, own in parts_of(table):
            chain = [copy(each) for each in self.pipeline.transforms]
            self.applied.extend(chain)
            try:
                rows = self._transformed(spark, chain, own)
            except (ConfigInvalid, SchemaRefused) as error:
                raise type(error)(f"rows of the topic {topic}: {error}") from None
            has_topics = TOPIC in rows.schema.names
            parts += parts_of(rows) if has_topics and rows.num_rows else [(topic, rows)]
        try:
            return cast("ArrowTable", joined(parts))
        except pa.ArrowException as error:
            raise BadInput(
                f"transforms give rows of several topics to one, with columns of other types: "
                f"{error}"
            ) from None

    def _transformed(
        self, spark: "SparkSession", chain: Sequence[Transform], own: ArrowTable
    ) -> ArrowTable:
        """Return the rows of one topic, but for those that a transform fails for."""
        most = self.pipeline.tolerance.most_searched
        try:
            return self._run(spark, chain, own)
        except Exception as error:
            is_of_rows = most and failure_of_row(error) is not None
            if not is_of_rows or self.pipeline.source.blame(error) is not None:
                raise
        failing = failing_rows(
            own, lambda part: self._try(spark, chain, part), failure_of_row, most
        )
        self.failed.append(("transform", self._rejects(spark, own, failing)))
        return self._run(spark, chain, without(own, failing))

    def _run(
        self, spark: "SparkSession", chain: Sequence[Transform], own: ArrowTable
    ) -> ArrowTable:
        before = frame_of(spark, own)
        frame = _through(chain, before)
        self.pipeline.lineage.columns(before, frame)
        return rows_of(above_queries(frame))

    def _try(self, spark: "SparkSession", chain: Sequence[Transform], part: ArrowTable) -> None:
        rows_of(above_queries(_through(chain, frame_of(spark, part))))

    def _rejects(
        self, spark: "SparkSession", table: ArrowTable, reasons: Mapping[int, str]
    ) -> Rejects:
        return as_rejects(spark, table, reasons, self.pipeline.tolerance.hide)


def _through(chain: Sequence[Transform], frame: "DataFrame") -> "DataFrame":
    for each in chain:
        frame = each.apply(frame)
    return frame
