# pyright: basic, reportAttributeAccessIssue=false
"""Records that cannot be decoded: their errors, and their rows as rejects."""

from collections.abc import Container, Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from ....spi.rows import Rejects
from .reader import HEADER_FLAW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED: Final = "the record of {} at offset {}: {}"
"""The error for a record that cannot be decoded."""
PLACE: Final = ("_topic", "_partition", "_offset")
POSITION: Final = ("topic", "partition", "offset")


def record_error(table: pa.Table, row: int, why: str) -> str:
    """Return the error of a record, with topic, partition and offset."""
    topic, partition, offset = (table[name][row].as_py() for name in PLACE)
    return NAMED.format(f"{topic}-{partition}", offset, why)


def reject_records(
    spark: "SparkSession", table: pa.Table, rows: Mapping[int, str], text_format: str | None = None
) -> Rejects:
    """Return records, given by row number with the reason, as rejects.

    `text_format` is how their texts are read again; None: nobody does.
    """
    part = table.take(list(rows))
    places = (part[name].cast(pa.string()).to_pylist() for name in PLACE)
    position = [list(zip(POSITION, each, strict=True)) for each in zip(*places, strict=True)]
    letters = pa.table(
        {
            "position": pa.array(position, pa.map_(pa.string(), pa.string())),
            "reason": pa.array(rows.values(), pa.string()),
            "raw": as_text(part["_value"]),
            "format": pa.array([text_format] * len(rows), pa.string()),
        }
    )
    return Rejects(spark.createDataFrame(letters), lambda: len(rows))


def without_rows(table: pa.Table, rows: Container[int]) -> pa.Table:
    """Return a table without some of its rows, perhaps all."""
    return table.filter(pa.array([row not in rows for row in range(table.num_rows)], pa.bool_()))


def with_records(rejects: Rejects, records: pa.Table) -> Rejects:
    """Return rejects with their records as they came: key, value, timestamp and headers.

    What has unreadable headers is not read again: its row might need them.
    """
    letters = rejects.frame
    columns = {each: records[f"_{each}"] for each in ("key", "value", *POSITION)}
    columns["sent_ms"] = records["_timestamp"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
    columns["record_headers"] = records["_headers"]
    columns[HEADER_FLAW] = records[HEADER_FLAW]
    originals = letters.sparkSession.createDataFrame(pa.table(columns))
    is_same = (letters["position"][each] == originals[each].cast("string") for each in POSITION)
    joined = letters.join(originals, reduce(and_, is_same), "left").drop(*POSITION)
    if "format" in letters.columns:
        joined = joined.withColumn("format", sf.when(sf.isnull(HEADER_FLAW), sf.col("format")))
    joined = joined.drop(HEADER_FLAW)
    return Rejects(joined, rejects.count)


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return bytes as text; invalid UTF-8 becomes U+FFFD, as in Kafka's own deserializer."""
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        texts = [each and each.decode(errors="replace") for each in values.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
