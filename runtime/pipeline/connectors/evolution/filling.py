"""Projection of parquet and csv rows to a schema: adds the columns that a file lacks."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType, TimestampNTZType, TimestampType

from ...spark.spelling import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Spark's timestamps have microseconds: nanoseconds are rounded down.
_MICROS: Final = "({0} - pmod({0}, 1000)) div 1000"
_SECONDS: Final = f"CAST(CAST({_MICROS} AS DECIMAL(20, 0)) * 0.000001BD AS DECIMAL(18, 6))"
_ZONELESS: Final = f"timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {_SECONDS})"


def fill_columns(frame: "DataFrame", schema: StructType) -> "DataFrame":
    """Return rows with all columns of a schema, in its order; missing columns are null.

    A BIGINT for a timestamp column is a number of nanoseconds.
    """
    there = {each.name.lower(): each for each in frame.schema.fields}
    return frame.select(*(_column(each, there.get(each.name.lower())) for each in schema.fields))


def _column(wanted: StructField, read: StructField | None) -> "Column":
    if read is None:
        return sf.lit(None).cast(wanted.dataType).alias(wanted.name)
    name = quoted(wanted.name)
    if isinstance(read.dataType, LongType) and isinstance(wanted.dataType, TimestampType):
        return sf.expr(f"timestamp_micros({_MICROS.format(name)})").alias(wanted.name)
    if isinstance(read.dataType, LongType) and isinstance(wanted.dataType, TimestampNTZType):
        return sf.expr(_ZONELESS.format(name)).alias(wanted.name)
    return sf.col(name).alias(wanted.name)
