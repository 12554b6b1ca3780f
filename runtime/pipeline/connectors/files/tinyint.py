# pyright: basic
"""TINYINT in JSON: Spark's parser takes 128 to 255 for one, and makes them negative.

So such a column is read as SMALLINT, and its values are compared with their TINYINT. A column with
a map is left as it is, since Spark compares no maps.
"""

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    ShortType,
    StructField,
    StructType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column


def widened(schema: StructType) -> StructType:
    """Return the schema to read JSON with."""
    fields = ((each.name, _wide(each.dataType), each.nullable) for each in schema.fields)
    return StructType([StructField(*each) for each in fields])


def is_widened(kind: DataType) -> bool:
    """Tell whether a column of a type is read with another one."""
    return _wide(kind) != kind


def is_misfit(value: "Column", kind: DataType) -> "Column":
    """Tell whether a value that was read with a wider type does not fit its column's."""
    return ~value.eqNullSafe(value.try_cast(kind).cast(_wide(kind)))


def _wide(kind: DataType) -> DataType:
    return kind if "map<" in kind.simpleString() else _short(kind)


def _short(kind: DataType) -> DataType:
    if isinstance(kind, ByteType):
        return ShortType()
    if isinstance(kind, ArrayType):
        return ArrayType(_short(kind.elementType), kind.containsNull)
    if isinstance(kind, StructType):
        fields = [(each.name, _short(each.dataType), each.nullable) for each in kind.fields]
        return StructType([StructField(*each) for each in fields])
    return kind
