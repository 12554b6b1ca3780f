# pyright: basic, reportAttributeAccessIssue=false
"""Spark frames of rows that a worker holds in Arrow, with the same values.

PySpark takes a time without a zone as one in the session's zone, whose clock may skip or repeat it,
unless it is told the type. Spark's readers, writers and transforms take no times of day, so these
become texts.
"""

from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import (
    from_arrow_schema,  # pyright: ignore[reportUnknownVariableType]
)

from ..spi.rows import ArrowTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DAY_END: Final = "24:00:00.000000"
_DAY_US: Final = 86_400_000_000


def frame_of(spark: "SparkSession", table: ArrowTable) -> "DataFrame":
    """Return rows as a frame; times without a zone stay so, and times of day are texts."""
    sent: Any = table
    for at, (name, kind) in enumerate(zip(sent.schema.names, sent.schema.types, strict=True)):
        if _has_times(kind):
            sent = sent.set_column(at, name, times_as_texts(sent.column(at)))
    schema = from_arrow_schema(sent.schema, prefer_timestamp_ntz=True)
    return cast("DataFrame", cast("Any", spark).createDataFrame(sent, schema))


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
    found: list[Any] = numbers.to_pylist()
    texts = [[*map(_text, each)] if is_list and each is not None else _text(each) for each in found]
    return pa.chunked_array([pa.array(texts, pa.list_(pa.string()) if is_list else pa.string())])


def _text(micros: int | None) -> str | None:
    if micros is None or micros == _DAY_US:
        return None if micros is None else _DAY_END
    return str(pa.scalar(micros, pa.int64()).cast(pa.time64("us")).cast(pa.string()))


def _has_times(kind: pa.DataType) -> bool:
    return bool(pa.types.is_time(kind) or (_is_list(kind) and pa.types.is_time(kind.value_type)))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
