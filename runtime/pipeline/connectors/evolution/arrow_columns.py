# pyright: basic, reportAttributeAccessIssue=false
"""Conversion of Arrow schemas to Spark's DDL, and the schemas of parquet files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as papq

from ...spark.spelling import quoted
from ...spi.errors import BadInput


def to_ddl(schema: pa.Schema) -> str:
    """Return a schema as Spark's DDL."""
    return ", ".join(f"{quoted(field.name)} {spark_type(field.type)}" for field in schema)


def spark_type(kind: pa.DataType) -> str:  # noqa: PLR0911  # one answer per kind of type
    """Return Spark's name of an Arrow type; STRING if Spark has no such type."""
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
    """Read the columns of a parquet file from its footer."""
    opened = papq.ParquetFile(file)
    physical = {
        opened.schema.column(i).path: opened.schema.column(i).physical_type
        for i in range(len(opened.schema))
    }
    # Spark writes instants as INT96; Arrow shows them without the implied UTC.
    return pa.schema(
        [
            field.with_type(pa.timestamp("us", "UTC"))
            if physical.get(field.name) == "INT96"
            else field
            for field in opened.schema_arrow
        ]
    )


def rows_of(file: Path) -> int:
    """Read the number of rows of a parquet file from its footer; raises `BadInput`."""
    try:
        return int(papq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{file}: {error}") from error


def refuse_unreadable(schema: pa.Schema) -> pa.Schema:
    """Return the schema; raises `BadInput` for a parquet type that Spark cannot read."""
    for field in schema:
        if number := _as_number(field.type):
            raise BadInput(
                f"column {quoted(field.name)} is {field.type}, which Spark cannot read; give "
                f"all columns in `source.schema`, this one as {number}"
            )
    return schema


def _as_number(kind: pa.DataType) -> str:
    """Return the number type that Spark can read a TIME as; empty for other types."""
    if pa.types.is_time32(kind):
        return "INT, which is its milliseconds"
    if pa.types.is_time(kind):
        return f"BIGINT, which is its {'nano' if kind.unit == 'ns' else 'micro'}seconds"
    return ""


def is_of_nanoseconds(kind: pa.DataType) -> bool:
    """Tell whether a type is a timestamp in nanoseconds, which Spark reads as a number."""
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")
