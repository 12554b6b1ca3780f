"""The rows of a batch between the stages, the rows that a stage rejects, and dead letters.

Rows are a Spark frame or an Arrow table. pyarrow has no type hints, so the protocols here declare
the parts of it that are used.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ERROR_STAGES: Final = {
    "source": "VALUE_CONVERTER",
    "transform": "TRANSFORMATION",
    "sink": "TASK_PUT",
}
"""The stages that find bad rows, and their names in Connect's error headers."""
RECORD_PLACE: Final = {"topic": "_topic", "partition": "_partition", "offset": "_offset"}
"""The columns with the place of a Kafka record, by their names in a bad row's position."""


COLUMNS_OF_TOPICS: Final = b"fairlead.columns"
"""The metadata of a table with records of several topics: JSON with the columns of each topic.

Each has the name of its column in the table, which is another one where two topics give one name to
two types.
"""
TYPE_CONFLICT: Final = b"fairlead.conflict"
"""The metadata of such a table: what is wrong, unless each topic has a target of its own."""

RECORD_COLUMNS: Final = {
    "key": "binary",
    "value": "binary",
    "sent_ms": "bigint",
    "record_headers": "array<struct<key: string, value: binary>>",
}
"""The columns of a bad row with the record that it was, by Spark's types: a topic keeps these.

`sent_ms` is its timestamp, in ms since 1970.
"""


class ArrowField(Protocol):
    """A `pyarrow.Field`."""

    @property
    def name(self) -> str:
        """The column's name."""
        ...

    @property
    def type(self) -> object:
        """The `pyarrow.DataType`."""
        ...

    @property
    def nullable(self) -> bool:
        """Whether a value may be null."""
        ...


class ArrowSchema(Protocol):
    """A `pyarrow.Schema`."""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        ...

    def __iter__(self) -> Iterator[ArrowField]:
        """Yield the columns."""
        ...


class ArrowTable(Protocol):
    """A `pyarrow.Table`."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def nbytes(self) -> int:
        """The memory of its values, in bytes."""
        ...

    @property
    def schema(self) -> ArrowSchema:
        """The columns' names and types."""
        ...


@dataclass(frozen=True, slots=True)
class Rejects:
    """The bad rows that one stage left out of a batch (DATA_PLANE §12)."""

    frame: "DataFrame"
    """Columns: `position` (a map of strings, such as the file), `reason` and `raw` (strings).

    Optional columns are those of `RECORD_COLUMNS`, with the record that it was.
    Optional columns `format` and `columns` say how `raw` is read again: `csv` or `json` is the text
    that the source had, with the names of the csv values in their order; `row` is an object of JSON
    with the values that the source has read. Without them nobody reads it again.
    The optional column `context`, a map of strings, replaces what Connect's error headers say of
    a row otherwise, by their names without the prefix.
    A job after the batch's own job reads this frame if `count` is not 0; it must return the same
    rows then.
    """

    count: Callable[[], int]
    """Returns the number of rows; called after the batch's job, which counts them."""

    read: int = 0
    """How many rows of earlier batches these are among; 0: they are of this batch."""


class DeadLetter(NamedTuple):
    """A bad row, as the dead letter queue has it; what a queue does not have is "" or None."""

    time_ms: int
    reason: str
    stage: str
    """A key of `ERROR_STAGES`."""
    place: str
    """Where the source had the row."""
    raw: str | None
    """Its text; bytes that are no text are U+FFFD."""
    task: int | None = None
    batch: int | None = None
    """The number of its batch, among those of its task's attempt."""


class LetterQuery(NamedTuple):
    """The dead letters that are asked for."""

    limit: int
    cursor: str = ""
    """The `next` of an earlier page; empty: begin with the newest one."""


class LetterPage(NamedTuple):
    """Some dead letters, the newest first."""

    letters: Sequence[DeadLetter]
    next: str | None
    """The cursor of older ones; None: there are none."""
    where: str
    """The queue that has them, for users."""


class LaneCount(NamedTuple):
    """How much of a batch went through Arrow alone, and why Spark had the rest."""

    ranges: int = 0
    """The ranges that Arrow has read; of a source: those that it may read."""
    rows: int = 0
    why_spark: str = ""
    """Why Spark had the rest, or the last of it; empty: it is not known, or there is no rest."""
    is_news: bool = False
    """Whether the status of the task is to say so; seldom, since it is a record in the log."""


class Unproved(Exception):  # noqa: N818  # a state of the input, not a mistake
    """Rows could not be read in parts after all: `PartedRows.frame` has them."""


class PartedRows(ABC):
    """Rows that tasks of Spark, or this process, read with Arrow as Spark's reader would."""

    @property
    @abstractmethod
    def schema(self) -> ArrowSchema:
        """The columns' names and types."""

    @abstractmethod
    def parts(self, most: int) -> Sequence[Callable[[], Iterator[ArrowTable]]]:
        """Return functions that yield the rows, each a part of about the same size.

        They can be pickled, and need Arrow alone. What they raise shows that Spark must read.
        """

    @abstractmethod
    def table(self) -> ArrowTable:
        """Read the parts in this process; raises `Unproved`."""

    @property
    def is_small(self) -> bool:
        """Whether a job would take longer than `table`."""
        return False

    @property
    def rest(self) -> "Callable[[], DataFrame] | None":
        """Returns the rows that no part has, as Spark's reader has them; None: parts have all."""
        return None

    @abstractmethod
    def frame(self) -> "DataFrame":
        """Return all rows as Spark's reader has them."""
