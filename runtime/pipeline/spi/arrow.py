"""What is asked of pyarrow's objects, which have no types of their own to be checked."""

from collections.abc import Iterator
from typing import Protocol


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
