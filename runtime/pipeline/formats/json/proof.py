# pyright: basic, reportAttributeAccessIssue=false
"""Reads lines of JSON with Arrow, and proves that Spark's reader has the same rows.

Arrow's parser is given the types of the known columns; others it infers, so that they are found.
It refuses a value of another type, a number out of range, a name that occurs twice. So the rows of
a text are the same for Spark, under conditions that are checked here:

* Each line begins and ends as an object does, and there are as many rows as lines. Behind `}` no
  value goes on with `{`, so no value has two lines, and no line two values. This also keeps from
  Arrow what may end the process, a first value that is no object.
* All columns are of plain types. FLOAT is left out since Java rounds it twice, DECIMAL and MAP
  since Arrow reads them otherwise.
* Times are read as texts, and match the one narrow pattern of their type, with a zone if they are
  instants.
* No DOUBLE is -0.0, since of `-0` Spark makes 0.0, or a word for what is no number: Arrow's parser
  knows other words.
* What is not a known column would not stop Spark's parser: no name, number or line is too long.

The caller looks for what no reader may get (`flaws`) and for odd numbers (`odd_in_json`), and has
checked that the text is UTF-8.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from ...batches.frames import arrow_schema_of
from ..csv.grammar import PLAIN_TIMES
from ..spark.odd_texts import is_match, odd_in_json

_PLAIN: Final = (
    BooleanType(),
    ByteType(),
    ShortType(),
    IntegerType(),
    LongType(),
    DoubleType(),
    StringType(),
)
_LONGEST: Final = 8 << 20
"""The longest line, in bytes: Spark's parser refuses a text of 20 million letters."""
_MOST: Final = 1 << 30
"""The longest text: the texts of a column must stay below 2 GB."""
_LONG_NAMES: Final = 10_000
"""How long the names of other columns may be together: Spark refuses one of 50,000 letters."""
_LONG_NUMBER: Final = "[0-9.]{200}"
"""Spark refuses numbers of more than 1,000 digits, also where nobody reads them."""
LONG_INTEGER: Final = re.compile(rb"[:\[,]\s*-?[0-9]{16,}\s*[,}\]]")
"""Matches integers that Arrow may read as a DOUBLE, which loses their last digits."""
_MINUS_ZERO: Final = -(1 << 63)
"""The bits of -0.0, as an integer."""


@dataclass(frozen=True, slots=True)
class JsonReading:
    """How Arrow reads lines with the columns of a schema."""

    parsed: pa.Schema
    """The types to parse; times are texts."""
    rows: pa.Schema
    """The types of the rows."""
    odd: str
    """The pattern of odd numbers; no text that has one may be read."""
    times: tuple[tuple[str, str], ...] = ()
    """The columns of times, each with the pattern that its texts match."""

    def parse(self, block: bytes) -> pa.Table | None:
        """Return the columns of lines, and others that they have; None: Arrow may not read them."""
        lines = _count_objects(block)
        if not lines:
            return None
        read = pajson.ReadOptions(block_size=len(block) + 1, use_threads=False)
        how = pajson.ParseOptions(explicit_schema=self.parsed, unexpected_field_behavior="infer")
        try:
            table = pajson.read_json(pa.BufferReader(block), read, how)
        except pa.ArrowException:
            return None
        names = {*self.parsed.names}
        others = [
            each
            for each in table.schema
            if each.name not in names or each.type != self.parsed.field(each.name).type
        ]
        if table.num_rows != lines or (others and not _is_passed_over(others, block)):
            return None
        return table

    @property
    def is_nested(self) -> bool:
        """Whether a column is a struct or a list."""
        return any(map(pa.types.is_nested, self.rows.types))

    def typed(self, table: pa.Table) -> pa.Table | None:
        """Return parsed columns as rows; None: Spark may have other values."""
        for name, pattern in self.times:
            if pc.all(pc.match_substring_regex(table.column(name), pattern)).as_py() is False:
                return None
        if any(map(_is_odd, chain.from_iterable(map(_doubles, table.columns)))):
            return None
        try:
            columns = [table.column(each.name).cast(each.type) for each in self.rows]
        except pa.ArrowInvalid:
            return None
        return pa.table(columns, schema=self.rows)


@lru_cache(256)
def reading_of(schema: StructType) -> JsonReading | None:
    """Return how Arrow reads lines; None: not all columns are plain."""
    times = {
        each.name: rf"\A(?:{pattern})\z"
        for each in schema.fields
        if (pattern := PLAIN_TIMES.get(type(each.dataType)))
    }
    others = StructType([each for each in schema.fields if each.name not in times])
    is_plain = all(each.nullable and not each.metadata for each in schema.fields)
    if not (is_plain and _has_own_names(schema)) or not all(
        _is_plain(each.dataType) for each in others.fields
    ):
        return None
    rows: pa.Schema = arrow_schema_of(schema)
    fields = [each.with_type(pa.string()) if each.name in times else each for each in rows]
    return JsonReading(pa.schema(fields), rows, odd_in_json(schema), tuple(times.items()))


def _is_plain(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return kind.containsNull and _is_plain(kind.elementType)
    if isinstance(kind, StructType):
        fields = kind.fields
        return _has_own_names(kind) and all(e.nullable and _is_plain(e.dataType) for e in fields)
    return kind in _PLAIN


def _has_own_names(kind: StructType) -> bool:
    """Return whether a struct has fields, and no two names differ in case only."""
    names = {each.lower() for each in kind.names}
    return 0 < len(names) == len(kind.names)


def _count_objects(block: bytes) -> int:
    """Return the number of lines; 0 unless each of them begins and ends as an object does."""
    ends, returns = block.count(b"\n"), block.count(b"\r")
    end = b"\r\n" if returns else b"\n"
    between = ends - block.endswith(b"\n")
    is_plain = (
        returns in {0, ends}  # alone it would end a line as well
        and block.startswith(b"{")
        and block.endswith((b"}", b"}" + end))
        and block.count(b"}" + end + b"{") == between
        and b"\0" not in block  # Arrow takes it for the end of the text
    )
    if not is_plain or len(block) > _MOST:
        return 0
    is_long = len(block) > _LONGEST and max(map(len, block.split(b"\n"))) > _LONGEST
    return 0 if is_long else between + 1


def _is_passed_over(others: list[pa.Field], block: bytes) -> bool:
    """Return whether Spark's parser passes over other columns, and their types are exact."""
    if sum(len(each.name) + len(str(each.type)) for each in others) > _LONG_NAMES:
        return False
    has_fractions = any("double" in str(each.type) for each in others)
    return not has_fractions or not (LONG_INTEGER.search(block) or is_match(block, _LONG_NUMBER))


def _is_odd(fractions: pa.Array) -> bool:
    """Return whether one is no number, or -0.0."""
    is_zero = pc.equal(fractions.view(pa.int64()), _MINUS_ZERO)
    return pc.any(is_zero).as_py() or pc.all(pc.is_finite(fractions)).as_py() is False


def _doubles(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield the fractions of a column, at any depth."""
    if pa.types.is_float64(column.type):
        yield from column.chunks
    elif pa.types.is_list(column.type):
        yield from _doubles(pc.list_flatten(column))
    elif pa.types.is_struct(column.type):
        for at in range(column.type.num_fields):
            yield from _doubles(pc.struct_field(column, [at]))
