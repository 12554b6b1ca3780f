# pyright: basic, reportAttributeAccessIssue=false
"""Columns as Arrow knows them, as Spark's DDL; those of parquet files, and which Spark reads."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as papq

from ...spark.spelling import quoted
from ...spi.errors import BadInput


def ddl(schema: pa.Schema) -> str:
    """Return a schema as Spark's DDL."""
    return ", ".join(f"{quoted(field.name)} {spark_type(field.type)}" for field in schema)


def spark_type(kind: pa.DataType) -> str:  # noqa: PLR0911  # one answer per kind of type
    """Return Spark's name of an Arrow type; what Spark has no type for is a STRING."""
    if pa.types.is_struct(kind):
        inner = ", ".join(f"{quoted(field.name)}: {spark_type(field.type)}" for field in kind)
        return f"STRUCT<{inner}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if isinstance(kind, (pa.ListType, pa.LargeListType, pa.FixedSizeListType)):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_fixed_size_binary(kind):
        return "BINARY"
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return "TIMESTAMP_NTZ"
    return "TIMESTAMP" if pa.types.is_timestamp(kind) else _PLAIN.get(kind, "STRING")


_PLAIN = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INT",
    pa.uint32(): "BIGINT",
    pa.uint64(): "DECIMAL(20, 0)",
    pa.float16(): "FLOAT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.date64(): "DATE",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
}


def parquet_columns(file: Path) -> pa.Schema:
    """Return the columns that a parquet file says it has."""
    opened = papq.ParquetFile(file)
    physical = {
        opened.schema.column(i).path: opened.schema.column(i).physical_type
        for i in range(len(opened.schema))
    }
    # INT96 is how Spark writes instants; Arrow shows it without the zone that it implies.
    return pa.schema(
        [
            field.with_type(pa.timestamp("us", "UTC"))
            if physical.get(field.name) == "INT96"
            else field
            for field in opened.schema_arrow
        ]
    )


def rows_of(file: Path) -> int:
    """Return how many rows a parquet file says it has; raises `BadInput`."""
    try:
        return int(papq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{file}: {error}") from error


def refuse_unreadable(schema: pa.Schema) -> pa.Schema:
    """Return a schema of parquet; raises `BadInput` for a type that Spark has no reader for."""
    for field in schema:
        if number := _as_number(field.type):
            raise BadInput(
                f"column {quoted(field.name)} is {field.type}, which Spark does not read; name "
                f"all columns in `source.schema`, this one as {number}"
            )
    return schema


def _as_number(kind: pa.DataType) -> str:
    """Return as what Spark reads a type that it does not know; empty: it knows the type."""
    if pa.types.is_time32(kind):
        return "INT, which is its milliseconds"
    if pa.types.is_time(kind):
        return f"BIGINT, which is its {'nano' if kind.unit == 'ns' else 'micro'}seconds"
    return ""


def is_of_nanoseconds(kind: pa.DataType) -> bool:
    """Tell whether a type is that of times which Spark reads as numbers alone."""
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")
