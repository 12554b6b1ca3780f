# pyright: basic, reportAttributeAccessIssue=false
"""Finds JSON that readers must not get, and prepares records in JSON for them.

* Spark replaces a lone surrogate by a question mark.
* Arrow's parser takes minutes for values that are nested thousands of levels deep, and overflows
  its stack a little deeper; Spark's parser refuses them at 1,000 levels, and column types at some
  hundreds.
* A parser stops after the first value of a record, and replaces bytes that are no UTF-8: a part of
  such a record would be lost.
* `from_json` takes 1e400 for Infinity, and a DECIMAL with an exponent of millions takes it minutes.
  Unlike the reader of files it does not keep the text of a number, which could be looked at
  afterwards. Only values that may have such a number need this look: it is slow.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from math import isinf
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
)

DEEPEST: Final = 100
"""The allowed nesting depth of a value; an object of numbers has depth 1."""

LONE: Final = "escapes a lone surrogate (half of a letter, as `\\ud83d` alone), which is no text"
DEEP: Final = f"has values nested more than {DEEPEST} deep, which is too deep to be read"

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>\\u[dD][89a-fA-F])|\\.", re.S
)
"""Matches complete escapes, with surrogate pairs as one, and lone surrogates."""
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.S)
"""Matches strings, the last one even if it is cut off; possessive, so without backtracking."""
_MAY_BE_FLAWED: Final = rf"(?s){_SURROGATE.pattern.decode()}|(?:[\[{{][^\[{{]*){{{DEEPEST + 1}}}"
_OPENERS: Final = b"[{"
_BUT_OPENERS: Final = bytes(each for each in range(256) if each not in b"[{\n")
_BUT_BRACKETS: Final = bytes(each for each in range(256) if each not in b"[]{}")
_BUT_MARKS: Final = _BUT_BRACKETS.replace(b"\r", b"")
_RETURN: Final = ord("\r")

_SPACE: Final = b" \t\r\n"
_NOTHING: Final = ", \t\r\n\0"
"""The characters that may follow a value."""
_NO_NUMBER: Final = re.compile(rb"[+-]INF|\+Infinity")
"""Matches the numbers that Spark's parser accepts and Python's does not."""
_BRACE: Final = ord("{")
_IS_ONE: Final = msgspec.json.Decoder(msgspec.Raw).decode
_NO_TEXT: Final = "is not in UTF-8"
_SEVERAL: Final = "has more text after its first JSON value: a record is one value, and one row"

_LARGEST_FLOAT: Final = float.fromhex("0x1.ffffffp+127")
"""From here on a number is rounded to a FLOAT's Infinity."""
_SMALLEST_FLOAT: Final = float.fromhex("0x1p-150")
"""Up to here a number is rounded to a FLOAT's zero."""
_MOST_DIGITS: Final = 1_000
_MOST_EXPONENT: Final = 3
"""The most digits of an exponent of a DECIMAL."""
_SHOWN: Final = 100


class Flaw(NamedTuple):
    """The reason why a text must not be read, and the byte offset."""

    at: int
    """The offset, in bytes."""
    why: str


def find_flaw(text: bytes, *, is_one: bool = False) -> Flaw | None:
    """Return the first flaw of a text with one value per line, or of one value (`is_one`)."""
    lone, deep = _surrogate_at(text), next(_deep_lines(text, is_one=is_one), (-1, b""))[0]
    if deep >= 0 and not 0 <= lone < deep:
        return Flaw(deep, DEEP)
    return Flaw(lone, LONE) if lone >= 0 else None


def without_deep(text: bytes) -> bytes:
    """Return the lines that are not nested too deep for Arrow's parser."""
    deep = {line for _, line in _deep_lines(text, is_one=False)}
    return b"\n".join(each for each in text.split(b"\n") if each not in deep) if deep else text


def find_flaws(values: pa.ChunkedArray) -> pa.Array:
    """Return the reason why each value must not be read; null if it may."""
    may = pc.match_substring_regex(values, _MAY_BE_FLAWED)
    if not pc.any(may).as_py():
        return pa.nulls(len(values), pa.string())
    pairs = zip(values.to_pylist(), may.to_pylist(), strict=True)
    return pa.array([_why(value) if is_likely else None for value, is_likely in pairs], pa.string())


def _why(value: bytes) -> str | None:
    flaw = find_flaw(value, is_one=True)
    return flaw.why if flaw else None


def _surrogate_at(text: bytes) -> int:
    """Return the offset of the first escaped lone surrogate; -1: none."""
    if not _SURROGATE.search(text):
        return -1
    lone = (each for each in _ESCAPES.finditer(text) if each["lone"])
    return next((each.start() for each in lone), -1)


def _deep_lines(text: bytes, *, is_one: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are nested too deep, with their offsets."""
    opened = text.translate(None, _BUT_OPENERS)
    counts = [len(opened)] if is_one else [*map(len, opened.split(b"\n"))]
    if max(counts) <= DEEPEST:  # the usual case: too few opening brackets at all
        return
    lines, begin = [text] if is_one else text.split(b"\n"), 0
    for line, count in zip(lines, counts, strict=True):
        if count > DEEPEST and _depth(line, is_one=is_one) > DEEPEST:
            yield begin, line
        begin += len(line) + 1


def _depth(text: bytes, *, is_one: bool) -> int:
    """Return the nesting depth of a line, without brackets in strings.

    A carriage return resets the depth, since it ends a line for readers.
    """
    deepest = depth = 0
    for each in _STRINGS.sub(b"", text).translate(None, _BUT_BRACKETS if is_one else _BUT_MARKS):
        if each in _OPENERS:
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth = 0 if each == _RETURN else max(0, depth - 1)
    return deepest


def values_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return JSON texts in UTF-8 without byte order marks; null where there is no value."""
    texts = column.to_pylist()
    found = [each if each and each[0] == _BRACE else _value(each) for each in texts]
    return column if found == texts else pa.chunked_array([pa.array(found, pa.binary())])


def find_text_flaws(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the reason why each text must not be parsed; null if it may."""
    found = find_flaws(values).to_pylist()
    are_texts = is_text(values)
    for row, value in enumerate(values.to_pylist()):
        if value is not None and found[row] is None:
            found[row] = _text_flaw(value, is_checked=are_texts)
    return pa.chunked_array([pa.array(found, pa.string())])


def objects_in(values: pa.ChunkedArray, flaws: pa.ChunkedArray) -> Iterator[bytes]:
    """Yield the texts that begin as objects and may be parsed, each as one line."""
    for value, flaw in zip(values.to_pylist(), flaws.to_pylist(), strict=True):
        if value and not flaw and value.lstrip(_SPACE).startswith(b"{"):
            yield value.replace(b"\n", b" ").replace(b"\r", b" ")


def _value(text: bytes | None) -> bytes | None:
    value = (text or b"").removeprefix(BOM_UTF8)
    return None if value.strip(_SPACE) in {b"", b"null"} else value


def is_text(values: pa.ChunkedArray) -> bool:
    """Return whether all values are UTF-8."""
    try:
        pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _text_flaw(value: bytes, *, is_checked: bool) -> str | None:
    if not is_checked and not is_text(pa.chunked_array([pa.array([value], pa.binary())])):
        return _NO_TEXT
    try:
        _IS_ONE(value)
    except msgspec.DecodeError:
        return _SEVERAL if _has_more(value) else None
    return None


def has_text_behind(error: json.JSONDecodeError) -> bool:
    """Return whether a value is whole, and text follows that a reader would ignore."""
    return error.msg == "Extra data" and bool(error.doc[error.pos :].strip(_NOTHING))


def _has_more(text: bytes) -> bool:
    """Return whether there is text after the first value; the parser finds all other errors."""
    try:
        json.loads(_NO_NUMBER.sub(b"NaN", text))
    except json.JSONDecodeError as error:
        return has_text_behind(error)
    except (ValueError, RecursionError):
        return False
    return False


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
        for name, field, number in _lost_numbers(row, schema):
            kind = field.simpleString().upper()
            return f"has the number {number[:_SHOWN]} in column `{name}`, which no {kind} holds"
    return None


def _lost_numbers(
    value: Any,  # noqa: ANN401  # what JSON holds
    kind: DataType,
    name: str = "",
) -> Iterator[tuple[str, DataType, str]]:
    """Yield the numbers that do not fit, each with the nearest name and its type."""
    if isinstance(kind, StructType) and isinstance(value, Mapping):
        for each in kind.fields:
            yield from _lost_numbers(value.get(each.name), each.dataType, each.name)
    elif isinstance(kind, MapType) and isinstance(value, Mapping):
        for each in value.values():
            yield from _lost_numbers(each, kind.valueType, name)
    elif isinstance(kind, ArrayType) and isinstance(value, list):
        for each in value:
            yield from _lost_numbers(each, kind.elementType, name)
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
