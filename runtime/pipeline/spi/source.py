"""Where the rows of a task come from.

A source plans a batch in the worker, by the offsets of the last one, and gives its rows inside the
batch's Spark job. All methods of one object are called from one thread.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ....events.commits import Advance, Document, Lag
from .errors import BadInput
from .rows import ArrowTable, Rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

R = TypeVar("R")
"""One range of a source: what `Source.plan` hands to `Source.read`; opaque to the task."""


class Limit(NamedTuple):
    """How much one batch may hold; a range that is larger by itself makes a batch alone."""

    rows: int
    bytes: int
    ranges: int


@dataclass(frozen=True, slots=True)
class BatchPlan(Generic[R]):
    """One batch to come: what to read, how far that moves the offsets, and how large it is.

    `backlog` tells whether there is more where this came from, `lag` how much, None if the
    source cannot tell. `rows` may be -1, not known; the pipeline then counts them as they are
    read. `remark` is what is strange about the source although the task goes on: its status
    tells it for as long as plans do, those without ranges included.
    """

    ranges: tuple[R, ...] = ()
    advances: tuple[Advance, ...] = ()
    bytes: int = 0
    rows: int = -1
    backlog: bool = False
    lag: Lag | None = None
    remark: str = ""


class Source(ABC, Generic[R]):
    """Where the rows of a task come from."""

    @abstractmethod
    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[R]:
        """Choose the next batch: what lies behind the offsets, keyed by partition identity.

        Runs in the worker, without Spark: an empty plan costs no job. An advance starts at the
        offset that was given, and no two advances of a plan name the same partition.
        """

    @abstractmethod
    def read(self, spark: "SparkSession", ranges: Sequence[R]) -> "DataFrame | ArrowTable":
        """Return the rows of some ranges, or describe them; raises `BadInput`.

        Called once per batch, inside the job. A frame must not hold more than the ranges.
        """

    def verify(self, ranges: Sequence[R]) -> None:
        """Raise `BadInput` if ranges changed while they were read; called before the commit."""

    def blame(self, error: Exception) -> BadInput | None:
        """Return what an error of the job says about the input, or None if it says nothing."""
        del error
        return None

    def narrow(self, error: Exception) -> bool:
        """Tell whether to read the ranges once more, in a way that tells more of an error.

        Asked of an error of the job, before `blame`. A source that reads several ranges as one
        does so, and reads them one by one from then on.
        """
        del error
        return False

    def rejects(self) -> Sequence[Rejects]:
        """Return the rows of the ranges read last that are left out, since they do not fit.

        Asked once the batch's job is over.
        """
        return ()

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Learn that a batch counts; a source that keeps receipts of its own gives them here."""

    def release(self) -> None:
        """Give up what it keeps outside, if the config wants that of a connector that is STOPPED.

        Called as `forget` is, once the connector counts as STOPPED; again, if it raises. A task of
        a connector that is resumed must tell what is lost by it.
        """

    def forget(self) -> None:
        """Remove what it keeps outside for a connector that was deleted.

        Called on an object that is made for it, once nobody has the task any more, if the type
        says that it keeps anything (`keeps_outside`); again, if it raises, and until all is done.
        """

    def close(self) -> None:
        """Let go of what it holds; called once, when the task is over."""


class Fetched(NamedTuple):
    """What a source fetched, and how far that moves its offsets; `backlog`: there is more."""

    table: ArrowTable
    advances: tuple[Advance, ...]
    backlog: bool = False


class Fetching(Source[ArrowTable]):
    """A source that knows where a batch ends only once it has it: a query, a page, a generator.

    What it fetched is held by the plan: it must fit into memory, which is what the limit is for.
    """

    @abstractmethod
    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched | None:
        """Fetch what lies behind the offsets, about as much as the limit says; None: nothing."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> "BatchPlan[ArrowTable]":
        """Fetch the next batch."""
        fetched = self.fetch(offsets, limit)
        if fetched is None:
            return BatchPlan()
        table, advances, backlog = fetched
        return BatchPlan((table,), advances, table.nbytes, table.num_rows, backlog)

    def read(self, spark: "SparkSession", ranges: Sequence[ArrowTable]) -> ArrowTable:
        """Return what was fetched."""
        del spark
        (table,) = ranges
        return table
