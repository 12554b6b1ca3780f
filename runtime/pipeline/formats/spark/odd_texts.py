# pyright: basic, reportAttributeAccessIssue=false
"""Finds texts in csv and json that Spark's readers may take for other values than they say.

A number in a DOUBLE may overflow, `12D` is 12.0 to Java, digits of another script are 12, and
`01234` (a ZIP code) loses its zero in a column that was inferred as a number. Such texts are rare:
this scan finds the files that may have one, and only there numbers are read as texts and converted
by `text_values`.
"""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import re2
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NumericType,
    StructType,
)

_ENDS: Final = b"\r\n"
_BLANKS: Final = b" \t"
_IN_JSON: Final = b':[,"{ \t\r\n'
"""What stands before a number, or a text of digits, in JSON."""
_WHITE: Final = r"[ \t\r\n]*"
_MAY_BE_NUMBER: Final = r"[ \\+\-.0-9NI]"
"""How a text in quotes begins that may be a number; a backslash may escape anything."""
_CODE: Final = r"(?:\+|-?0[0-9])"
_REACH: Final = 4096
"""How much of a chunk is scanned again with the next one: a match may span both."""
_MOST_COMPILED: Final = 64
_OF_BYTES: Final = re2.Options()
_OF_BYTES.encoding = re2.Options.Encoding.LATIN1
_OF_BYTES.never_capture = True
_OF_BYTES.max_mem = 32 << 20  # of records with hundreds of columns
_FAR: Final[dict[type[DataType], tuple[int, int]]] = {
    FloatType: (2, 30),
    DoubleType: (3, 200),
    DecimalType: (3, 400),
}
"""From how many digits of an exponent, and how many digits in all, a number may be out of range, or
hold a core for minutes while it is converted."""


def odd_in_csv(schema: StructType, edges: bytes, *, finds_codes: bool) -> str:
    """Return the pattern of odd texts for a csv schema; empty if it can have none.

    `edges` are the bytes between which values stand; `finds_codes`: numeric codes are odd.
    """
    kinds = {type(each.dataType) for each in schema.fields}
    parts = [*_far(kinds)]
    if kinds & {FloatType, DoubleType}:
        parts += [
            r"[+-]?0[xX]",
            rf"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?[dDfF](?:[{escaped(edges)}]|\z)",
        ]
    if DecimalType in kinds or any(issubclass(each, IntegralType) for each in kinds):
        parts.append(_foreign())
    if finds_codes and any(issubclass(each, NumericType) for each in kinds):
        parts.append(_CODE)
    return _between(edges, parts)


def odd_in_json(schema: StructType) -> str:
    """Return the pattern of odd numbers for a json schema; empty if it can have none.

    A number in quotes is odd in a FLOAT or DOUBLE: Spark refuses it there, but not in a DECIMAL.
    """
    leaves = set(_leaves(schema))
    kinds = {kind for _, kind in leaves}
    fractions = sorted({name for name, kind in leaves if kind in {FloatType, DoubleType}})
    numbers = _between(_IN_JSON, [*_far(kinds), *([_foreign()] if DecimalType in kinds else ())])
    return "|".join(filter(None, (numbers, *_in_quotes(fractions))))


def _in_quotes(names: Sequence[str]) -> Iterator[str]:
    """Yield the patterns of texts in columns of these names; an empty one: in a list or map."""
    if "" in names:
        yield rf"[:,\[]{_WHITE}[\"']{_MAY_BE_NUMBER}"
    spelt = {text.encode() for name in names if name for text in (name, json.dumps(name)[1:-1])}
    if spelt:
        whole = "|".join(map(escaped, sorted(spelt)))
        yield rf"[\"'{{, \t\r\n](?:{whole})[\"']?{_WHITE}:{_WHITE}[\"']"


def _far(kinds: set[type[DataType]]) -> Iterator[str]:
    for kind, (exponent, digits) in _FAR.items():
        if kind in kinds:
            yield rf"[+-]?[0-9.]+[eE][+-]?[0-9]{{{exponent}}}"
            yield rf"[+-]?[0-9.]{{{digits}}}"


@cache
def _foreign() -> str:
    """Return the pattern of a number with digits of other scripts, which Java takes."""
    digits = (chr(each) for each in range(0x80, 0x10000) if unicodedata.category(chr(each)) == "Nd")
    ends: dict[bytes, list[int]] = {}
    for each in (digit.encode() for digit in digits):
        ends.setdefault(each[:-1], []).append(each[-1])
    scripts = (f"{escaped(start)}[{escaped(bytes(last))}]" for start, last in ends.items())
    return rf"[+-]?[0-9.]*(?:{'|'.join(scripts)})"


def _between(edges: bytes, parts: list[str]) -> str:
    return rf"[{escaped(edges)}](?:{'|'.join(parts)})" if parts else ""


def escaped(data: bytes) -> str:
    """Return the expression for some bytes, alone or within brackets."""
    return "".join(f"\\x{each:02x}" for each in data)


def _leaves(kind: DataType, name: str = "") -> Iterator[tuple[str, type[DataType]]]:
    """Yield the field's name and the type of each single value; no name within a list or map."""
    if isinstance(kind, StructType):
        for each in kind.fields:
            yield from _leaves(each.dataType, each.name)
    elif isinstance(kind, ArrayType):
        yield from _leaves(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _leaves(kind.valueType)
    else:
        yield name, type(kind)


def csv_edges(separator: str, quote: str, *, trims: bool) -> bytes:
    """Return the bytes between which the values of a csv dialect stand."""
    return separator.encode() + quote.encode() + _ENDS + (_BLANKS if trims else b"")


class OddTextScan:
    """Searches a text for a pattern of odd texts, chunk by chunk."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._tail = b"\n"
        """The end of the scanned text."""
        self.found = False
        """Whether a value may be odd; a part of a longer text may look like one."""

    def feed(self, chunk: bytes) -> None:
        """Scan the next chunk, unless something was found."""
        if self.found or not self._pattern or not chunk:
            return
        pieces = (self._tail + chunk[:_REACH], chunk)
        self.found = any(is_match(each, self._pattern) for each in pieces)
        self._tail = (self._tail + chunk)[-_REACH:]


def is_match(data: bytes, pattern: str) -> bool:
    """Return whether an expression, of bytes, matches anywhere in a text; releases the GIL."""
    return compiled(pattern).search(data) is not None


@lru_cache(_MOST_COMPILED)
def compiled(pattern: str) -> re2._Regexp:
    """Return an expression of bytes, with the states that it has found so far."""
    return re2.compile(pattern.encode("latin1"), _OF_BYTES)


def may_be_odd(values: pa.ChunkedArray, pattern: str) -> bool:
    """Return whether any of many texts may have an odd one."""
    return bool(pattern) and pc.any(pc.match_substring_regex(values, pattern)).as_py() is True
