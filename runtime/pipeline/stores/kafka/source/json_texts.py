# pyright: basic, reportAttributeAccessIssue=false
"""Looks through records in JSON before a parser gets them.

Connect reads no bytes at all, and the text `null`, as no value. A byte order mark is passed over.
A parser would stop after the first value of a record, and would replace bytes that are no UTF-8:
such records are bad, since a part of them would be lost.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ....formats.json.flaws import find_flaws

_SPACE: Final = b" \t\r\n"
_NOTHING: Final = ", \t\r\n\0"
"""The characters that may follow a value."""
_NO_NUMBER: Final = re.compile(rb"[+-]INF|\+Infinity")
"""Matches the numbers that Spark's parser accepts and Python's does not."""
_BRACE: Final = ord("{")
_IS_ONE: Final = msgspec.json.Decoder(msgspec.Raw).decode
_NO_TEXT: Final = "is not in UTF-8"
_SEVERAL: Final = "has more text after its first JSON value: a record is one value, and one row"


def values_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return JSON texts in UTF-8 without byte order marks; null where there is no value."""
    texts = column.to_pylist()
    found = [each if each and each[0] == _BRACE else _value(each) for each in texts]
    return column if found == texts else pa.chunked_array([pa.array(found, pa.binary())])


def find_text_flaws(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the reason why each text must not be parsed; null if it may."""
    found = find_flaws(values).to_pylist()
    is_text = _is_text(values)
    for row, value in enumerate(values.to_pylist()):
        if value is not None and found[row] is None:
            found[row] = _flaw(value, is_text=is_text)
    return pa.chunked_array([pa.array(found, pa.string())])


def objects_in(values: pa.ChunkedArray, flaws: pa.ChunkedArray) -> Iterator[bytes]:
    """Yield the texts that begin as objects and may be parsed, each as one line."""
    for value, flaw in zip(values.to_pylist(), flaws.to_pylist(), strict=True):
        if value and not flaw and value.lstrip(_SPACE).startswith(b"{"):
            yield value.replace(b"\n", b" ").replace(b"\r", b" ")


def _value(text: bytes | None) -> bytes | None:
    value = (text or b"").removeprefix(BOM_UTF8)
    return None if value.strip(_SPACE) in {b"", b"null"} else value


def _is_text(values: pa.ChunkedArray) -> bool:
    """Tell whether all values are UTF-8."""
    try:
        pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _flaw(value: bytes, *, is_text: bool) -> str | None:
    if not is_text and not _is_text(pa.chunked_array([pa.array([value], pa.binary())])):
        return _NO_TEXT
    try:
        _IS_ONE(value)
    except msgspec.DecodeError:
        return _SEVERAL if _has_more(value) else None
    return None


def _has_more(text: bytes) -> bool:
    """Tell whether there is text after the first value; the parser finds all other errors."""
    try:
        json.loads(_NO_NUMBER.sub(b"NaN", text))
    except json.JSONDecodeError as error:
        return error.msg == "Extra data" and bool(error.doc[error.pos :].strip(_NOTHING))
    except (ValueError, RecursionError):
        return False
    return False
