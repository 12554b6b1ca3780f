# pyright: basic
"""Texts of csv that become values of their column's type as expressions of Spark's.

Spark's reader does it by itself, but not for every file as its values ask for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    DataType,
    DateType,
    NumericType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from .number_names import NUMBER_NAME

if TYPE_CHECKING:
    from pyspark.sql import Column

_PATTERNS: Final[Mapping[type[DataType], str]] = {
    DateType: "dateformat",
    TimestampType: "timestampformat",
    TimestampNTZType: "timestampntzformat",
}
"""The options, in lower case, that say how times of a type are written."""


@dataclass(frozen=True, slots=True)
class TextValues:
    """How texts become values, by what stands for no value and the options of Spark's reader."""

    nulls: tuple[str, ...]
    options: Mapping[str, str]
    refuses_names: bool
    """Whether texts of digits that say more than their number fit no column of numbers."""

    def value(self, text: "Column", column: StructField) -> "Column":
        """Return the value of a text, null where it is none of the column's type."""
        return self._typed(self._present(text, column), column.dataType)

    def is_misfit(self, text: "Column", column: StructField) -> "Column":
        """Tell whether a text is no value of a column."""
        if isinstance(column.dataType, StringType):
            return sf.expr("false")
        there = self._present(text, column)
        is_other = self._typed(there, column.dataType).isNull() | (there != sf.trim(there))
        if self.refuses_names and isinstance(column.dataType, NumericType):
            is_other |= there.rlike(NUMBER_NAME)
        return there.isNotNull() & is_other

    def _present(self, text: "Column", column: StructField) -> "Column":
        """Return a text, or null where it stands for no value."""
        absent = self.nulls if isinstance(column.dataType, StringType) else ("", *self.nulls)
        return sf.when(~text.isin(*absent), text) if absent else text

    def _typed(self, text: "Column", kind: DataType) -> "Column":
        if isinstance(kind, StringType):
            return text
        pattern = self.options.get(_PATTERNS.get(type(kind), ""), "")
        if not pattern:
            return text.try_cast(kind)
        if isinstance(kind, DateType):
            return sf.try_to_date(text, pattern)
        time = sf.try_to_timestamp(text, sf.lit(pattern))
        if isinstance(kind, TimestampType):
            return time
        # Nothing tries times without a zone: those with one tell whether a text is any.
        return sf.when(time.isNotNull(), sf.to_timestamp_ntz(text, sf.lit(pattern)))
