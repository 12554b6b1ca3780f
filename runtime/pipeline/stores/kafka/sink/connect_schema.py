# pyright: basic
"""Conversion of Arrow types to Connect's JSON schemas, and of values to their encoding."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ....spi.errors import RowsRefused, SchemaRefused

_PLAIN: Final = {
    pa.int8(): "int8",
    pa.int16(): "int16",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.uint8(): "int16",
    pa.uint16(): "int32",
    pa.uint32(): "int64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
}
_DATE: Final = "org.apache.kafka.connect.data.Date"
_TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"


def envelope_of(columns: pa.Table, *, is_lone: bool) -> tuple[dict[str, Any], pa.Table]:
    """Return the schema of rows, and the rows with times as numbers.

    Raises `SchemaRefused`, and `RowsRefused` for a time that has more than milliseconds.

    A Decimal is written as a number, which Connect's JsonConverter reads with any `decimal.format`.
    """
    fields = [_field(each.name, each.type) for each in columns.schema]
    numbers = pa.table(
        {name: _numbers(columns[name], name) for name in columns.column_names},
    )
    if is_lone:
        lone = {key: value for key, value in fields[0].items() if key != "field"}
        return lone, numbers
    return {"type": "struct", "optional": False, "fields": fields}, numbers


def _field(name: str, kind: pa.DataType) -> dict[str, Any]:
    return {"field": name, "optional": True, **_type(kind, name)}


def _type(kind: pa.DataType, name: str) -> dict[str, Any]:  # noqa: PLR0911  # one for each kind
    if plain := _PLAIN.get(kind):
        return {"type": plain}
    if pa.types.is_date32(kind):
        return {"type": "int32", "name": _DATE, "version": 1}
    if pa.types.is_timestamp(kind):
        return {"type": "int64", "name": _TIMESTAMP, "version": 1}
    if pa.types.is_decimal(kind):
        parameters = {"scale": str(kind.scale)}
        return {"type": "bytes", "name": _DECIMAL, "version": 1, "parameters": parameters}
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field(each.name, each.type) for each in kind]}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": {"optional": True, **_type(kind.value_type, name)}}
    if pa.types.is_map(kind):
        values = {"optional": True, **_type(kind.item_type, name)}
        return {"type": "map", "keys": _type(kind.key_type, name), "values": values}
    raise SchemaRefused(f"Connect has no type for column {name}: {kind}")


def _numbers(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a column with its dates as days and its times as milliseconds since 1970."""
    millis, plain = _as(column.type, pa.timestamp("ms")), _as(column.type, pa.int64())
    if plain == column.type:
        return column
    if pa.types.is_nested(column.type):  # a copy: a cast looks at what lies beside a slice, too
        column = column.take(pa.array(range(len(column)), pa.int64()))
    try:
        return pc.cast(pc.cast(column, millis), plain)
    except pa.ArrowInvalid:
        raise RowsRefused(
            f"column {name}: a time has microseconds, and Connect's Timestamp has milliseconds: "
            f"cut them by a transform (date_trunc('MILLISECOND', {name})), or write it as Avro or "
            "without schemas"
        ) from None


def _as(kind: pa.DataType, time: pa.DataType) -> pa.DataType:
    """Return a type with its times replaced by `time`; dates become int32 if `time` is a number."""
    if pa.types.is_timestamp(kind):
        return time
    if pa.types.is_date32(kind):
        return pa.int32() if pa.types.is_integer(time) else kind
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_as(each.type, time)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(_as(kind.value_type, time))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _as(kind.item_type, time))
    return kind
