"""The grammar of plain csv records: those whose values have one meaning only.

One narrow regular expression tells what such a record is: as many values as there are columns, each
of a form that has one meaning (`2013-01-01T10:00:00Z`, `-12.5`, a text without line ends), in
quotes or not. Two readers take plain records as they are meant, Spark's and Arrow's, each under
conditions of its own, which a `PlainForm` states. Texts that the grammar does not match need not be
wrong: it does not cover them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ..spark.odd_texts import escaped
from ..spark.text_values import TIMES, has_changes, pattern_given
from .style import CsvStyle

_FEWEST, _MOST = 2, 200
"""How many columns a record may have: Spark skips an empty line, which is null in a single column;
and with thousands the expression is slower than what it saves."""

_LEAP_YEAR: Final = (
    # From 1000 to 9999.
    "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[13579][26]|[2468][048])00)"
)
_DAY: Final = (
    "(?:[1-9][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    f"|(?:0[13578]|1[02])-31)|{_LEAP_YEAR}-02-29)"
)
_MINUTE: Final = "[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECOND: Final = r":[0-5][0-9](?:\.[0-9]{1,6})?"
_ZONE: Final = "(?:Z|[+-](?:0[0-9]|1[0-7])(?::?[0-5][0-9])?)"
_LOCAL: Final = f"{_DAY}(?:{_MINUTE}(?:{_SECOND})?)?"
_INSTANT: Final = f"{_DAY}{_MINUTE}{_SECOND}{_ZONE}"
_EITHER: Final = f"{_DAY}(?:{_MINUTE}(?:{_SECOND}{_ZONE}?)?)?"
"""A time with a zone or without; Spark takes no zone behind hours and minutes."""
PLAIN_TIMES: Final[Mapping[type[DataType], str]] = {
    DateType: _DAY,
    TimestampType: _INSTANT,
    TimestampNTZType: _LOCAL,
}
"""The texts of times that have one meaning in all zones."""
_INTEGERS: Final[dict[type[DataType], tuple[int, str]]] = {
    ByteType: (2, "|1[01][0-9]|12[0-7]"),
    ShortType: (4, "|[12][0-9]{4}|3[01][0-9]{3}|32[0-6][0-9]{2}"),
    IntegerType: (9, "|1[0-9]{9}|20[0-9]{8}"),
    LongType: (18, "|[1-8][0-9]{18}"),
}
"""How many digits an integer may have, and those with one more digit that fit as well."""
_IN_VALUES: Final = frozenset(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-:. \r\n"
)
"""The characters of values that are no texts, and of line ends."""


@dataclass(frozen=True, slots=True)
class PlainForm:
    """The format of a file in a session, which decides which records are plain."""

    columns: StructType
    style: CsvStyle
    options: Mapping[str, str] = field(hash=False)
    zone: str
    """The zone of times without one; empty: no time is plain."""
    is_inferred: bool
    """Whether the types were inferred, so that `01` is no number."""
    line_end: str = "\n"
    has_zones: bool | None = None
    """Whether each TIMESTAMP has a zone, or none has; None: each may have one or not."""
    has_empty: bool = False
    """Whether `""` is plain: an empty text, or null in a column of another type."""


def columns_of(form: PlainForm, names: Sequence[str]) -> StructType | None:
    """Return the columns of a file with their types; None: not all of them are in the schema."""
    known = {each.name.lower(): each for each in form.columns.fields}
    fields = [known.get(each.lower()) for each in names]
    found = [each for each in fields if each is not None]
    return StructType(found) if found and len(found) == len(fields) else None


@lru_cache(64)
def record_pattern(form: PlainForm, columns: StructType) -> str:
    r"""Return the expression for a text of plain records, each with its line end; empty: none is.

    Its bytes are UTF-8.
    """
    style = form.style
    marks = style.separator + style.quote + style.escape
    nulls = "".join(style.nulls)
    is_clear = not _IN_VALUES & {*marks} and not {*marks, "\r", "\n"} & {*nulls}
    is_distinct = not {*style.separator} & {*style.quote, *style.escape}
    # A line of blanks is skipped, also if these are separators.
    is_seen = style.separator.isspace() or style.separator > " "
    is_short = _FEWEST <= len(columns.fields) <= _MOST
    if not (is_clear and is_distinct and is_seen and is_short) or "linesep" in form.options:
        return ""
    values = [_value(form, each) for each in columns.fields]
    if not all(values):
        return ""
    end = escaped(form.line_end.encode())
    return rf"\A(?:{escaped(style.separator.encode()).join(values)}{end})*\z"


def _value(form: PlainForm, column: StructField) -> str:
    """Return the expression for a value of a column, which may be null; empty: there is none."""
    quote, escape = (each.encode() for each in (form.style.quote, form.style.escape))
    nothing = f"|{escaped(2 * quote)}" if quote and form.has_empty else ""
    if type(column.dataType) is StringType:
        other = rf"[^{escaped(form.style.separator.encode() + quote + escape)}\r\n]"
        if not quote:
            return f"{other}*"
        within = rf"[^{escaped(quote + escape)}\r\n]"
        pair = "" if escape else f"|{escaped(2 * quote)}"
        return f"(?:{other}*|{escaped(quote)}(?:{within}{pair})+{escaped(quote)}{nothing})"
    plain = "|".join(_plain(form, column.dataType))
    if not plain:
        return ""
    null = "".join(f"|{escaped(each.encode())}" for each in form.style.nulls)
    quoted = f"|{escaped(quote)}(?:{plain}){escaped(quote)}" if quote else ""
    return f"(?:{plain}{quoted}{null}{nothing})?"


def _plain(form: PlainForm, kind: DataType) -> Iterator[str]:
    """Yield the expressions for the texts of a type that have one meaning only."""
    if isinstance(kind, TIMES):
        if form.zone and not pattern_given(form.options, kind):
            yield from _times(form, kind)
    elif type(kind) in _INTEGERS:
        most, more = _INTEGERS[type(kind)]
        yield f"-?(?:{_digits(form, most)}{more})"
    elif isinstance(kind, DecimalType):
        yield f"-?{_number(form, kind.precision - kind.scale, kind.scale)}"
    elif isinstance(kind, DoubleType):
        yield rf"-?{_number(form, 20, 20)}(?:[eE][+-]?1?[0-9]{{1,2}})?"
    elif isinstance(kind, FloatType):
        yield rf"-?{_number(form, 14, 14)}(?:[eE][+-]?(?:[01]?[0-9]|2[0-2]))?"
    elif isinstance(kind, BooleanType):
        yield "(?i:true|false)"


def _number(form: PlainForm, whole: int, fraction: int) -> str:
    """Return the expression for numbers that may have a fraction, by the most digits of both."""
    digits = _digits(form, whole)
    part = f"[0-9]{{1,{fraction}}}"
    return rf"(?:{digits}(?:\.(?:{part})?)?|\.{part})" if fraction else digits


def _digits(form: PlainForm, most: int) -> str:
    """Return the expression for whole numbers; those that are inferred have no zeros before."""
    if not most:
        return "0"
    return f"(?:0|[1-9][0-9]{{0,{most - 1}}})" if form.is_inferred else f"[0-9]{{1,{most}}}"


def _times(form: PlainForm, kind: DataType) -> Iterator[str]:
    """Yield those of times; one without a zone is plain where clocks are never changed."""
    if isinstance(kind, DateType):
        yield _DAY
    elif isinstance(kind, TimestampNTZType):
        yield _LOCAL
    elif isinstance(kind, TimestampType):
        if form.has_zones or has_changes(form.zone):
            yield from () if form.has_zones is False else (_INSTANT,)
        else:
            yield _EITHER if form.has_zones is None else _LOCAL
