# pyright: basic, reportAttributeAccessIssue=false
"""Rows as a Spark frame and as an Arrow table that this process holds: conversions both ways.

PySpark takes a time without a zone as one in the session's zone, whose clock may skip or repeat it,
unless it is told the type. Spark's readers, writers and transforms take no times of day, so these
become texts.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas import conversion
from pyspark.sql.pandas.types import (
    from_arrow_schema,  # pyright: ignore[reportUnknownVariableType]
    to_arrow_schema,  # pyright: ignore[reportUnknownVariableType]
)
from pyspark.sql.utils import is_remote

from ..spi.rows import ArrowSchema, ArrowTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_DAY_END: Final = "24:00:00.000000"
_DAY_US: Final = 86_400_000_000
_PLAIN: Final = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.date32()),
)
"""Types whose values Spark takes from Arrow as they are."""
_IS_NAMED: Final = "timezone" in signature(cast("Any", to_arrow_schema)).parameters
_UTC: Final[Mapping[str, Any]] = {"timezone": "UTC"} if _IS_NAMED else {}
"""The time zone of timestamps, UTC: PySpark asks for it from 4.2 on, and takes UTC before."""

# PySpark's own walks through the stack, and asks the JVM twice, to show on Spark's pages by which
# line of Python a job was begun: that takes a twentieth of what Python does for a small batch.
cast("Any", conversion).SCCallSiteSync = nullcontext


def frame_of(spark: "SparkSession", table: ArrowTable) -> "DataFrame":
    """Return rows as a frame; times without a zone stay so, and times of day are texts."""
    sent = _without_times(table)
    rows = sent if sent.num_rows else []  # PySpark takes no column of lists without a chunk
    return cast("DataFrame", cast("Any", spark).createDataFrame(rows, _spark_schema_of(sent)))


def spark_schema_of(table: ArrowTable) -> "StructType":
    """Return the columns that `frame_of` makes of rows, without Spark."""
    return _spark_schema_of(_without_times(table))


def plain_rows_of(table: ArrowTable) -> ArrowTable | None:
    """Return rows with the types that `rows_of` gives them from `frame_of`, without Spark.

    None: only Spark can tell, since they have columns of types that are not plain.
    """
    if not all(map(_is_plain, cast("Any", table).schema.types)):
        return None
    try:
        return typed_rows_of(table)
    except pa.ArrowInvalid:  # for example a time that microseconds cannot tell
        return None


def typed_rows_of(table: ArrowTable) -> ArrowTable:
    """Return rows with Spark's types, without Spark; raises `pa.ArrowInvalid`."""
    sent = _without_times(table)
    return cast("ArrowTable", sent.cast(arrow_schema_of(_spark_schema_of(sent))))


def rows_of(frame: "DataFrame") -> ArrowTable:
    """Run a frame, and return its rows in the memory of this process.

    PySpark's `toArrow` asks the JVM for two settings first, which takes as many calls as the rest.
    """
    untyped: Any = frame
    if is_remote():
        return cast("ArrowTable", untyped.toArrow())
    parts = untyped._collect_as_arrow(empty_list_if_zero_records=False)  # noqa: SLF001
    table = cast("Any", pa).Table.from_batches(parts)
    return cast("ArrowTable", table.cast(arrow_schema_of(untyped.schema)))


def arrow_schema_of(schema: "StructType") -> ArrowSchema:
    """Convert a Spark schema to Arrow's types; timestamps with a zone are in UTC."""
    return cast("ArrowSchema", to_arrow_schema(schema, **_UTC))


def times_as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times of day, or lists of them, as texts; among them may be 24:00:00.

    Arrow itself writes that it is out of range.
    """
    is_list = _is_list(column.type)
    numbers = column.cast(pa.time64("us") if not is_list else pa.list_(pa.time64("us")))
    numbers = numbers.cast(pa.list_(pa.int64()) if is_list else pa.int64())
    ends = pc.equal(pc.list_flatten(numbers) if is_list else numbers, _DAY_US)
    if not pc.any(ends).as_py():
        return column.cast(pa.list_(pa.string()) if is_list else pa.string())
    values: list[Any] = numbers.to_pylist()
    texts = [
        [*map(_text, each)] if is_list and each is not None else _text(each) for each in values
    ]
    return pa.chunked_array([pa.array(texts, pa.list_(pa.string()) if is_list else pa.string())])


def _spark_schema_of(sent: Any) -> "StructType":  # noqa: ANN401  # a table of pyarrow
    return from_arrow_schema(sent.schema, prefer_timestamp_ntz=True)


def _without_times(table: ArrowTable) -> Any:  # noqa: ANN401  # a table of pyarrow
    """Return rows with times of day as texts."""
    sent: Any = table
    for at, (name, kind) in enumerate(zip(sent.schema.names, sent.schema.types, strict=True)):
        if _has_times(kind):
            sent = sent.set_column(at, name, times_as_texts(sent.column(at)))
    return sent


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether Arrow and Spark convert all values of a type alike."""
    is_decimal = pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision
    is_time = pa.types.is_timestamp(kind) and kind.unit != "ns"
    return is_decimal or is_time or pa.types.is_time(kind) or kind in _PLAIN


def _text(micros: int | None) -> str | None:
    if micros is None or micros == _DAY_US:
        return None if micros is None else _DAY_END
    return str(pa.scalar(micros, pa.int64()).cast(pa.time64("us")).cast(pa.string()))


def _has_times(kind: pa.DataType) -> bool:
    return bool(pa.types.is_time(kind) or (_is_list(kind) and pa.types.is_time(kind.value_type)))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
