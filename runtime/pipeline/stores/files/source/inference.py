# pyright: basic, reportAttributeAccessIssue=false
"""Schema inference from a sample of all files, as Spark's DDL.

The connector infers the schema once, without Spark, and passes it to its tasks. It samples each
file, since any file may have `NA` in a column of numbers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.types import DataType

from ....formats.evolution.arrow_columns import to_ddl
from ....formats.evolution.json_columns import fit_number_type, parse_lines, parse_value
from ....formats.evolution.merging import mark_long, merge_schemas, spelt_alike
from ....formats.evolution.parquet_types import (
    parquet_columns,
    refuse_unreadable,
    refuse_zone_clash,
)
from ....formats.evolution.policy import ADD_COLUMNS, DEAD_LETTER, EVOLUTION, FAIL, WIDEN
from ....spi.errors import BadInput, NotReady
from .. import keys
from ..csv_style import CsvStyle, header_of
from ..csv_types import NOTHING, has_texts, types_of
from ..line_ends import whole_records
from .listing import asking_about
from .text import decode, is_about_file, is_whole

MULTILINE_JSON: Final = "multiline json"
"""The format of json files that are one value of many lines each."""
_EXACT: Final = frozenset({"json", MULTILINE_JSON})
"""Formats whose names differ if their case does."""
_NO_LINE: Final = "no line is an object with a value: is `source.option.multiLine=true` missing?"
_NO_TYPES: Mapping[str, DataType] = {}
_UTC: Final = pa.timestamp("us", "UTC")
_LEAST_SAMPLE = 64 * 1024
_LARGEST_SAMPLE = 64 << 20
"""The most of a file to read for one incomplete record: a quote may have been left open."""


class TwinColumns(BadInput):
    """Column names differ at most in case, which Spark ignores; more files do not mend that."""


def infer_schema(  # noqa: PLR0913  # three of them have defaults
    fmt: str,
    files: Sequence[Path],
    style: CsvStyle,
    sample_bytes: int,
    *,
    tolerant: bool = False,
    evolution: str = FAIL,
    strict: bool = False,
    folders: Sequence[str] = (),
) -> str:
    """Return a schema that fits all files, as DDL.

    `sample_bytes` is divided among the files; at least the first 64 KiB of each are read. Files of
    one json value are read whole, until `sample_bytes` are read. Csv files with different columns
    are matched by their headers if `evolution` adds columns, and skipped if they will be dead
    letters.

    Unreadable files are skipped if another file is readable, since the task will report them;
    `strict`: they are errors. `tolerant`: csv rows with a wrong number of values are skipped.
    `folders` are the names of columns that folders have; they are texts.
    Raises `BadInput` with the file that does not fit, and `NotReady` if no csv file has a value.
    """
    share = max(_LEAST_SAMPLE, sample_bytes // max(1, len(files)))
    known: pa.Schema | None = None
    unread: BadInput | None = None
    for file in _sampled(files, sample_bytes) if fmt == MULTILINE_JSON else files:
        try:
            found = _schema(fmt, file, style, share, tolerant=tolerant)
        except BadInput as error:
            if strict or isinstance(error, TwinColumns) or not is_about_file(error):
                raise
            unread = unread or error
        else:
            found = found if fmt in _EXACT else spelt_alike(known, found)
            known = _joined(known, found, file, style if fmt == "csv" else None, evolution)
    if known is None or not known.names:
        raise unread or BadInput(f"no row to infer a schema from in {len(files)} file(s)")
    refuse_twins(known.names)
    if fmt == "csv" and {*known.types} == {NOTHING}:
        raise unread or NotReady(
            f"no value in {len(files)} file(s) to infer a schema from; put a file with values "
            f"there, or set `{keys.SOURCE_SCHEMA}`"
        )
    own = {name.lower() for name in known.names}
    named = [pa.field(name, pa.string()) for name in folders if name.lower() not in own]
    return to_ddl(pa.schema([*known, *named]))


def csv_columns(
    file: Path,
    style: CsvStyle,
    limit: int,
    known: Mapping[str, DataType],
    *,
    has_empty_texts: bool,
    tolerant: bool,
) -> pa.Schema | None:
    """Return the columns of one csv file that have a value in a sample; None: it is empty.

    A type for a column without values would be a guess, and permanent. Such a column becomes a
    STRING only if it may have a text: `""`, or a value after the sample.
    `known` has the types of the schema, by the names in lower case. `has_empty_texts`: the file may
    have `""`. `tolerant`: rows with a wrong number of values are skipped. Raises `BadInput`.
    """
    found = _schema("csv", file, style, limit, known, tolerant=tolerant)
    kinds = [each.type for each in found or () if each.name.lower() not in known]
    if found is None or NOTHING not in kinds:
        return found
    size = sum(map(len, decode(file, style.encoding, limit + 1)))
    if not is_whole(size, limit, style):
        return found
    are_texts = [False] * len(found)
    if has_empty_texts:
        are_texts = has_texts(_head(file, limit, style, "csv"), style, tolerant=tolerant)
    pairs = zip(found, are_texts, strict=True)
    return pa.schema([each for each, is_text in pairs if is_text or each.type != NOTHING])


def _schema(
    fmt: str,
    file: Path,
    style: CsvStyle,
    limit: int,
    known: Mapping[str, DataType] = _NO_TYPES,
    *,
    tolerant: bool = False,
) -> pa.Schema | None:
    try:
        if fmt == "parquet":
            with asking_about(file):
                return refuse_unreadable(parquet_columns(file))
        if fmt == MULTILINE_JSON:
            value = parse_value(_whole(file, style))
            return _json_schema(value, "it is not an object with a value")
        sample = _head(file, limit, style, fmt)
        if not sample.strip():
            return None
        if fmt == "csv":
            return _csv_schema(sample, style, file, known, tolerant=tolerant)
        return _json_schema(parse_lines(sample), _NO_LINE)
    except (pa.ArrowException, BadInput, OSError) as error:
        why = str(error).removeprefix(f"{file}: ")
        kind = TwinColumns if isinstance(error, TwinColumns) else BadInput
        told = f"{file}: cannot infer a schema from this {fmt}: {why}"
        raise kind(told) from error.__cause__ or error


def _head(file: Path, limit: int, style: CsvStyle, fmt: str) -> bytes:
    """Return the file's first complete records in UTF-8, decompressed."""
    while True:
        data = b"".join(decode(file, style.encoding, limit + 1))
        is_all = is_whole(len(data), limit, style)
        if fmt == "csv":
            data = b"".join(style.comments().without([data]))
        if is_all:
            return data if data.endswith(b"\n") else data + b"\n"  # it may be just a header
        marks = (style.quote, style.escape) if fmt == "csv" else ("", "")
        whole = whole_records(data, *marks)
        if 2 * len(whole) > len(data):  # else a record is as large as the sample: read more
            return whole
        if limit >= _LARGEST_SAMPLE and not whole:
            raise BadInput(f"no record ends in its first {limit} bytes: is a quote left open?")
        if limit >= _LARGEST_SAMPLE:
            return whole
        limit *= 4


def _sampled(files: Sequence[Path], sample_bytes: int) -> Iterator[Path]:
    """Yield files until their sizes exceed the size of the sample."""
    left = sample_bytes
    for file in files:
        if left < 0:
            return
        with suppress(OSError):  # reading the file reports the error
            left -= file.stat().st_size
        yield file


def _whole(file: Path, style: CsvStyle) -> bytes:
    """Return the whole file in UTF-8; raises `BadInput` if it is too large."""
    text = b"".join(decode(file, style.encoding, _LARGEST_SAMPLE + 1))
    if not is_whole(len(text), _LARGEST_SAMPLE, style):
        raise BadInput(
            f"one value of more than {_LARGEST_SAMPLE >> 20} MiB: set `{keys.SOURCE_SCHEMA}`"
        )
    return text


def _csv_schema(
    sample: bytes,
    style: CsvStyle,
    file: Path,
    known: Mapping[str, DataType],
    *,
    tolerant: bool,
) -> pa.Schema:
    names = list(header_of(sample, style)) if style.header else []
    refuse_twins(names, f"{file}: ")
    columns = types_of(sample, style, tolerant=tolerant)
    names = names or [f"_c{number}" for number in range(len(columns))]
    # A time without a zone is an instant in the session's zone, as in Spark's own inference.
    pairs = zip(names, columns, strict=True)
    kinds = [
        fit_number_type(_UTC if pa.types.is_timestamp(kind) else kind, known.get(name.lower()), it)
        for name, (kind, it) in pairs
    ]
    fields = map(mark_long, names, kinds, (values for _, values in columns))
    return pa.schema([*fields])


def refuse_twins(names: Sequence[str], where: str = "") -> None:
    """Raise `TwinColumns` for names that differ at most in case."""
    twins = Counter(name.lower() for name in names)
    alike = [name for name in names if twins[name.lower()] > 1]
    if alike:
        raise TwinColumns(
            f"{where}columns {_listed(alike)} differ at most in upper and lower case: rename all "
            "of them but one"
        )


def _json_schema(table: pa.Table, otherwise: str) -> pa.Schema:
    if not table.column_names:
        raise BadInput(otherwise)
    kinds = (_timeless(each) for each in table.schema.types)
    return pa.schema([*map(mark_long, table.column_names, kinds, table.columns)])


def _joined(
    known: pa.Schema | None,
    found: pa.Schema | None,
    file: Path,
    style: CsvStyle | None,
    evolution: str,
) -> pa.Schema | None:
    """Return the columns of all files so far.

    Raises `BadInput` for a csv file (`style` is given) with other columns, unless `evolution`
    allows them.
    """
    if known is None or found is None:
        return found if known is None else known
    refuse_zone_clash(known, found, file)
    adds = style is None or (style.header and evolution in {ADD_COLUMNS, WIDEN})
    if adds or known.names == found.names:
        return merge_schemas(known, found)
    if evolution == DEAD_LETTER:
        return known
    raise BadInput(
        f"{file}: its columns are {_listed(found.names)}, those of the files before it "
        f"{_listed(known.names)}: set `source.schema`, set {EVOLUTION}={ADD_COLUMNS}, or move it "
        "away"
    )


def _timeless(kind: pa.DataType) -> pa.DataType:
    """Return a JSON type with strings instead of the timestamps that Arrow infers."""
    if pa.types.is_struct(kind):
        fields = [field.with_type(_timeless(field.type)) for field in kind]
        return pa.struct(fields) if fields else pa.null()  # Spark cannot write empty structs
    if pa.types.is_list(kind):
        return pa.list_(_timeless(kind.value_type))
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _listed(names: Iterable[str]) -> str:
    return "(" + ", ".join(names) + ")"
