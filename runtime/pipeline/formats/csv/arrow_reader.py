# pyright: basic, reportAttributeAccessIssue=false
"""Reads proved csv text with Arrow, in this process or in a task of Spark.

Executors may have neither fairlead nor PySpark's helpers: this module needs Arrow alone, and what
it works on are plain values.
"""

import codecs
import io
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise, product
from typing import IO, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.csv as pacsv

_INSTANT: Final = pa.timestamp("us", "UTC")
_LOCAL: Final = pa.timestamp("us")
_AT_ONCE: Final = 1 << 20
"""The least bytes that are read at once, if there are enough: each table has its cost."""


class CsvReading(NamedTuple):
    """How a batch of files is read."""

    schema: Any
    """The columns of the rows, as an Arrow schema."""
    separator: str
    quote: str
    """Empty: nothing is quoted."""
    nulls: tuple[str, ...]
    """The texts for null, beside an empty field."""


class TextRange(NamedTuple):
    """Chunks of one file, each of whole records."""

    path: str
    cuts: tuple[int, ...]
    """The offsets at which chunks begin, and the end of the last one."""
    names: tuple[str, ...]
    """The columns in the order of the file."""
    has_zones: bool
    """Whether times of the type TIMESTAMP have a zone."""
    codec: str = ""
    """How the file is compressed, in Arrow's words; empty: not at all. Offsets are of its text."""
    state: tuple[int, int] | None = None
    """The state of the file when it was proved (`state_of`); None: any."""


class TextChangedError(OSError):
    """A file is not as it was when it was proved."""


def state_of(file: IO[bytes]) -> tuple[int, int]:
    """Return the size and the time of the last change (ctime) of an open file, in ns."""
    found = os.fstat(file.fileno())
    return found.st_size, found.st_ctime_ns


def read_ranges(how: CsvReading, ranges: Sequence[TextRange]) -> Iterator[pa.Table]:
    """Yield the rows of ranges as tables of the schema; raises `pa.ArrowException`, `OSError`."""
    for (names, has_zones), alike in groupby(ranges, lambda each: (each.names, each.has_zones)):
        options = [*_options(how, names, has_zones=has_zones)]
        for text in _joined(alike):
            yield _table(how, names, text, options)


def _joined(ranges: Iterable[TextRange]) -> Iterator[bytes]:
    """Yield the records of ranges, those of small files together."""
    held: list[bytes] = []
    size = 0
    for each in ranges:
        for text in _chunks(each):
            # At its end Arrow takes an empty value for one in quotes if that before it is.
            held.append(text if text.endswith(b"\n") else text + b"\n")
            size += len(text)
            if size >= _AT_ONCE:
                yield b"".join(held)
                held, size = [], 0
    if held:
        yield b"".join(held)


def _chunks(where: TextRange) -> Iterator[bytes]:
    with _opened(where) as stream:
        for begin, end in pairwise(where.cuts):
            text = stream.read(end - begin)
            if len(text) != end - begin:
                raise TextChangedError(f"{where.path} became shorter while it was read")
            if text:
                yield text


@contextmanager
def _opened(where: TextRange) -> Generator[IO[bytes]]:
    """Open the text of a file at the first chunk; what took its place since is refused."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(where.path, flags), "rb") as file:
        if where.state not in {None, state_of(file)}:
            raise TextChangedError(f"{where.path} changed after it was proved")
        if not where.codec:
            file.seek(where.cuts[0])
            yield file
            return
        with pa.input_stream(file, compression=where.codec) as stream:
            stream.read(where.cuts[0])
            yield stream


def _table(
    how: CsvReading, names: tuple[str, ...], text: bytes, options: list[pacsv.ConvertOptions]
) -> pa.Table:
    """Return the rows of a text.

    `""` is null in a column of another type and an empty text in one of texts, but Arrow knows one
    rule for all columns: where it occurs, these are read apart.
    """
    parse = pacsv.ParseOptions(
        delimiter=how.separator,
        quote_char=how.quote or False,
        escape_char=False,
        newlines_in_values=False,
        ignore_empty_lines=False,
    )
    if text.startswith(codecs.BOM_UTF8):  # of a value, which Arrow would leave out
        text = codecs.BOM_UTF8 + text
    read = pacsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=list(names))
    is_apart = how.quote and not how.nulls and 2 * how.quote.encode() in text
    passes = options[1:] if is_apart else options[:1]
    tables = [pacsv.read_csv(io.BytesIO(text), read, parse, each) for each in passes]
    found = {name: table.column(name) for table in tables for name in table.column_names}
    rows = tables[0].num_rows if tables else 0
    columns = []
    for field in how.schema:
        column = found.get(field.name)
        if column is None:
            column = pa.chunked_array([pa.nulls(rows, field.type)])
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=how.schema)


def _options(
    how: CsvReading, columns: tuple[str, ...], *, has_zones: bool
) -> Iterator[pacsv.ConvertOptions]:
    """Yield the options to read all columns at once; then those of texts, and of all others."""
    local = {_INSTANT: _INSTANT if has_zones else _LOCAL}
    types = {
        each.name: local.get(each.type, each.type) for each in how.schema if each.name in columns
    }
    texts = [name for name in columns if types[name] == pa.string()]
    others = [name for name in columns if types[name] != pa.string()]
    yield _converting(how, types, [], quotes_null=bool(how.nulls))
    for names, quotes_null in ((texts, False), (others, True)):
        if names:
            yield _converting(how, types, names, quotes_null=quotes_null)


def _converting(
    how: CsvReading, types: dict[str, Any], names: list[str], *, quotes_null: bool
) -> pacsv.ConvertOptions:
    return pacsv.ConvertOptions(
        column_types=types,
        include_columns=names,
        null_values=["", *how.nulls],
        strings_can_be_null=True,
        quoted_strings_can_be_null=quotes_null,
        true_values=[*_spellings("true")],
        false_values=[*_spellings("false")],
        timestamp_parsers=[pacsv.ISO8601],
    )


def _spellings(word: str) -> Iterator[str]:
    """Yield a word in capitals and small letters, however mixed."""
    yield from map("".join, product(*zip(word, word.upper(), strict=True)))
