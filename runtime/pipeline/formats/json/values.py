# pyright: basic
"""Json values that Spark's parser would change are read with another type, and converted.

Times are read as texts, and so are fractions where one may be out of range, or stand in quotes. A
TINYINT is read as a wider type, since the parser takes 128 to 255 for negative numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from ..spark.text_values import TIMES, TextValues

if TYPE_CHECKING:
    from pyspark.sql import Column


OF_RECORDS: Final = (FloatType, DoubleType)
"""The fractions that `from_json` can read as texts: a number comes as the text of its DOUBLE."""
OF_FILES: Final = (*OF_RECORDS, DecimalType)
"""Those of the reader of files, for which a number is the text that stands there."""


@dataclass(frozen=True, slots=True)
class JsonValues:
    """The types to read json with, and the values of what was read."""

    texts: TextValues
    """The language of values that are read as texts."""
    fractions: tuple[type[DataType], ...] = ()
    """The types of fractions that are read as texts, which costs more."""

    def schema_to_read(self, schema: StructType) -> StructType:
        """Return the schema to read with."""
        fields = [(each.name, self._type(each.dataType), each.nullable) for each in schema.fields]
        return StructType([StructField(*each) for each in fields])

    def converted(self, schema: StructType) -> list[StructField]:
        """Return the fields that are read with another type."""
        return [each for each in schema.fields if self._is_converted(each.dataType)]

    def value(self, read: "Column", kind: DataType) -> "Column":
        """Return the value of a parsed field; any value if it does not fit the type."""
        if not self._is_converted(kind):
            return read
        if isinstance(kind, StructType):
            fields = (self.value(read.getField(f.name), f.dataType).alias(f.name) for f in kind)
            return sf.when(read.isNotNull(), sf.struct(*fields))
        if isinstance(kind, ArrayType):
            return sf.transform(read, lambda each: self.value(each, kind.elementType))
        if isinstance(kind, MapType):
            return sf.transform_values(read, lambda _, each: self.value(each, kind.valueType))
        return read.try_cast(kind) if isinstance(kind, ByteType) else self.texts.value(read, kind)

    def is_misfit(self, read: "Column", kind: DataType) -> "Column":
        """Return whether a parsed field does not fit the type; never null."""
        if isinstance(kind, StructType):
            fields = (f for f in kind.fields if self._is_converted(f.dataType))
            misfits = (self.is_misfit(read.getField(f.name), f.dataType) for f in fields)
            return reduce(or_, misfits)
        if isinstance(kind, ArrayType):
            return self._has_misfit(read, kind.elementType)
        if isinstance(kind, MapType):
            return self._has_misfit(sf.map_values(read), kind.valueType)
        if isinstance(kind, ByteType):
            return read.isNotNull() & read.try_cast(kind).isNull()
        return self.texts.is_misfit(read, kind)

    def hint(self, read: "Column", kind: DataType) -> "Column":
        """Return a hint about a text that does not fit; empty: there is none."""
        return self.texts.hint(read, kind)

    def _has_misfit(self, values: "Column", kind: DataType) -> "Column":
        is_any: Callable[[Column], Column] = lambda each: self.is_misfit(each, kind)  # noqa: E731
        return sf.coalesce(sf.exists(values, is_any), sf.lit(False))  # noqa: FBT003

    def _is_converted(self, kind: DataType) -> bool:
        return self._type(kind) != kind

    def _type(self, kind: DataType) -> DataType:
        if isinstance(kind, ArrayType):
            return ArrayType(self._type(kind.elementType), kind.containsNull)
        if isinstance(kind, MapType):
            return MapType(kind.keyType, self._type(kind.valueType), kind.valueContainsNull)
        if isinstance(kind, StructType):
            return self.schema_to_read(kind)
        if isinstance(kind, ByteType):
            return ShortType()
        return StringType() if isinstance(kind, (*self.fractions, *TIMES)) else kind
