# pyright: basic, reportAttributeAccessIssue=false
"""Finds all columns of JSON texts; Spark's reader ignores columns that its schema does not have.

Arrow parses whole blocks of lines, at some hundred megabytes a second. A block that Arrow refuses,
for an invalid line or a value of several types, is parsed line by line.
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

from .flaws import find_flaw, has_text_behind, without_deep
from .proof import LONG_INTEGER, JsonReading

_BLOCK: Final = 4 << 20
_MOST_KEPT: Final = 64 << 20
"""The longest text of which the rows are kept."""
_OBJECTS: Final = re.compile(rb"\s*(\[\s*)?\{")
_FIRST: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{")
"""Matches a block whose first value is an object."""
_NO_NUMBER: Final = re.compile(rb"(?<=[:,\[\s])(?:[+-]INF|\+Infinity)(?=[\s,}\]])")
"""Matches the numbers that Spark's reader accepts and Python's does not."""
_SHORT: Final[Mapping[type[DataType], pa.DataType]] = {
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
}


class JsonColumns:
    """Collects the columns of a text that comes in chunks."""

    def __init__(
        self,
        schema: StructType,
        *,
        is_one: bool = False,
        refuse: Callable[[int], None] | None = None,
        refuse_text: Callable[[int, str], None] | None = None,
        reading: JsonReading | None = None,
    ) -> None:
        """Begin a text with the schema so far; `is_one`: it may be one value of many lines.

        `reading`: how to keep the rows of the lines, as long as they are Spark's; see `rows`.
        `refuse` is called with the number, from 1, of a line with text after its first value, which
        readers would ignore. `refuse_text` is called with the number of a line that no reader may
        get, and the reason; without it such lines have no columns.
        """
        self._refuse = refuse
        self._refuse_text = refuse_text
        self._lines = 0
        """The number of lines before the current block."""
        self._known = {each.name: each.dataType for each in schema.fields}
        """The types of the schema's columns by name."""
        self._is_one = is_one
        self._left = b""
        """The last, incomplete line."""
        self._found: pa.Schema = pa.schema([])
        """The columns of the text so far."""
        self._reading = reading
        """None: the rows are not kept, or no longer."""
        self._kept: list[pa.Table] = []
        """The rows of each block."""
        self._size = 0
        """The bytes of these blocks."""

    def feed(self, text: bytes) -> None:
        """Parse the next chunk of the text, in UTF-8."""
        self._left += text
        if self._is_one or len(self._left) < _BLOCK:
            return
        end = max(self._left.rfind(b"\n"), self._left.rfind(b"\r")) + 1
        block, self._left = self._left[:end], self._left[end:]
        self._parse(block)

    def end(self) -> pa.Schema:
        """End the text; return all columns that have a value."""
        block, self._left = self._left, b""
        self._parse(block)
        return self._found

    @property
    def rows(self) -> pa.Table | None:
        """The rows of the whole text as Spark has them; None: that is not proved."""
        return pa.concat_tables(self._kept) if self._reading and self._kept else None

    def _parse(self, block: bytes) -> None:
        if not block.strip():
            self._lines += _line_count(block)
            self._reading = None if block else self._reading
            return
        if self._refuse_text and (flaw := find_flaw(block, is_one=self._is_one)):
            self._refuse_text(self._lines + _line_count(block[: flaw.at] + b"x"), flaw.why)
        parsed = self._parse_and_keep(block)
        columns = self._columns(block) if parsed is None else parsed
        has_values = columns_in(columns, self._known, is_typed=parsed is not None)
        self._found = merge_columns(self._found, has_values)

    def _parse_and_keep(self, block: bytes) -> pa.Table | None:
        """Return the columns of a block, and keep its rows; None: they are not Spark's."""
        if self._reading is None:
            return None
        self._size += len(block)
        parsed = self._reading.parse(block) if self._size <= _MOST_KEPT else None
        rows = None if parsed is None else self._reading.typed(parsed)
        if rows is None:
            self._reading = None
            self._kept.clear()
        else:
            self._kept.append(rows)
        self._lines += 0 if parsed is None else parsed.num_rows
        return parsed

    def _columns(self, block: bytes) -> pa.Table:
        if self._refuse is None:
            return _by_line([block]) if self._is_one else parse_lines(block)
        before, refuse = self._lines, self._refuse
        self._lines += _line_count(block)
        table = None if self._is_one else _by_arrow(block)
        # Arrow makes a row of each value, even if a line has several.
        if table is not None and table.num_rows == _nonblank_lines(block):
            return table
        lines = [block] if self._is_one else block.splitlines()
        return _by_line(lines, lambda number: refuse(before + number))


def columns_in(
    table: pa.Table, types: Mapping[str, DataType], *, is_typed: bool = True
) -> pa.Schema:
    """Return the parsed columns that have values; `is_typed`: their types may tell more than these.

    Numbers have the `types` of known columns, if they fit.
    """
    fields: list[pa.Field] = []
    for name, values in zip(table.column_names, table.columns, strict=True):
        kind = type_with_values(values) if is_typed else drop_valueless(values.type)
        fields.append(pa.field(name, fit_number_type(kind, types.get(name), values)))
    return pa.schema([each for each in fields if not pa.types.is_null(each.type)])


def fit_number_type(
    kind: pa.DataType, wanted: DataType | None, values: pa.ChunkedArray | None = None
) -> pa.DataType:
    """Return the type of parsed values, with numbers as the number type that the schema has.

    JSON does not tell the width of a number: integers that fit the known type get it. Other
    numbers, and those within nested values, get null: the reader finds values that do not fit.
    """
    if pa.types.is_struct(kind) and isinstance(wanted, StructType):
        names = {each.name: each.dataType for each in wanted.fields}
        fields = [
            field.with_type(fit_number_type(field.type, names.get(field.name))) for field in kind
        ]
        return pa.struct([field for field in fields if not pa.types.is_null(field.type)])
    if pa.types.is_list(kind) and isinstance(wanted, ArrayType):
        return pa.list_(fit_number_type(kind.value_type, wanted.elementType))
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not is_number or not isinstance(wanted, NumericType) or isinstance(wanted, LongType):
        return kind
    short = _SHORT.get(type(wanted))
    if values is None or short is None or not pa.types.is_integer(kind):
        return pa.null()
    ends = pc.min_max(values).as_py().values()
    try:
        pa.array(ends, short)
    except (pa.ArrowInvalid, OverflowError):
        return kind
    return short


def merge_columns(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return the columns of both schemas; a column of two incompatible types becomes a string."""
    fields = {field.name: field for field in one}
    for field in other:
        before = fields.get(field.name, field)
        try:
            pair = [pa.schema([before]), pa.schema([field])]
            fields[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0)
        except pa.ArrowException:
            fields[field.name] = pa.field(field.name, pa.string())
    return pa.schema(list(fields.values()))


def drop_valueless(kind: pa.DataType) -> pa.DataType:
    """Return a type without fields that have no value; null if none is left.

    Timestamps that Arrow infers become strings, as in JSON.
    """
    if pa.types.is_struct(kind):
        fields = [field.with_type(drop_valueless(field.type)) for field in kind]
        fields = [field for field in fields if not pa.types.is_null(field.type)]
        return pa.struct(fields) if fields else pa.null()
    if pa.types.is_list(kind):
        inner = drop_valueless(kind.value_type)
        return pa.null() if pa.types.is_null(inner) else pa.list_(inner)
    return pa.string() if pa.types.is_timestamp(kind) else kind


def type_with_values(values: pa.ChunkedArray) -> pa.DataType:
    """Return a column's type as `drop_valueless` does, by the values themselves."""
    kind = values.type
    if values.null_count == len(values):
        return pa.null()
    if pa.types.is_struct(kind):
        inner = [type_with_values(pc.struct_field(values, [at])) for at in range(kind.num_fields)]
        pairs = zip(kind, inner, strict=True)
        fields = [field.with_type(one) for field, one in pairs if not pa.types.is_null(one)]
        return pa.struct(fields) if fields else pa.null()
    if pa.types.is_list(kind):
        one = type_with_values(pc.list_flatten(values))
        return pa.null() if pa.types.is_null(one) else pa.list_(one)
    return pa.string() if pa.types.is_timestamp(kind) else kind


def parse_lines(block: bytes) -> pa.Table:
    """Return the columns of complete lines; lines that are not objects have none.

    Columns of several types, and integers with too many digits, are strings.
    """
    block = without_deep(block)
    table = _by_arrow(block)
    return _by_line(block.splitlines()) if table is None else table


def parse_value(text: bytes) -> pa.Table:
    """Return the columns of a text that is one object, or one list of objects."""
    return _by_line([] if find_flaw(text, is_one=True) else [text])


def _by_arrow(block: bytes) -> pa.Table | None:
    """Return the columns of complete lines; None if Arrow cannot parse them without loss."""
    if not _FIRST.match(block):  # a first value of `null` ends the process, by a fault of Arrow's
        return None
    options = pajson.ReadOptions(block_size=len(block) + 1, use_threads=False)
    try:
        table = pajson.read_json(io.BytesIO(block), read_options=options)
    except pa.ArrowException:
        return None
    # Arrow reads an integer of more than 64 bits as a DOUBLE, and loses its last digits.
    is_exact = "double" not in str(table.schema) or not LONG_INTEGER.search(block)
    return table if is_exact else None


def _line_count(block: bytes) -> int:
    """Count lines as Java and `bytes.splitlines` do."""
    ends = block.count(b"\n")
    if b"\r" in block:
        ends += block.count(b"\r") - block.count(b"\r\n")
    return ends + (block != b"" and not block.endswith((b"\n", b"\r")))


def _nonblank_lines(block: bytes) -> int:
    lines = block.splitlines()
    return len(lines) - lines.count(b"") - sum(map(bytes.isspace, lines))


def _by_line(lines: list[bytes], refuse: Callable[[int], None] | None = None) -> pa.Table:
    """Return the columns of lines; `refuse` gets the number of a line with text after its value."""
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
            continue  # the reader reports invalid JSON
        yield from (row for row in (found if isinstance(found, list) else [found]) if _is_row(row))


def _has_remainder(line: bytes, error: Exception) -> bool:
    """Return whether a reader would ignore text after the first value of a line."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return bool(_OBJECTS.match(line)) and has_text_behind(error)


def _is_row(value: object) -> bool:
    return isinstance(value, dict)


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return pa.nulls(len(values), pa.string())  # several types, or out of range
