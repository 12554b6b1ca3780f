# pyright: basic, reportAttributeAccessIssue=false
"""Which columns texts in JSON have, all of them: Spark's reader passes over those it is not told.

Whole blocks of lines are parsed by Arrow, at some hundred megabytes a second. A block that Arrow
refuses, since a line is none or a value has several types, is looked through line by line.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StructType,
)

from .json_text import find_flaw, without_deep

_BLOCK: Final = 4 << 20
_LONG_INTEGER: Final = re.compile(rb"[:\[,]\s*-?[0-9]{16,}\s*[,}\]]")
_OBJECTS: Final = re.compile(rb"\s*(\[\s*)?\{")
_NO_NUMBER: Final = re.compile(rb"(?<=[:,\[\s])(?:[+-]INF|\+Infinity)(?=[\s,}\]])")
"""Matches what readers of Spark's take for a number and Python does not."""
_NOTHING: Final = ", \t\r\n\0"
"""What may follow a value without being one."""
_SHORT: Final[Mapping[type[DataType], pa.DataType]] = {
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
}


class JsonColumns:
    """The columns of a text that comes in parts."""

    def __init__(
        self,
        known: StructType,
        *,
        is_one: bool = False,
        refuse: Callable[[int], None] | None = None,
        refuse_text: Callable[[int, str], None] | None = None,
    ) -> None:
        """Take the schema that it should have; `is_one`: it may be one value of many lines.

        `refuse` is called with the number of a line, from 1 on, that goes on after its object, or
        its list of them: what follows is nobody's, since readers take the first value alone.
        `refuse_text` is, with that of a line that no reader may be given, and why; without it such
        lines have no columns.
        """
        self._refuse = refuse
        self._refuse_text = refuse_text
        self._lines = 0
        """How many lines came before what is looked at."""
        self._known = {each.name: each.dataType for each in known.fields}
        self._is_one = is_one
        self._left = b""
        """What came last, without an end of its line."""
        self._found: pa.Schema = pa.schema([])

    def feed(self, text: bytes) -> None:
        """Take a part of the text, in UTF-8."""
        self._left += text
        if self._is_one or len(self._left) < _BLOCK:
            return
        end = max(self._left.rfind(b"\n"), self._left.rfind(b"\r")) + 1
        block, self._left = self._left[:end], self._left[end:]
        self._take(block)

    def end(self) -> pa.Schema:
        """Return all columns that have any value, once the text is over."""
        block, self._left = self._left, b""
        self._take(block)
        return self._found

    def _take(self, block: bytes) -> None:
        if not block.strip():
            self._lines += _line_count(block)
            return
        if self._refuse_text and (flaw := find_flaw(block, is_one=self._is_one)):
            self._refuse_text(self._lines + _line_count(block[: flaw.at] + b"x"), flaw.why)
        columns = self._columns(block)
        pairs = zip(columns.column_names, columns.columns, strict=True)
        fields = [
            pa.field(name, told_as(valued(values.type), self._known.get(name), values))
            for name, values in pairs
        ]
        has_values = [each for each in fields if not pa.types.is_null(each.type)]
        self._found = merged(self._found, pa.schema(has_values))

    def _columns(self, block: bytes) -> pa.Table:
        if self._refuse is None:
            return _by_line([block]) if self._is_one else parsed(block)
        before, refuse = self._lines, self._refuse
        self._lines += _line_count(block)
        table = None if self._is_one else _by_arrow(block)
        # Arrow makes a row of each value, however many of them stand in a line.
        if table is not None and table.num_rows == _written(block):
            return table
        lines = [block] if self._is_one else block.splitlines()
        return _by_line(lines, lambda number: refuse(before + number))


def told_as(
    kind: pa.DataType, known: DataType | None, values: pa.ChunkedArray | None = None
) -> pa.DataType:
    """Return the type that values in text are of, where the schema has a number's type for them.

    Texts do not tell how long a number may be: one that fits counts as what is known, and what
    hangs on its digits, or lies within other values, as null. The reader finds what does not fit.
    """
    if pa.types.is_struct(kind) and isinstance(known, StructType):
        names = {each.name: each.dataType for each in known.fields}
        fields = [field.with_type(told_as(field.type, names.get(field.name))) for field in kind]
        return pa.struct([field for field in fields if not pa.types.is_null(field.type)])
    if pa.types.is_list(kind) and isinstance(known, ArrayType):
        return pa.list_(told_as(kind.value_type, known.elementType))
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not is_number or not isinstance(known, NumericType) or isinstance(known, LongType):
        return kind
    short = _SHORT.get(type(known))
    if values is None or short is None or not pa.types.is_integer(kind):
        return pa.null()
    ends = pc.min_max(values).as_py().values()
    try:
        pa.array(ends, short)
    except (pa.ArrowInvalid, OverflowError):
        return kind
    return short


def merged(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return the columns of two schemas; two types that nothing spans become a text."""
    fields = {field.name: field for field in known}
    for field in found:
        before = fields.get(field.name, field)
        try:
            pair = [pa.schema([before]), pa.schema([field])]
            fields[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0)
        except pa.ArrowException:
            fields[field.name] = pa.field(field.name, pa.string())
    return pa.schema(list(fields.values()))


def valued(kind: pa.DataType) -> pa.DataType:
    """Return the type that JSON has: what Arrow takes for a time is the text that it is.

    Fields that have no value anywhere are left out; what is left without any is null.
    """
    if pa.types.is_struct(kind):
        fields = [field.with_type(valued(field.type)) for field in kind]
        fields = [field for field in fields if not pa.types.is_null(field.type)]
        return pa.struct(fields) if fields else pa.null()
    if pa.types.is_list(kind):
        inner = valued(kind.value_type)
        return pa.null() if pa.types.is_null(inner) else pa.list_(inner)
    return pa.string() if pa.types.is_timestamp(kind) else kind


def parsed(block: bytes) -> pa.Table:
    """Return the columns of whole lines; those that are no objects have none.

    What several types would be needed for is a text, and so are integers of too many digits.
    """
    block = without_deep(block)
    table = _by_arrow(block)
    return _by_line(block.splitlines()) if table is None else table


def parsed_whole(text: bytes) -> pa.Table:
    """Return the columns of a text that is one value: an object, or a list of them."""
    return _by_line([] if find_flaw(text, is_one=True) else [text])


def _by_arrow(block: bytes) -> pa.Table | None:
    """Return the columns of whole lines, or None if they are not for Arrow to tell."""
    options = pajson.ReadOptions(block_size=len(block) + 1, use_threads=False)
    try:
        table = pajson.read_json(io.BytesIO(block), read_options=options)
    except pa.ArrowException:
        return None
    # Arrow makes a DOUBLE of an integer that is too long for it, and drops its last digits.
    is_exact = "double" not in str(table.schema) or not _LONG_INTEGER.search(block)
    return table if is_exact else None


def _line_count(block: bytes) -> int:
    """Return how many lines there are, by what ends lines in Java and for `bytes.splitlines`."""
    ends = block.count(b"\n")
    if b"\r" in block:
        ends += block.count(b"\r") - block.count(b"\r\n")
    return ends + (block != b"" and not block.endswith((b"\n", b"\r")))


def _written(block: bytes) -> int:
    """Return how many lines have anything in them."""
    lines = block.splitlines()
    return len(lines) - lines.count(b"") - sum(map(bytes.isspace, lines))


def _by_line(lines: list[bytes], refuse: Callable[[int], None] | None = None) -> pa.Table:
    """Return the columns of lines; `refuse` takes the number of one that has a remainder."""
    values: dict[str, list[Any]] = {}
    for row in _objects(lines, refuse):
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    arrays = [_array(each) for each in values.values()]
    longest = max(map(len, arrays), default=0)
    padded = [pa.concat_arrays([each, pa.nulls(longest - len(each), each.type)]) for each in arrays]
    return pa.table(padded, list(values))


def _objects(
    lines: list[bytes], refuse: Callable[[int], None] | None
) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(_NO_NUMBER.sub(b"NaN", line) if b"I" in line else line)
        except (ValueError, RecursionError) as error:
            if refuse and _has_remainder(line, error):
                refuse(number)
            continue  # the reader tells it
        yield from (row for row in (found if isinstance(found, list) else [found]) if _is_row(row))


def _has_remainder(line: bytes, error: Exception) -> bool:
    """Tell whether a reader would make rows of a line's beginning, and pass over what follows."""
    if not isinstance(error, json.JSONDecodeError) or error.msg != "Extra data":
        return False
    return bool(_OBJECTS.match(line) and error.doc[error.pos :].strip(_NOTHING))


def _is_row(value: object) -> bool:
    return isinstance(value, dict)


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return pa.nulls(len(values), pa.string())  # several types, or what none can hold
