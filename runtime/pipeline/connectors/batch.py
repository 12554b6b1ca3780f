"""One batch, from ranges to staged rows: the only Spark job that a task runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import Observation
from pyspark.sql import functions as sf

from ....events.commits import CommitId, Manifest
from .spi import BatchPlan, Pipeline, SinkAway, SinkBroken

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Staged:
    """What a batch came to: its manifest, and how many rows were read for it."""

    manifest: Manifest
    rows_in: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A plan under the commit id that its outcome will have."""

    pipeline: Pipeline
    plan: BatchPlan[Any]
    commit_id: CommitId

    def run(self, spark: "SparkSession") -> Staged:
        """Read, transform and stage; raises `BadInput` where the source knows what is to blame.

        Rows are counted as they pass, which costs no job of its own.
        """
        source = self.pipeline.source
        try:
            staged = self._stage(spark)
        except (SinkAway, SinkBroken):
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
        incoming = _Count() if self.plan.rows < 0 else None
        outgoing = None if self.pipeline.sink.counts_rows else _Count()
        frame = self.pipeline.source.read(spark, self.plan.ranges)
        frame = incoming.on(frame) if incoming else frame
        for transform in self.pipeline.transforms:
            frame = transform.apply(frame)
        frame = outgoing.on(frame) if outgoing else frame
        manifest = self.pipeline.sink.stage(frame, self.commit_id, self.plan.bytes)
        return Staged(
            replace(manifest, rows=outgoing.rows) if outgoing else manifest,
            incoming.rows if incoming else self.plan.rows,
        )

    def _without_files(self, staged: Staged) -> Staged:
        """Drop the empty file that Spark writes when there is no row."""
        self.pipeline.sink.discard(self.commit_id)
        return replace(staged, manifest=replace(staged.manifest, bytes=0, files=0, parts=()))


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
