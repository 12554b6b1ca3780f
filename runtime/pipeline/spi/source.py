"""The interface of a source.

A source plans a batch in the worker, from the offsets of the last batch, and returns its rows
inside the batch's Spark job. All methods of one object are called from one thread.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ....events.commits import Advance, Document, Lag
from .errors import BadInput, Renamed
from .rows import ArrowTable, LaneCount, PartedRows, Rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

R = TypeVar("R")
"""One range of a source, from `Source.plan` to `Source.read`; opaque to the task."""


class Limit(NamedTuple):
    """The largest size of one batch; a single larger range is a batch of its own."""

    rows: int
    bytes: int
    ranges: int


@dataclass(frozen=True, slots=True)
class BatchPlan(Generic[R]):
    """The next batch: the ranges to read, the new offsets, and the size.

    `rows` is -1 if unknown; the pipeline then counts the rows as it reads them. `backlog` tells
    whether the source has more, `lag` how much more (None: unknown). `remark` is a warning about
    the source; the task's status shows it until a plan, even an empty one, has none.
    """

    ranges: tuple[R, ...] = ()
    advances: tuple[Advance, ...] = ()
    bytes: int = 0
    rows: int = -1
    backlog: bool = False
    lag: Lag | None = None
    remark: str = ""


class PlacedRun(NamedTuple):
    """Rows of a batch that stand in a row in one partition of a topic of Kafka."""

    rows: int
    partition: int
    offset: int
    """That of the first one."""


class Source(Renamed, ABC, Generic[R]):
    """The origin of a task's rows; `R` is the type of its ranges."""

    names_by_former = MappingProxyType({"put_off": "defer", "forget": "remove_external_state"})

    @property
    def wants_places(self) -> bool:
        """Whether it is to hear where the rows of its batch are written, if that is Kafka."""
        return False

    def note_places(self, places: Sequence[PlacedRun]) -> None:  # most want none
        """Hear where the rows of a batch are, in their order, before it is acknowledged."""

    @abstractmethod
    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[R]:
        """Choose the next batch after `offsets`, which are keyed by partition identity.

        It runs in the worker without Spark; an empty plan costs no job. Each advance starts at the
        given offset, and a plan has at most one advance for a partition. A plan may be discarded:
        called again with the same offsets, it plans the same rows again, up to the new limit.
        """

    @abstractmethod
    def read(
        self, spark: "SparkSession", ranges: Sequence[R]
    ) -> "DataFrame | ArrowTable | PartedRows":
        """Return the rows of the ranges, and no others; raises `BadInput`.

        Called once per batch, inside the job; not if `table` has returned the rows.
        """

    @property
    def holds_tables(self) -> bool:
        """Whether `table` returns the rows of most batches; then the task waits for no engine."""
        return False

    def table(self, ranges: Sequence[R]) -> ArrowTable | None:
        """Return the rows of the ranges as `read` does, but without Spark; None: it needs Spark.

        Called if no transform needs Spark, and the sink needs none. After None, or if the rows need
        Spark later on, `read` is called for the same ranges.
        """
        del ranges
        return None

    def verify(self, ranges: Sequence[R]) -> None:
        """Raise `BadInput` if ranges changed during the read; called before the commit."""

    def blame(self, error: Exception) -> BadInput | None:
        """Return the `BadInput` behind an error of the job; None: the input did not cause it.

        Raises `SourceAway` if the job did not reach the source.
        """
        del error
        return None

    def narrow(self, error: Exception) -> bool:
        """Tell whether a second read, range by range, can tell which range caused an error.

        Called before `blame`. A source that read several ranges as one returns True, and from then
        on reads them one by one.
        """
        del error
        return False

    def defer(self, ranges: Sequence[R]) -> str:
        """Plan the ranges of a failed batch in smaller batches from now on, a single one last.

        Returns their name for users; by default none: the order of the ranges matters, and the task
        does not go on without them. `Context.deferred` keeps them for the next attempt.
        """
        del ranges
        return ""

    def rejects(self) -> Sequence[Rejects]:
        """Return the bad rows of the last read; called after the batch's job."""
        return ()

    def lane_count(self) -> LaneCount:
        """Return how many ranges of the last read Arrow may read, and why not the others.

        Called after `read`; by default it is not known.
        """
        return LaneCount()

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Confirm the offsets of a committed batch to the external system, if it needs that."""

    def conclude(self, offsets: Mapping[str, Document]) -> BatchPlan[R]:
        """Return a last batch when the task is asked to end; by default none.

        It should read nothing more: it is for what only counts by now.
        """
        del offsets
        return BatchPlan()

    def leave_out(self, places: Collection[tuple[str, int]]) -> None:
        """Plan no records of these partitions of topics until the next call.

        A source that cannot do without some of its rows ignores it.
        """

    def release(self) -> None:
        """Drop external state of a STOPPED connector, if its config asks for that.

        Called as `remove_external_state` is, and repeated after an error. A resumed task must
        report the loss.
        """

    def remove_external_state(self) -> None:
        """Remove the external state of a deleted connector.

        Called on a separate object after the last task has ended, if the type has external state
        (`has_external_state`); repeated after an error.
        """

    def close(self) -> None:
        """Release its resources; called once, at the end of the task."""


class Fetched(NamedTuple):
    """Fetched rows with their advances; `backlog`: the source has more."""

    table: ArrowTable
    advances: tuple[Advance, ...]
    backlog: bool = False


class ArrowSource(Source[ArrowTable]):
    """A source whose plans hold the rows: a range is a table in the worker's memory."""

    @property
    def holds_tables(self) -> bool:
        """Whether the rows are those of the plan; a `read` of its own may return others."""
        return type(self).read is ArrowSource.read

    def table(self, ranges: Sequence[ArrowTable]) -> ArrowTable | None:
        """Return the rows of the plan."""
        return ranges[0] if self.holds_tables else None

    def read(self, spark: "SparkSession", ranges: Sequence[ArrowTable]) -> ArrowTable:
        """Return the rows of the plan."""
        del spark
        (table,) = ranges
        return table


class FetchingSource(ArrowSource):
    """A source that must fetch a batch to know its end: a query, a page, a generator.

    The plan holds the fetched rows, so `limit` must keep them within the worker's memory.
    """

    @abstractmethod
    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched | None:
        """Fetch rows after the offsets, up to about the limit; None: there are none."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> "BatchPlan[ArrowTable]":
        """Fetch the next batch."""
        fetched = self.fetch(offsets, limit)
        if fetched is None:
            return BatchPlan()
        table, advances, backlog = fetched
        return BatchPlan((table,), advances, table.nbytes, table.num_rows, backlog)
