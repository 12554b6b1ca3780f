# pyright: basic
"""Small integers in parquet: Spark cuts numbers that do not fit them, without a word.

Its reader takes any INT for a TINYINT or a SMALLINT. So such columns are read with a wider type,
and compared (`json_values` does it for JSON). A column with a map is left as it is, since Spark
compares no maps.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    ShortType,
    StructField,
    StructType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

Wider = Mapping[type[DataType], DataType]
"""The types to read other types with."""

IN_PARQUET: Final[Wider] = {ByteType: IntegerType(), ShortType: IntegerType()}


def widened(schema: StructType, wider: Wider = IN_PARQUET) -> StructType:
    """Return the schema to read with."""
    fields = ((each.name, _wide(each.dataType, wider), each.nullable) for each in schema.fields)
    return StructType([StructField(*each) for each in fields])


def is_widened(kind: DataType, wider: Wider = IN_PARQUET) -> bool:
    """Tell whether a column of a type is read with another one."""
    return _wide(kind, wider) != kind


def is_misfit(value: "Column", kind: DataType, wider: Wider = IN_PARQUET) -> "Column":
    """Tell whether a value that was read with a wider type does not fit its column's."""
    return ~value.eqNullSafe(value.try_cast(kind).cast(_wide(kind, wider)))


def _wide(kind: DataType, wider: Wider) -> DataType:
    return kind if "map<" in kind.simpleString() else _within(kind, wider)


def _within(kind: DataType, wider: Wider) -> DataType:
    if isinstance(kind, ArrayType):
        return ArrayType(_within(kind.elementType, wider), kind.containsNull)
    if isinstance(kind, StructType):
        fields = [(each.name, _within(each.dataType, wider), each.nullable) for each in kind.fields]
        return StructType([StructField(*each) for each in fields])
    return wider.get(type(kind), kind)
