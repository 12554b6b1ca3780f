"""Projection of parquet and csv rows to a schema: adds columns, and converts values of parquet."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ...engines.spelling import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Spark's timestamps have microseconds: nanoseconds are rounded down.
_MICROS: Final = "({0} - pmod({0}, 1000)) div 1000"
_SECONDS: Final = f"CAST(CAST({_MICROS} AS DECIMAL(20, 0)) * 0.000001BD AS DECIMAL(18, 6))"
_ZONELESS: Final = f"timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {_SECONDS})"


_DASHED: Final = (
    "lower(regexp_replace(hex({0}), '(.{{8}})(.{{4}})(.{{4}})(.{{4}})', '$1-$2-$3-$4-'))"
)


def fill_columns(frame: "DataFrame", schema: StructType, *, is_exact: bool = False) -> "DataFrame":
    """Return rows with all columns of a schema, in its order; missing columns are null.

    A BIGINT for a timestamp is a number of nanoseconds, a BINARY for a text is a UUID, and an INT
    for any other type is null; so at any depth. `is_exact`: names of other case are other columns.
    """
    spelt = str if is_exact else str.lower
    there = {spelt(each.name): each for each in frame.schema.fields}
    return frame.select(*(_column(each, there.get(spelt(each.name))) for each in schema.fields))


def _column(wanted: StructField, read: StructField | None) -> "Column":
    if read is None:
        return sf.lit(None).cast(wanted.dataType).alias(wanted.name)
    name = quoted(wanted.name)
    converted = _value(name, wanted.dataType, read.dataType)
    return (sf.col(name) if converted == name else sf.expr(converted)).alias(wanted.name)


def _value(sql: str, wanted: DataType, read: DataType) -> str:
    """Return the expression that converts a value."""
    if wanted.simpleString() == read.simpleString():
        return sql
    if isinstance(wanted, StructType) and isinstance(read, StructType):
        theirs = {each.name.lower(): each.dataType for each in read.fields}
        converted = ", ".join(
            f"{literal(each.name)}, "
            + _value(f"{sql}.{quoted(each.name)}", each.dataType, theirs[each.name.lower()])
            for each in wanted.fields
        )
        return f"IF({sql} IS NULL, NULL, named_struct({converted}))"
    if isinstance(wanted, ArrayType) and isinstance(read, ArrayType):
        return _transformed(sql, _value("one", wanted.elementType, read.elementType))
    if isinstance(wanted, MapType) and isinstance(read, MapType):
        keys = _value("name", wanted.keyType, read.keyType)
        values = _value("one", wanted.valueType, read.valueType)
        converted = f"transform_values({sql}, (name, one) -> {values})"
        return f"transform_keys({converted}, (name, one) -> {keys})"
    return _leaf(sql, wanted, read)


def _transformed(sql: str, each: str) -> str:
    """Return the expression that converts the elements, `one`, of a list.

    It copies the list: a number of a parquet file that is null is looked up in the dictionary of
    its column by `transform`, which fails where all are null.
    """
    return f"transform(slice({sql}, 1, size({sql})), one -> {each})"


def _leaf(sql: str, wanted: DataType, read: DataType) -> str:
    if isinstance(read, LongType) and isinstance(wanted, TimestampType):
        return f"timestamp_micros({_MICROS.format(sql)})"
    if isinstance(read, LongType) and isinstance(wanted, TimestampNTZType):
        return _ZONELESS.format(sql)
    if isinstance(read, BinaryType) and isinstance(wanted, StringType):
        return _DASHED.format(sql)
    return f"CAST(NULL AS {wanted.simpleString()})"
