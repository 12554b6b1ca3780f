"""The interface of a sink: each batch is staged, committed to the log, then published.

All methods of one object are called from one thread.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from ....events.commits import CommitId, Manifest
from ....events.model import Resource, Token
from .rows import ArrowSchema, ArrowTable, PartedRows, Rejects
from .source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = TypeVar("Rows", "DataFrame", ArrowTable)
"""The type of rows that a sink takes; the pipeline converts the source's rows to it."""


@dataclass(frozen=True, slots=True)
class TaskOwnership:
    """A task that starts under a fencing token, with its last commits in the log."""

    task: Resource
    token: Token
    last: CommitId | None
    """Its last commit; None: it has none."""

    published: CommitId | None = None
    """The last commit with staged rows, if it is known to be published."""

    log: str = ""
    """The place of the log, which distinguishes it from its copies, or its store, whose copies are
    one log."""


class StagedParts(NamedTuple):
    """A batch that was staged by `Sink.stage_parts`."""

    manifest: Manifest
    rows: int
    """The rows of the parts, without those of `PartedRows.rest`."""


class Sink(ABC, Generic[Rows]):
    """The target of a task's rows: a batch is staged, and published after its commit."""

    takes_arrow: ClassVar[bool] = False
    """Whether `stage` takes an Arrow table in the worker's memory instead of a Spark frame."""

    @property
    def takes_tables(self) -> bool:
        """Whether it stages tables in the worker's memory without Spark."""
        return self.takes_arrow

    @property
    def parts_topics(self) -> bool:
        """Whether the rows of each topic go to a target of their own, with columns of its own."""
        return False

    @property
    def counts_rows(self) -> bool:
        """Whether `stage` sets `Manifest.rows`; if not, the pipeline counts the rows."""
        return False

    @property
    def writes_at_once(self) -> bool:
        """Whether `write` publishes batches before their commit: at least once, without staging.

        A bisection for bad rows still stages.
        """
        return False

    def paired(self, source: Source[Any]) -> Source[Any]:
        """Return the source of its task as this sink needs it; by default itself.

        A sink that holds rows beyond their batch returns one that advances once these are safe.
        """
        return source

    def acquire(self, ownership: TaskOwnership) -> None:  # some sinks have no mark to check
        """Acquire the sink for a task, before the first `stage` or `publish` under its token.

        Raises `SinkAway`, or `SinkBroken` if the sink belongs to another log.
        """

    def prepare(self, schema: ArrowSchema) -> None:  # few sinks have a schema
        """Create or alter the target for rows of this schema.

        It is called after `acquire`, before the first batch and whenever the schema changes. Calls
        may be repeated, and concurrent from several tasks; batches of an earlier schema may still
        be unpublished. Raises `SinkAway`, or `SchemaRefused` if the target must not change.
        """

    @abstractmethod
    def stage(self, rows: Rows, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch, in one Spark job, invisible to readers; replaces an earlier attempt.

        The staged rows must be durable when it returns. The manifest has all that `publish` needs;
        a manifest whose `files` is 0 is not published. Raises `SinkAway`.
        """

    def stage_parts(
        self, spark: "SparkSession", rows: PartedRows, commit_id: CommitId, input_bytes: int
    ) -> StagedParts | None:
        """Write a batch as `stage` does, but in tasks of Spark that read and write with Arrow.

        None: the sink cannot, and nothing is staged. Raises as `stage` does, and `Unproved`.
        """
        del spark, rows, commit_id, input_bytes
        return None

    def stage_table(
        self,
        table: ArrowTable,
        commit_id: CommitId,
        input_bytes: int,
        spark: "SparkSession | None" = None,
    ) -> Manifest | None:
        """Write a table in the worker's memory as `stage` does, but without a Spark job.

        Called for sinks that are not `takes_arrow`; `spark` is None unless the engine is there.
        None: Spark has to write these rows, and nothing is staged. Raises as `stage` does.
        """
        del table, commit_id, input_bytes, spark
        return None

    def write(self, rows: Rows, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Publish a batch without staging, if `writes_at_once`; raises as `stage` does.

        Returns a manifest without files. After an error the rows may be written again.
        """
        raise NotImplementedError(f"{type(self).__name__} only stages")

    @property
    def rejected(self) -> int:
        """How many rows of earlier batches become dead letters with this one; see `rejects`."""
        return 0

    def rejects(self, spark: "SparkSession") -> Sequence[Rejects]:
        """Return the rows of earlier batches that have turned out to be bad since they were read.

        Called if `rejected` is not 0, after the batch's job.
        """
        del spark
        return ()

    @abstractmethod
    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Make all rows of a committed batch visible, durably, or raise.

        It is idempotent, completes a publication that another process did not finish, and may run
        concurrently. The manifest may be older than the config; only the manifest says where the
        staged rows are.

        `sequence` is the position of the batch's commit in the group's offset log, from 0. It is
        the same for each attempt, and increases, with gaps, from each commit of a task to the
        next, under any token. A log that was restored from a copy, or created again, may repeat it.
        """

    @abstractmethod
    def discard(self, commit_id: CommitId) -> None:
        """Remove the staged rows, if any, of a batch that will not be committed."""

    @abstractmethod
    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove all rows that a task staged under this token and older ones.

        It is called between batches, when all committed batches are published, and repeatedly: a
        former owner that hung may stage late.
        """

    def close(self) -> None:
        """Release its resources; called once, at the end of the task."""
