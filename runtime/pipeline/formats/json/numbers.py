# pyright: basic
"""Finds numbers of json that their type cannot hold, before `from_json` makes other values of them.

It takes 1e400 for Infinity, and a DECIMAL with an exponent of millions takes it minutes. Unlike the
reader of files it does not keep the text of a number, which could be looked at afterwards. Only
values that may have such a number need this look: it is slow.
"""

import json
from collections.abc import Iterator, Mapping
from math import isinf
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
)

_LARGEST_FLOAT: Final = float.fromhex("0x1.ffffffp+127")
"""From here on a number is rounded to a FLOAT's Infinity."""
_SMALLEST_FLOAT: Final = float.fromhex("0x1p-150")
"""Up to here a number is rounded to a FLOAT's zero."""
_MOST_DIGITS: Final = 1_000
_MOST_EXPONENT: Final = 3
"""The most digits of an exponent of a DECIMAL."""
_SHOWN: Final = 100


class _Number(str):
    """The text of a number."""

    __slots__ = ()


def find_number_flaws(
    values: pa.ChunkedArray, flaws: pa.ChunkedArray, schema: StructType
) -> pa.ChunkedArray:
    """Return the reason why each json object must not be parsed; null if it may.

    `flaws` has the reasons that are known already.
    """
    pairs = zip(flaws.to_pylist(), values.to_pylist(), strict=True)
    found = [why or (each and number_flaw(each, schema)) for why, each in pairs]
    return pa.chunked_array([pa.array(found, pa.string())])


def number_flaw(text: bytes, schema: StructType) -> str | None:
    """Return why a json object must not be parsed: a number that its column cannot hold."""
    try:
        found = json.loads(text, parse_float=_Number, parse_int=_Number)
    except (ValueError, RecursionError):
        return None  # the parser reports invalid JSON
    for row in found if isinstance(found, list) else [found]:
        for name, field, number in _flaws(row, schema):
            kind = field.simpleString().upper()
            return f"has the number {number[:_SHOWN]} in column `{name}`, which no {kind} holds"
    return None


def _flaws(value: Any, kind: DataType, name: str = "") -> Iterator[tuple[str, DataType, str]]:  # noqa: ANN401
    """Yield the numbers that do not fit, each with the nearest name and its type."""
    if isinstance(kind, StructType) and isinstance(value, Mapping):
        for each in kind.fields:
            yield from _flaws(value.get(each.name), each.dataType, each.name)
    elif isinstance(kind, MapType) and isinstance(value, Mapping):
        for each in value.values():
            yield from _flaws(each, kind.valueType, name)
    elif isinstance(kind, ArrayType) and isinstance(value, list):
        for each in value:
            yield from _flaws(each, kind.elementType, name)
    elif isinstance(value, str) and _is_lost(value, kind):
        yield name, kind, value


def _is_lost(text: str, kind: DataType) -> bool:
    mantissa, _, exponent = text.lower().partition("e")
    if isinstance(kind, DecimalType):
        if not text.isascii():  # Java takes digits of any script
            return True
        return len(text) > _MOST_DIGITS or len(exponent.lstrip("+-")) > _MOST_EXPONENT
    if not isinstance(text, _Number) or not isinstance(kind, FloatType | DoubleType):
        return False
    number = abs(float(text))
    if isinstance(kind, FloatType):
        number = float("inf") if number >= _LARGEST_FLOAT else number
        number = 0.0 if number <= _SMALLEST_FLOAT else number
    return isinf(number) or (number == 0 and any(each in "123456789" for each in mantissa))
