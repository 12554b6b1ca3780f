# pyright: basic
"""Proves that a csv text consists of plain records, which Spark's reader takes as they are meant.

One narrow grammar tells what such a record is: as many values as there are columns, each of a form
that has one meaning only (`2013-01-01T10:00:00Z`, `-12.5`, a text without line ends), in quotes or
not. What it matches needs no other scan, and no conversion of texts. All other texts are looked
through by `line_ends` and `odd_texts`: they need not be wrong, but the proof does not cover them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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

from ...spi.errors import BadInput
from ..spark.odd_texts import escaped, is_match
from ..spark.text_values import TIMES, has_changes, pattern_given
from .style import CsvStyle, header_of

_FEWEST, _MOST = 2, 200
"""How many columns a record may have: Spark skips an empty line, which is null in a single column;
and with thousands the expression is slower than what it saves."""
_LONGEST: Final = 1 << 20
"""The longest record, in bytes: its beginning is copied with each chunk."""

_LEAP_YEAR: Final = (
    "(?:[12][0-9](?:0[48]|[2468][048]|[13579][26])|(?:1[26]|2[048])00)"  # from 1000 to 2999
)
_DAY: Final = (
    "(?:[12][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    f"|(?:0[13578]|1[02])-31)|{_LEAP_YEAR}-02-29)"
)
_MINUTE: Final = "[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECOND: Final = r":[0-5][0-9](?:\.[0-9]{1,6})?"
_ZONE: Final = "(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])"
_INTEGERS: Final[dict[type[DataType], tuple[int, str]]] = {
    ByteType: (2, ""),
    ShortType: (4, ""),
    IntegerType: (9, "|1[0-9]{9}"),
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
    options: Mapping[str, str]
    zone: str
    """The zone of times without one; empty: no time is plain."""
    is_inferred: bool
    """Whether the types were inferred, so that `01` is no number."""


class PlainRecords:
    """Finds how far a csv text consists of plain records, chunk by chunk."""

    def __init__(self, form: PlainForm, names: Sequence[str], odd: str) -> None:
        """Begin a text of a format, with the names of the columns if it has no header.

        `odd` is the pattern of odd texts, for what is not plain.
        """
        self._form = form
        self._names = names
        self.odd = odd
        self._pattern = ""
        """The expression of plain records; empty: none is plain."""
        self._has_begun = False
        self._held = b""
        """The beginning of a record, whose end comes with the next chunk."""
        self.columns: StructType | None = None
        """The columns for which all that was seen is plain; None: not all of it is."""

    def feed(self, chunk: bytes, *, is_last: bool = False) -> bytes:
        """Return the part of the text so far that is not known to be plain.

        It begins with the text itself, or with the end of a plain record.
        """
        if not chunk and not is_last:
            return b""
        if not self._has_begun:
            self._has_begun = True
            left, data = b"", self._begin(chunk)
        elif self.columns is not None:
            left, data = b"\n", self._held + chunk
        else:
            return chunk
        end = len(data) if is_last else data.rfind(b"\n") + 1
        self._held = data[end:]
        if self.columns is not None and len(self._held) <= _LONGEST and self._is_plain(data[:end]):
            return b""
        self.columns = None
        return left + data if left else chunk

    def _is_plain(self, text: bytes) -> bool:
        if text and not text.endswith(b"\n"):
            text += b"\n"
        return not text or is_match(text, self._pattern)

    def _begin(self, text: bytes) -> bytes:
        """Find the columns; return the text without its header."""
        style = self._form.style
        end = text.find(b"\n") + 1 if style.header else 0
        names = _names_of(text[:end], style) if style.header else self._names
        columns = _columns_of(self._form, names)
        self._pattern = record_pattern(self._form, columns) if columns else ""
        self.columns = columns if self._pattern else None
        return text[end:]


def _names_of(header: bytes, style: CsvStyle) -> tuple[str, ...]:
    """Return the names in a plain header; nothing if it is none."""
    marks = {b"\r", style.quote.encode(), style.escape.encode()} - {b""}
    if not header.endswith(b"\n") or any(each in header for each in marks):
        return ()
    try:
        return header_of(header, style)
    except BadInput:  # whoever reads the header reports it
        return ()


def _columns_of(form: PlainForm, names: Sequence[str]) -> StructType | None:
    """Return the columns of a file with their types; None: not all of them are in the schema."""
    known = {each.name.lower(): each for each in form.columns.fields}
    fields = [known.get(each.lower()) for each in names]
    found = [each for each in fields if each is not None]
    return StructType(found) if found and len(found) == len(fields) else None


def record_pattern(form: PlainForm, columns: StructType) -> str:
    r"""Return the expression for a text of plain records, each with its `\n`; empty: there is none.

    Its bytes are UTF-8.
    """
    style = form.style
    marks = style.separator + style.quote + style.escape
    nulls = "".join(style.nulls)
    is_clear = not _IN_VALUES & {*marks} and not {*marks, "\r", "\n"} & {*nulls}
    # A line of blanks is skipped, also if these are separators.
    is_seen = style.separator.isspace() or style.separator > " "
    is_short = _FEWEST <= len(columns.fields) <= _MOST
    is_one_null = len(style.nulls) <= 1
    if not (is_clear and is_seen and is_short and is_one_null) or "linesep" in form.options:
        return ""
    values = [_value(form, each) for each in columns.fields]
    if not all(values):
        return ""
    return rf"\A(?:{escaped(style.separator.encode()).join(values)}\n)*\z"


def _value(form: PlainForm, column: StructField) -> str:
    """Return the expression for a value of a column, which may be null; empty: there is none."""
    quote, escape = (each.encode() for each in (form.style.quote, form.style.escape))
    if type(column.dataType) is StringType:
        other = rf"[^{escaped(form.style.separator.encode() + quote + escape)}\r\n]"
        if not quote:
            return f"{other}*"
        within = rf"[^{escaped(quote + escape)}\r\n]"
        pair = "" if escape else f"|{escaped(2 * quote)}"
        return f"(?:{other}*|{escaped(quote)}(?:{within}{pair})+{escaped(quote)})"
    plain = "|".join(_plain(form, column.dataType))
    if not plain:
        return ""
    null = "".join(f"|{escaped(each.encode())}" for each in form.style.nulls)
    quoted = f"|{escaped(quote)}(?:{plain}){escaped(quote)}" if quote else ""
    return f"(?:{plain}{quoted}{null})?"


def _plain(form: PlainForm, kind: DataType) -> Iterator[str]:
    """Yield the expressions for the texts of a type that have one meaning only."""
    if isinstance(kind, TIMES):
        if form.zone and not pattern_given(form.options, kind):
            yield from _times(kind, is_fixed=not has_changes(form.zone))
    elif type(kind) in _INTEGERS:
        most, more = _INTEGERS[type(kind)]
        yield f"-?(?:{_digits(form, most)}{more})"
    elif isinstance(kind, DecimalType):
        whole = _digits(form, kind.precision - kind.scale)
        yield f"-?{whole}" + (rf"(?:\.[0-9]{{1,{kind.scale}}})?" if kind.scale else "")
    elif isinstance(kind, DoubleType):
        yield rf"-?{_digits(form, 20)}(?:\.[0-9]{{1,20}})?(?:[eE][+-]?[0-9]{{1,2}})?"
    elif isinstance(kind, FloatType):
        yield rf"-?{_digits(form, 14)}(?:\.[0-9]{{1,14}})?"
    elif isinstance(kind, BooleanType):
        yield "(?i:true|false)"


def _digits(form: PlainForm, most: int) -> str:
    """Return the expression for whole numbers; those that are inferred have no zeros before."""
    if not most:
        return "0"
    return f"(?:0|[1-9][0-9]{{0,{most - 1}}})" if form.is_inferred else f"[0-9]{{1,{most}}}"


def _times(kind: DataType, *, is_fixed: bool) -> Iterator[str]:
    """Yield those of a type; `is_fixed`: the clocks of the zone are never changed."""
    if isinstance(kind, DateType):
        yield _DAY
    elif isinstance(kind, TimestampNTZType):
        yield f"{_DAY}(?:{_MINUTE}(?:{_SECOND})?)?"
    elif isinstance(kind, TimestampType):
        # Spark takes no zone behind hours and minutes.
        local = f"{_DAY}(?:{_MINUTE}(?:{_SECOND}{_ZONE}?)?)?"
        yield local if is_fixed else f"{_DAY}{_MINUTE}{_SECOND}{_ZONE}"
