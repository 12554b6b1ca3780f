# pyright: basic
"""Proves that the readers of Spark and Arrow take a csv text as it is meant.

What the grammar matches needs no other scan, and in Spark no conversion of texts. Arrow reads fewer
dialects than Spark, and of the times of a text either those with a zone or those without.

The text is matched in chunks that end at line ends. The first one begins with a record, and a chunk
that matches is whole records, so that the next one begins with a record as well. These cuts stay
with the proof: whoever reads the text later, in parts and elsewhere, reads the chunks that were
matched. Arrow's parsers get nothing else.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Final, NamedTuple

from pyspark.sql.types import StructType

from ...spi.errors import BadInput
from ..spark.odd_texts import is_match
from .grammar import PlainForm, columns_of, record_pattern
from .style import CsvStyle, header_of

_CHUNK: Final = 256 << 10
"""The bytes that are matched at once; more would leave the processor's cache."""
_APART: Final = 1 << 20
"""The least distance of two cuts."""
_LONGEST: Final = 8 << 20
"""The longest record, in bytes."""
_UTC: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Zulu", "Etc/Zulu"})
"""Zones whose local times are those of UTC."""
_STYLED: Final = frozenset(
    "header sep delimiter quote escape nullvalue encoding charset comment timezone".split()  # noqa: SIM905
)
"""The options of Spark's reader, in lower case, that the form tells already."""


@dataclass(frozen=True, slots=True)
class CsvProof:
    """How Arrow reads a text that was matched."""

    columns: StructType
    """The columns in the order of the text, with the names of the schema."""
    cuts: tuple[int, ...]
    """The offsets in bytes at which chunks begin, each with a record, and the end of the text."""
    has_zones: bool | None = True
    """Whether each TIMESTAMP has a zone; if not, all are in UTC. None: Spark alone may read it."""
    line_end: str = "\n"
    header: tuple[str, ...] = ()
    """The names in the header; empty: it has none."""
    has_quoted_nothing: bool = False
    """Whether `""` may stand for an empty text or a null."""
    state: tuple[int, int] | None = None
    """The state of the file with the text (`arrow_reader.state_of`); None: it is in none."""


def ways_of_arrow(form: PlainForm) -> tuple[bool, ...]:
    """Return how Arrow may read a format: times with zones, or without; nothing if it may not."""
    style = form.style
    is_narrow = len(style.separator.encode()) == 1 and len(style.quote.encode()) <= 1
    if not is_narrow or style.trim or not form.options.keys() <= _STYLED:
        return ()
    return (True, False) if form.zone in _UTC else (True,)


class CsvHead(NamedTuple):
    """The beginning of a text, before its first record."""

    size: int
    names: tuple[str, ...]
    line_end: str


class RecordPattern(NamedTuple):
    """The expression that a text is matched with."""

    pattern: str
    line_end: str
    has_zones: bool | None
    """As in a proof."""

    def match(self, text: bytes) -> bool:
        """Return whether a chunk is whole records; the last one of a text may lack its end."""
        if text and not text.endswith(b"\n"):
            text += self.line_end.encode()
        return not text or (_is_utf8(text) and is_match(text, self.pattern))


def prove(stream: IO[bytes], form: PlainForm, names: Sequence[str]) -> CsvProof | None:
    """Match a whole text; None: it is not proved. `names` are its columns if it has no header."""
    if form.style.needs_copy or form.style.comment:
        return None
    try:
        return _prove(stream, form, names)
    except BadInput:  # a line is too long
        return None


def _prove(stream: IO[bytes], form: PlainForm, names: Sequence[str]) -> CsvProof | None:
    chunks = read_chunks(stream)
    first = next(chunks, b"")
    head = head_of(first, form.style)
    columns = columns_of(form, head.names if form.style.header else names)
    text = first[head.size :]
    if columns is None:
        return None
    records = records_of(text, form, columns, head.line_end, (*ways_of_arrow(form), None))
    if records is None:
        return None
    quote = form.style.quote.encode()
    quotes_nothing = _has_pair(text, quote)
    cuts, end = [head.size], len(first)
    for chunk in chunks:
        if not records.match(chunk):
            return None
        quotes_nothing = quotes_nothing or _has_pair(chunk, quote)
        if end - cuts[-1] >= _APART:
            cuts.append(end)
        end += len(chunk)
    rest = head.line_end, head.names, quotes_nothing
    return CsvProof(columns, (*cuts, end), records.has_zones, *rest)


def head_of(text: bytes, style: CsvStyle) -> CsvHead:
    """Return what precedes the first record; no names if the header is not plain."""
    mark = len(codecs.BOM_UTF8) if text.startswith(codecs.BOM_UTF8) else 0
    line = text[mark : text.find(b"\n") + 1]
    line_end = "\r\n" if line.endswith(b"\r\n") else "\n"
    if not style.header:
        return CsvHead(mark, (), line_end)
    names = _names_in(line.removesuffix(line_end.encode()), style)
    return CsvHead(mark + len(line), names, line_end)


def _names_in(line: bytes, style: CsvStyle) -> tuple[str, ...]:
    """Return the names in a header; nothing if it is no whole record of UTF-8."""
    quotes = line.count(style.quote.encode()) if style.quote else 0
    if not line or quotes % 2 or b"\r" in line or not _is_utf8(line):
        return ()
    try:
        return header_of(line, style)
    except BadInput:  # whoever reads the header reports it
        return ()


def records_of(
    text: bytes,
    form: PlainForm,
    columns: StructType,
    line_end: str,
    ways: Sequence[bool | None],
) -> RecordPattern | None:
    """Return the expression that the first chunk of a text matches; None: it matches none.

    `ways` says for each expression to try whether times have zones, as in a proof.
    """
    # A null text in quotes is null as well, and Arrow would take `""` for one.
    base = replace(form, line_end=line_end, has_empty=not form.style.nulls)
    for has_zones in ways:
        pattern = record_pattern(replace(base, has_zones=has_zones), columns)
        records = RecordPattern(pattern, line_end, has_zones)
        if pattern and records.match(text):
            return records
    return None


def _has_pair(text: bytes, quote: bytes) -> bool:
    # To look for one byte takes a twentieth of the time.
    return bool(quote) and quote in text and 2 * quote in text


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a text in chunks that end at line ends; raises `BadInput` for a line too long."""
    left = b""
    while data := stream.read(_CHUNK):
        data = left + data if left else data
        end = data.rfind(b"\n") + 1
        if not end and len(data) > _LONGEST:
            raise BadInput(f"a line has more than {_LONGEST} bytes")
        left = data[end:]
        if end:
            yield data[:end] if left else data
    if left:
        yield left
