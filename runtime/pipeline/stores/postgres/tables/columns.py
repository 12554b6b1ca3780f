# pyright: basic, reportAttributeAccessIssue=false
"""The columns of a table: their SQL expressions, and the conversion of results to Arrow types."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from ....spi.config import ParsedConfig
from ....spi.errors import BadInput
from ..arrow_types import NATIVE, digits_of
from ..names import raw_sql
from . import keys

_UNZONED, _ZONED = "timestamp", "timestamptz"
_LIST: Final = """CASE WHEN array_ndims({0}) > 1 THEN (array_ndims({0}) || {2} || {3} || {4})::{1}
    ELSE ({0}::{1})[:] END"""
"""An array from element 1 on; for one of several dimensions the server raises a text."""
_DIMENSIONS: Final = (
    " dimensions in column {}",
    ", which is read as a list: declare it as [][], and it is read as text",
)
_INSTANT: Final = """CASE WHEN {0}::{1}::{2} <> {0} THEN ({0}::text || {3} || {4} || {5})::{1}
    ELSE {6} END"""
"""A time of the session's zone as an instant; for one that its clocks skip, which would be that of
another time, the server raises a text."""
_SKIPPED: Final = (
    " in column {}",
    f", which the clocks of {keys.TIMEZONE} skip: correct it, or leave out that key, and times "
    "stay without a zone",
)
_MOST_DIGITS: Final = 38
_UNDECLARED: Final = pa.decimal128(_MOST_DIGITS, 18)
_MONEY: Final = pa.decimal128(19, 2)
_EXACT_DOUBLE: Final = 15
"""The decimal digits that a double keeps."""
_INTEGERS: Final = ((2, pa.int8()), (4, pa.int16()), (9, pa.int32()), (18, pa.int64()))
"""The narrowest integer for a number of digits, as in Connect."""
_INFINITE: Final = {
    False: (
        (-9_222_425_352_054_775_809, 253_402_300_799_999_999),
        (-9_222_425_352_054_775_808, -62_135_596_800_000_000),
    ),
    True: ((-2_147_472_692, 2_932_896), (-2_147_472_691, -719_162)),
}
"""ADBC's values of infinity and -infinity, for timestamps and dates (True), and replacements:
the ends of the years 1 to 9999, Spark's range."""
_FIRST_TIME: Final = -210_866_803_200_000_000
"""The first timestamp of PostgreSQL, in 4713 BC; ADBC's sums of later ones than 294246 wrap."""
TOPIC: Final = "_topic"
OP, LSN, SEQ, TIME, DELETED = "__op", "__lsn", "__seq", "__ts_ms", "__deleted"
_OF_ALL: Final = frozenset({TOPIC, OP, DELETED})
"""Those that rows have in any mode, and those by which sinks delete."""
_OF_LOG: Final = frozenset({LSN, SEQ, TIME})


@dataclass(frozen=True, slots=True)
class TypeMapping:
    """The type mapping of a config."""

    numeric: str = keys.NO_MAPPING
    is_zoned: bool = False
    """Whether timestamps without a zone are taken in the session's zone, and become instants."""

    @classmethod
    def of(cls, settings: ParsedConfig) -> Self:
        """Return the mapping of a config."""
        return cls(settings.text(keys.NUMERIC_MAPPING), bool(settings.text(keys.TIMEZONE)))


@dataclass(frozen=True)
class SourceColumn:
    """A column: its SQL expression, and its Arrow type."""

    name: str
    expression: sql.Composed
    type: pa.DataType

    @classmethod
    def of(
        cls,
        name: str,
        kind: str,
        width: int,
        dimensions: int,
        mapping: TypeMapping,
        key: Sequence[str] = (),
    ) -> "SourceColumn":
        """Return a column for a type's catalog name; `width` is its `atttypmod`.

        Errors tell the row by the columns of `key`.
        """
        cast, arrow_type = _read_as(kind, width, dimensions, mapping)
        its, to = sql.Identifier(name), raw_sql(cast or f"{kind.removeprefix('_')}[]")
        value = sql.SQL("{0}::{1}" if cast else "{0}").format(its, to)
        if pa.types.is_list(arrow_type):
            value = sql.SQL(_LIST).format(its, to, *_refusal_parts(_DIMENSIONS, name, key))
        if mapping.is_zoned and kind.removeprefix("_") == _UNZONED and cast.startswith(_ZONED):
            stored = raw_sql(cast.replace(_ZONED, _UNZONED))
            refusal = _refusal_parts(_SKIPPED, name, key)
            value = sql.SQL(_INSTANT).format(its, to, stored, *refusal, value)
        return cls(name, sql.SQL("{} AS {}").format(value, its), arrow_type)

    def finished(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Convert values to the column's type; raises `BadInput` for a value that does not fit."""
        if isinstance(values.type, pa.BaseExtensionType):
            values = values.cast(values.type.storage_type)
        try:
            if values.type != self.type:
                _refuse_wide(values, self.type)
                values = values.cast(self.type)
        except pa.ArrowInvalid as error:
            raise BadInput(
                f"column {self.name}: a value does not fit {self.type}: {error}; declare its "
                f"precision, or set {keys.NUMERIC_MAPPING}={keys.EAGER_DOUBLE}"
            ) from None
        _refuse_wrapped(self.name, values)
        return _finite(values)


def _refusal_parts(
    text: tuple[str, str], name: str, key: Sequence[str]
) -> Iterator[sql.Composable]:
    """Yield the parts of a text about a value in SQL: the column, the row, and the rest."""
    column, rest = text
    yield sql.Literal(column.format(name))
    parts = [sql.SQL("{} || {}").format(sql.Literal(f"{e}="), sql.Identifier(e)) for e in key]
    row = sql.SQL("' of the row with ' || concat_ws(', ', {})").format(sql.SQL(", ").join(parts))
    yield row if parts else sql.SQL("''")
    yield sql.Literal(rest)


def _read_as(
    kind: str, width: int, dimensions: int, mapping: TypeMapping
) -> tuple[str, pa.DataType]:
    """Return the type to cast to on the server (empty: no cast), and the Arrow type."""
    if kind == "numeric":
        return _numeric(width, mapping.numeric)
    if mapping.is_zoned and kind == _UNZONED:
        return _ZONED, NATIVE[_ZONED]
    if mapping.is_zoned and kind == f"_{_UNZONED}" and dimensions <= 1:
        return f"{_ZONED}[]", pa.list_(NATIVE[_ZONED])
    if kind in NATIVE:
        return "", NATIVE[kind]
    if kind.startswith("_") and dimensions <= 1:
        return _list_of(kind[1:], width)
    return _CAST.get(kind, ("text", pa.string()))


def _list_of(element: str, width: int) -> tuple[str, pa.DataType]:
    if element in NATIVE:
        return "", pa.list_(NATIVE[element])
    is_number = element == "numeric"
    inner = _numeric(width, keys.NO_MAPPING)[1] if is_number else pa.string()
    return "text[]", pa.list_(inner)


_CAST: Final = {
    "name": ("text", pa.string()),
    "oid": ("int8", pa.int64()),
    "xid8": ("text", pa.int64()),
    "money": ("numeric(19,2)", _MONEY),
}


def _numeric(width: int, mapping: str) -> tuple[str, pa.DataType]:
    if width < 0:
        return ("float8", pa.float64()) if mapping == keys.EAGER_DOUBLE else ("", _UNDECLARED)
    digits, scale = digits_of(width)
    if scale == 0 and mapping != keys.NO_MAPPING:
        for most, kind in _INTEGERS:
            if digits <= most:
                return "int8", kind
    is_double = mapping == keys.BEST_FIT and digits <= _EXACT_DOUBLE
    if scale > 0 and (is_double or mapping == keys.EAGER_DOUBLE):
        return "float8", pa.float64()
    if digits > _MOST_DIGITS or not 0 <= scale <= digits:
        return "text", pa.string()
    return "", pa.decimal128(digits, scale)


def _refuse_wide(values: pa.ChunkedArray, kind: pa.DataType) -> None:
    """Raise `pa.ArrowInvalid` for a text of too many digits for a decimal, which Arrow cuts."""
    if pa.types.is_list(kind):
        values, kind = pc.list_flatten(values), kind.value_type
    if pa.types.is_decimal(kind) and pa.types.is_string(values.type):
        most = kind.precision - kind.scale
        if pc.any(pc.match_substring_regex(values, rf"^-?\d{{{most + 1},}}(\.|$)")).as_py():
            raise pa.ArrowInvalid(f"it has more than {most} digits before the point")


def _refuse_wrapped(name: str, values: pa.ChunkedArray) -> None:
    """Raise `BadInput` for a timestamp that is too late for microseconds since 1970."""
    if pa.types.is_list(values.type):
        values = pc.list_flatten(values)
    if not pa.types.is_timestamp(values.type):
        return
    numbers = values.cast(pa.int64())
    lowest = pc.min(numbers).as_py()
    if lowest is None or lowest >= _FIRST_TIME:
        return
    ends = pa.array([ends[0] for ends in _INFINITE[False]], pa.int64())
    wrapped = pc.and_not(pc.less(numbers, _FIRST_TIME), pc.is_in(numbers, ends))
    if pc.any(wrapped).as_py():
        raise BadInput(
            f"column {name}: a time is after the year 294246, the last that 64 bits hold in "
            f"microseconds since 1970: correct it, or read it as text by {keys.QUERY}"
        )


def _finite(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace infinities by the ends of Spark's range."""
    kind = values.type
    if pa.types.is_list(kind) and pa.types.is_temporal(kind.value_type):
        lists = values.combine_chunks()
        inside = _finite(pa.chunked_array([lists.values])).combine_chunks()
        made = pa.ListArray.from_arrays(lists.offsets, inside, kind, mask=lists.is_null())
        return pa.chunked_array([made])
    is_date = kind == pa.date32()
    if not is_date and not pa.types.is_timestamp(kind):
        return values
    number = pa.int32() if is_date else pa.int64()
    (late, last), (early, first) = _INFINITE[is_date]
    numbers = values.cast(number)
    if pc.min(numbers).as_py() not in (late, early):  # they are before all times that there are
        return values
    for wrapped, end in ((late, last), (early, first)):
        is_end = pc.equal(numbers, pa.scalar(wrapped, number))
        numbers = pc.if_else(is_end, pa.scalar(end, number), numbers)
    return numbers.cast(kind)


class TableRefused(BadInput):
    """A table cannot be read as it is; the text names the remedy."""


def refuse_taken(name: str, columns: Sequence[str], *, is_logged: bool) -> None:
    """Raise `TableRefused` for columns whose values would be lost, or taken for something else."""
    own = _OF_ALL | _OF_LOG if is_logged else _OF_ALL
    taken = sorted(each for each in columns if each.lower() in own)  # Spark ignores the case
    if taken:
        names = ", ".join(taken)
        remedy = "" if is_logged else f", read it by {keys.QUERY} (SELECT … AS another name)"
        raise TableRefused(
            f"{name} has a column {names}, a name by which rows tell where they come from and what "
            f"happened to them, so that its values would be lost: rename it{remedy}, or leave the "
            f"table out by {keys.EXCLUDE}"
        )
