"""The rows of a batch between the stages, and the rows that a stage rejects.

Rows are a Spark frame or an Arrow table. pyarrow has no type hints, so the protocols here declare
the parts of it that are used.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD_PLACE: Final = {"topic": "_topic", "partition": "_partition", "offset": "_offset"}
"""The columns with the place of a Kafka record, by their names in a bad row's position."""


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

    Optional columns `key` and `value` are the bytes of the record, which a dead letter topic keeps.
    A job after the batch's own job reads this frame if `count` is not 0; it must return the same
    rows then.
    """

    count: Callable[[], int]
    """Returns the number of rows; called after the batch's job, which counts them."""
