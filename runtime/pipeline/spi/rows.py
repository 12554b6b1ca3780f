"""The rows of a batch, as one stage hands them to the next, and those that it leaves out.

They are a Spark frame, or an Arrow table: what is asked of pyarrow's objects stands here, since
they have no types of their own to be checked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        """How many rows it has."""
        ...

    @property
    def nbytes(self) -> int:
        """How much memory its values take."""
        ...

    @property
    def schema(self) -> ArrowSchema:
        """The columns' names and types."""
        ...


@dataclass(frozen=True, slots=True)
class Rejects:
    """The rows that one stage left out of a batch since they are bad, and how many there are.

    They are counted, and become dead letters where there is a folder for them (DATA_PLANE §12).
    """

    frame: "DataFrame"
    """Columns: `position` (map of texts: the file, say), `reason` and `raw`, which are texts.

    It may have `key` and `value` beside them, bytes: those of the record that was read, which a
    topic of dead letters keeps as they are.
    It is read only if there are any, in a job of its own, and has to hold the same rows then.
    """

    count: Callable[[], int]
    """Asked for once the batch's own job is over, in which they were counted."""
