# pyright: basic, reportAttributeAccessIssue=false
"""Mapping between PostgreSQL and Arrow types, and the types that ADBC supports."""

import json
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...batches.frames import times_as_texts

_UTC: Final = "UTC"
_LONGEST: Final = 38
"""The most digits of a 128-bit decimal."""
NATIVE: Final = {
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "bytea": pa.binary(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", _UTC),
}
"""The types that ADBC reads and writes natively, by the catalog's names."""


_ALIKE: Final = frozenset(
    {"bool", "int2", "int4", "int8", "numeric", "text", "varchar", "bytea", "date", "time"}
    | {"timestamp", "timestamptz"}
)
"""The types whose values are the same for Arrow where they are for the server."""
WIDENS: Final = {
    "int2": ("int4", "int8", "numeric"),
    "int4": ("int8", "numeric"),
    "int8": ("numeric",),
    "float4": ("float8",),
    "date": ("timestamp", "timestamptz"),
}
"""The types that a column can be widened to without loss."""


def sql_type_of(kind: pa.DataType) -> str:
    """Return the SQL type of a new column for an Arrow type."""
    if pa.types.is_dictionary(kind):
        return sql_type_of(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{max(kind.scale, 0)})"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if _is_list(kind):
        inner = sql_type_of(kind.value_type)
        return "jsonb" if inner == "jsonb" or inner.endswith("[]") else f"{inner}[]"
    for is_kind, name in _CREATED:
        if is_kind(kind):
            return name
    return "jsonb" if pa.types.is_nested(kind) else "text"


_CREATED: Final = (
    (pa.types.is_boolean, "bool"),
    (lambda kind: kind in (pa.int8(), pa.uint8(), pa.int16()), "int2"),
    (lambda kind: kind in (pa.uint16(), pa.int32()), "int4"),
    (lambda kind: kind in (pa.uint32(), pa.int64()), "int8"),
    (lambda kind: kind == pa.uint64(), "numeric(20,0)"),
    (lambda kind: kind in (pa.float16(), pa.float32()), "float4"),
    (pa.types.is_floating, "float8"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_large_binary, "bytea"),
    (pa.types.is_fixed_size_binary, "bytea"),
)


class StagedColumn(NamedTuple):
    """A column in a staging table; `is_cast`: it is text, and cast when it is published."""

    values: pa.ChunkedArray
    type: str
    is_cast: bool


def staged(column: pa.ChunkedArray, name: str) -> StagedColumn:
    """Convert values for the staging of a target column; `name` is the catalog's name of its type.

    Types that ADBC's COPY can write are staged natively, others as text that the server casts.
    Raises `pa.ArrowInvalid` for a value that the type cannot hold.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return staged(column.cast(kind.value_type), name)
    if _is_list(kind) and name.startswith("_"):
        return _staged_list(column, name[1:])
    if pa.types.is_nested(kind):
        return StagedColumn(_json(column), "text", is_cast=name != "text")
    wanted = _decimal(kind) if name == "numeric" else NATIVE.get(name)
    if wanted is None or (_is_text(kind) and wanted != pa.string()):
        return StagedColumn(_text(column), "text", is_cast=True)
    return StagedColumn(_native(column, wanted), name, is_cast=False)


def longest(column: pa.ChunkedArray) -> int:
    """Return the bytes of the longest text or bytes in a column; 0: there are none."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return longest(column.cast(kind.value_type))
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return pc.max(pc.binary_length(column)).as_py() or 0 if is_bytes or _is_text(kind) else 0


def digits_of(width: int) -> tuple[int, int]:
    """Return the precision and the scale of a numeric with an `atttypmod`."""
    packed = width - 4
    return packed >> 16, (packed & 0x7FF ^ 1024) - 1024


def is_alike(column: StagedColumn, kind: str, width: int) -> bool:
    """Return whether values are the same for Arrow where they are for the server, once staged.

    `kind` and `width` (`atttypmod`) are those of the target column, to which the server rounds.
    """
    if column.is_cast or kind not in _ALIKE:
        return False
    if width < 0:
        return True
    if kind == "numeric":
        return bool(column.values.type.scale <= digits_of(width)[1])
    most = pc.max(pc.utf8_length(column.values)).as_py() if kind == "varchar" else None
    return most is not None and most <= width - 4  # of longer ones it cuts spaces


def _staged_list(column: pa.ChunkedArray, element: str) -> StagedColumn:
    wanted = NATIVE.get(element)
    if wanted is None or pa.types.is_nested(column.type.value_type):
        return StagedColumn(_text(column), "text[]", is_cast=True)
    _refuse_changed(pc.list_flatten(column), wanted)
    return StagedColumn(column.cast(pa.list_(wanted)), f"{element}[]", is_cast=False)


def _native(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    kind = column.type
    if kind == wanted:
        return column
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted):
        return _time(column, wanted)
    if wanted == pa.string():
        return _text(column)
    _refuse_changed(column, wanted)
    return column.cast(wanted)


def _refuse_changed(column: pa.ChunkedArray, wanted: pa.DataType) -> None:
    """Raise `pa.ArrowInvalid` for a value that Arrow's cast would change and PostgreSQL refuses."""
    kind = column.type
    if wanted == pa.float32():
        made = column.cast(wanted, safe=False)
        found = column.cast(pa.float64(), safe=False)
        is_lost = pc.or_(pc.is_inf(made), pc.equal(made, 0))
        is_same = pc.or_(pc.is_inf(found), pc.equal(found, 0))
        _refuse_first(column, pc.and_not(is_lost, is_same), "is out of range")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return
    if pa.types.is_temporal(wanted):
        raise pa.ArrowInvalid("a number is no time: make it one by a transform")
    if pa.types.is_boolean(wanted):
        is_bit = pc.is_in(column.cast(pa.float64(), safe=False), pa.array([0.0, 1.0, None]))
        _refuse_first(column, pc.invert(is_bit), "is neither 0 nor 1")


def _refuse_first(column: pa.ChunkedArray, which: pa.ChunkedArray, why: str) -> None:
    if pc.any(which).as_py():
        raise pa.ArrowInvalid(f"{column.filter(which)[0]} {why}")


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values, or lists of them, as texts.

    Raises `pa.ArrowInvalid` for invalid UTF-8, and for a time that has no text.
    """
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    is_list = _is_list(column.type)
    inner = column.type.value_type if is_list else column.type
    if pa.types.is_time(inner):
        return times_as_texts(column)
    made = column.cast(pa.list_(pa.string()) if is_list else pa.string())
    if pa.types.is_temporal(inner):
        texts = pc.list_flatten(made) if is_list else made
        _refuse_first(texts, pc.starts_with(texts, "<"), "in a time of which there is no text")
    return made


def _decimal(kind: pa.DataType) -> pa.DataType | None:
    """Return the decimal type to stage numbers as; None: floating point, staged as text."""
    if pa.types.is_integer(kind):
        return pa.decimal128(20, 0)
    if not pa.types.is_decimal(kind):
        return None
    wide = pa.types.is_decimal256(kind) and kind.precision > _LONGEST
    return kind if wide else pa.decimal128(kind.precision, max(kind.scale, 0))


def _time(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Convert timestamps to the target's type; a time without a zone is in UTC."""
    if column.type.tz and not wanted.tz:
        return column.cast(pa.timestamp("us", _UTC)).cast(pa.int64()).cast(wanted)
    in_us = column.cast(pa.timestamp("us", column.type.tz))
    return in_us if in_us.type == wanted else in_us.cast(pa.int64()).cast(wanted)


def _json(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = [None if each is None else json.dumps(each, default=str) for each in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
