# pyright: basic, reportAttributeAccessIssue=false
"""The schemas of parquet files, and the types that Spark reads with others than they have.

Spark reads times of nanoseconds as numbers and a UUID as bytes, which `filling` converts, and a
column of parquet's type for nulls as any INT.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as papq
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ..engines.spelling import quoted
from ..spi.errors import BadInput
from .evolution.arrow_columns import MOST_DIGITS, is_list

_INSTANT = pa.timestamp("us", "UTC")


def parquet_columns(file: Path) -> pa.Schema:
    """Read the columns of a parquet file from its footer."""
    opened = papq.ParquetFile(file)
    leaves = (opened.schema.column(at).physical_type for at in range(len(opened.schema)))
    return pa.schema([each.with_type(_stored(each.type, leaves)) for each in opened.schema_arrow])


def _stored(kind: pa.DataType, leaves: Iterator[str]) -> pa.DataType:
    """Return a type with instants for INT96; `leaves` are the physical types in its order.

    Spark writes instants as INT96; Arrow shows them without the implied UTC.
    """
    if isinstance(kind, pa.BaseExtensionType) and not _is_uuid(kind):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_stored(each.type, leaves)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type, leaves), _stored(kind.item_type, leaves))
    if is_list(kind):
        return pa.list_(_stored(kind.value_type, leaves))
    return _INSTANT if next(leaves) == "INT96" else kind


def with_values(kind: pa.DataType) -> pa.DataType | None:
    """Return a type without parts that can hold no value; None: nothing is left."""
    if pa.types.is_struct(kind):
        kept = [(each, with_values(each.type)) for each in kind]
        fields = [each.with_type(inner) for each, inner in kept if inner is not None]
        return pa.struct(fields) if fields else None
    if pa.types.is_map(kind):
        items = with_values(kind.item_type)
        return None if items is None else pa.map_(kind.key_type, items)
    if is_list(kind):
        inner = with_values(kind.value_type)
        return None if inner is None else pa.list_(inner)
    return None if pa.types.is_null(kind) else kind


def type_to_read(wanted: DataType, stored: pa.DataType) -> DataType:
    """Return the type that Spark reads a stored type with, for a column of the schema."""
    if isinstance(wanted, StructType) and pa.types.is_struct(stored):
        theirs = {each.name.lower(): each.type for each in stored}
        return StructType([field_to_read(each, theirs) for each in wanted.fields])
    if isinstance(wanted, ArrayType) and is_list(stored):
        return ArrayType(type_to_read(wanted.elementType, stored.value_type))
    if isinstance(wanted, MapType) and pa.types.is_map(stored):
        key = type_to_read(wanted.keyType, stored.key_type)
        return MapType(key, type_to_read(wanted.valueType, stored.item_type))
    is_time = isinstance(wanted, (TimestampType, TimestampNTZType))
    if is_time and pa.types.is_timestamp(stored) and stored.unit == "ns":
        return LongType()
    if isinstance(wanted, StringType) and _is_uuid(stored):
        return BinaryType()
    return IntegerType() if pa.types.is_null(stored) else wanted


def field_to_read(wanted: StructField, theirs: Mapping[str, pa.DataType]) -> StructField:
    """Return a column as Spark reads it; `theirs`: the stored types, by names in lower case."""
    stored = theirs.get(wanted.name.lower())
    kind = wanted.dataType if stored is None else type_to_read(wanted.dataType, stored)
    return StructField(wanted.name, kind)


def is_converted(kind: pa.DataType) -> bool:
    """Return whether Spark may read a type, or a part of it, as another type."""
    inner = _parts(kind)
    if inner:
        return any(map(is_converted, inner))
    is_fine = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return bool(is_fine or _is_uuid(kind) or pa.types.is_null(kind))


def refuse_unreadable(schema: pa.Schema) -> pa.Schema:
    """Return the schema; raises `BadInput` for a parquet type that Spark cannot read."""
    for field in schema:
        if kind := next(filter(_way_out, _leaves(field.type)), None):
            within = "" if kind == field.type else " in it"
            raise BadInput(
                f"column {quoted(field.name)} is {kind}{within}, which Spark cannot read; give "
                f"all columns in `source.schema`, this one as {_way_out(kind)}"
            )
    return schema


def _way_out(kind: pa.DataType) -> str:
    """Return the type that Spark can read a type as that it does not have; empty: it has it."""
    if pa.types.is_time32(kind):
        return "INT, which is its milliseconds"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        units = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
        return f"BIGINT, which is its {units[kind.unit]}"
    if pa.types.is_float16(kind):
        return "BINARY, which is its two bytes, or write it as FLOAT"
    if pa.types.is_decimal(kind) and kind.precision > MOST_DIGITS:
        return f"BINARY, which is its unscaled number, or write it with {MOST_DIGITS} digits"
    return ""


def find_zone_clash(one: pa.DataType, other: pa.DataType, path: str) -> str:
    """Return the path of a time that is in UTC in one type and has no zone in the other."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        theirs = {each.name.lower(): each.type for each in other}
        pairs = (
            find_zone_clash(each.type, theirs[each.name.lower()], f"{path}.{each.name}")
            for each in one
            if each.name.lower() in theirs
        )
        return next(filter(None, pairs), "")
    if pa.types.is_map(one) and pa.types.is_map(other):
        return find_zone_clash(one.item_type, other.item_type, path)
    if is_list(one) and is_list(other):
        return find_zone_clash(one.value_type, other.value_type, path)
    both = pa.types.is_timestamp(one) and pa.types.is_timestamp(other)
    return path if both and bool(one.tz) != bool(other.tz) else ""


def refuse_zone_clash(one: pa.Schema, other: pa.Schema, file: Path) -> None:
    """Raise `BadInput` if times of a column are in UTC in some files only."""
    ours, theirs = (pa.struct([*each]) for each in (one, other))
    if path := find_zone_clash(ours, theirs, "").removeprefix("."):
        raise BadInput(
            f"{file}: column {quoted(path)} has times in UTC in some files, and times without a "
            "time zone in others (isAdjustedToUTC): give all columns in `source.schema`, this one "
            "as TIMESTAMP, which takes all of them as times in UTC, or as TIMESTAMP_NTZ; or write "
            "the files alike"
        )


def rows_of(file: Path) -> int:
    """Read the number of rows of a parquet file from its footer; raises `BadInput`."""
    try:
        return int(papq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{file}: {error}") from error


def _is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.UuidType)


def _parts(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_struct(kind):
        return [each.type for each in kind]
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.value_type] if is_list(kind) or pa.types.is_dictionary(kind) else []


def _leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    inner = _parts(kind)
    if not inner:
        yield kind
    for each in inner:
        yield from _leaves(each)
