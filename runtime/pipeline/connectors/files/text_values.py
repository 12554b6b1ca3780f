# pyright: basic
"""Spark expressions that convert csv texts to the type of their column.

They replace the conversion of Spark's reader for files that it would read wrongly: with several
texts for null, `""` in number columns, or numeric codes.
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

from .numeric_codes import NUMERIC_CODE

if TYPE_CHECKING:
    from pyspark.sql import Column

_PATTERNS: Final[Mapping[type[DataType], str]] = {
    DateType: "dateformat",
    TimestampType: "timestampformat",
    TimestampNTZType: "timestampntzformat",
}
"""The options, in lower case, with the patterns of dates and times."""


@dataclass(frozen=True, slots=True)
class TextValues:
    """The conversion of texts, with the texts for null and the options of Spark's reader."""

    nulls: tuple[str, ...]
    options: Mapping[str, str]
    refuses_codes: bool
    """Whether numeric codes are bad values in number columns."""

    def value(self, text: "Column", column: StructField) -> "Column":
        """Return the value of a text; null if the text does not fit the column's type."""
        return self._typed(self._present(text, column), column.dataType)

    def is_misfit(self, text: "Column", column: StructField) -> "Column":
        """Tell whether a text does not fit the column's type."""
        if isinstance(column.dataType, StringType):
            return sf.expr("false")
        there = self._present(text, column)
        is_other = self._typed(there, column.dataType).isNull() | (there != sf.trim(there))
        if self.refuses_codes and isinstance(column.dataType, NumericType):
            is_other |= there.rlike(NUMERIC_CODE)
        return there.isNotNull() & is_other

    def _present(self, text: "Column", column: StructField) -> "Column":
        """Return a text, or null if it stands for null."""
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
        # There is no try_to_timestamp_ntz: try_to_timestamp tells whether the text is a timestamp.
        return sf.when(time.isNotNull(), sf.to_timestamp_ntz(text, sf.lit(pattern)))
