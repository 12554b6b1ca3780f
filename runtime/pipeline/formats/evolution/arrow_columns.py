# pyright: basic, reportAttributeAccessIssue=false
"""Conversion of Arrow schemas to Spark's DDL."""

from typing import Final

import pyarrow as pa

from ...engines.spelling import quoted

MOST_DIGITS: Final = 38
"""The most digits of a decimal in Spark."""


def to_ddl(schema: pa.Schema) -> str:
    """Return a schema as Spark's DDL."""
    return ", ".join(f"{quoted(field.name)} {spark_type(field.type)}" for field in schema)


def spark_type(kind: pa.DataType) -> str:
    """Return Spark's name of an Arrow type; STRING if Spark has no such type."""
    if isinstance(kind, pa.BaseExtensionType):
        return "STRING" if isinstance(kind, pa.UuidType) else spark_type(kind.storage_type)
    if pa.types.is_struct(kind):
        inner = ", ".join(f"{quoted(field.name)}: {spark_type(field.type)}" for field in kind)
        return f"STRUCT<{inner}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    return spark_type(kind.value_type) if pa.types.is_dictionary(kind) else _plain_type(kind)


def _plain_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind) and kind.precision <= MOST_DIGITS:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
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
    pa.binary_view(): "BINARY",
}


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is a list of any form."""
    return isinstance(kind, _LISTS)


_LISTS: Final = (
    *(pa.ListType, pa.LargeListType, pa.FixedSizeListType),
    *(pa.ListViewType, pa.LargeListViewType),
)
