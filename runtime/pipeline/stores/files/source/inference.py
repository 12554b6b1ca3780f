# pyright: basic, reportAttributeAccessIssue=false
"""Schema inference from a sample of all files, as Spark's DDL.

The connector infers the schema once, without Spark, and passes it to its tasks. It samples each
file, since any file may have `NA` in a column of numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.types import DataType

from ....formats.csv.line_ends import whole_records
from ....formats.csv.style import CsvStyle
from ....formats.evolution.arrow_columns import to_ddl
from ....formats.evolution.policy import ADD_COLUMNS, DEAD_LETTER, EVOLUTION, FAIL, WIDEN
from ....formats.inference import (
    NOTHING,
    DuplicateColumns,
    csv_schema,
    has_texts,
    json_schema,
    json_value_schema,
    listed_names,
    merge_schemas,
    parquet_schema,
    refuse_duplicates,
    spelt_alike,
)
from ....formats.parquet import refuse_zone_clash
from ....spi.errors import BadInput, NotReady
from .. import keys
from .listing import asking_about
from .text import decode, is_about_file, is_whole

MULTILINE_JSON: Final = "multiline json"
"""The format of json files that are one value of many lines each."""
_EXACT: Final = frozenset({"json", MULTILINE_JSON})
"""Formats whose names differ if their case does."""
_NO_TYPES: Mapping[str, DataType] = {}
_LEAST_SAMPLE = 64 * 1024
_LARGEST_SAMPLE = 64 << 20
"""The most of a file to read for one incomplete record: a quote may have been left open."""


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
    merged: pa.Schema | None = None
    unread: BadInput | None = None
    for file in _sampled(files, sample_bytes) if fmt == MULTILINE_JSON else files:
        try:
            schema = _schema(fmt, file, style, share, tolerant=tolerant)
        except BadInput as error:
            if strict or isinstance(error, DuplicateColumns) or not is_about_file(error):
                raise
            unread = unread or error
        else:
            schema = schema if fmt in _EXACT else spelt_alike(merged, schema)
            merged = _joined(merged, schema, file, style if fmt == "csv" else None, evolution)
    if merged is None or not merged.names:
        raise unread or BadInput(f"no row to infer a schema from in {len(files)} file(s)")
    refuse_duplicates(merged.names)
    if fmt == "csv" and {*merged.types} == {NOTHING}:
        raise unread or NotReady(
            f"no value in {len(files)} file(s) to infer a schema from; put a file with values "
            f"there, or set `{keys.SOURCE_SCHEMA}`"
        )
    own = {name.lower() for name in merged.names}
    named = [pa.field(name, pa.string()) for name in folders if name.lower() not in own]
    return to_ddl(pa.schema([*merged, *named]))


def csv_columns(
    file: Path,
    style: CsvStyle,
    limit: int,
    types: Mapping[str, DataType],
    *,
    has_empty_texts: bool,
    tolerant: bool,
) -> pa.Schema | None:
    """Return the columns of one csv file that have a value in a sample; None: it is empty.

    A type for a column without values would be a guess, and permanent. Such a column becomes a
    STRING only if it may have a text: `""`, or a value after the sample.
    `types` are those of the schema, by names in lower case. `has_empty_texts`: the file may
    have `""`. `tolerant`: rows with a wrong number of values are skipped. Raises `BadInput`.
    """
    schema = _schema("csv", file, style, limit, types, tolerant=tolerant)
    kinds = [each.type for each in schema or () if each.name.lower() not in types]
    if schema is None or NOTHING not in kinds:
        return schema
    size = sum(map(len, decode(file, style.encoding, limit + 1)))
    if not is_whole(size, limit, style):
        return schema
    are_texts = [False] * len(schema)
    if has_empty_texts:
        are_texts = has_texts(_head(file, limit, style, "csv"), style, tolerant=tolerant)
    pairs = zip(schema, are_texts, strict=True)
    return pa.schema([each for each, is_text in pairs if is_text or each.type != NOTHING])


def _schema(
    fmt: str,
    file: Path,
    style: CsvStyle,
    limit: int,
    types: Mapping[str, DataType] = _NO_TYPES,
    *,
    tolerant: bool = False,
) -> pa.Schema | None:
    try:
        if fmt == "parquet":
            with asking_about(file):
                return parquet_schema(file)
        if fmt == MULTILINE_JSON:
            return json_value_schema(_whole(file, style))
        sample = _head(file, limit, style, fmt)
        if not sample.strip():
            return None
        if fmt == "csv":
            return csv_schema(sample, style, types, tolerant=tolerant)
        return json_schema(sample)
    except (pa.ArrowException, BadInput, OSError) as error:
        why = str(error).removeprefix(f"{file}: ")
        kind = DuplicateColumns if isinstance(error, DuplicateColumns) else BadInput
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


def _joined(
    merged: pa.Schema | None,
    schema: pa.Schema | None,
    file: Path,
    style: CsvStyle | None,
    evolution: str,
) -> pa.Schema | None:
    """Return the columns of all files so far.

    Raises `BadInput` for a csv file (`style` is given) with other columns, unless `evolution`
    allows them.
    """
    if merged is None or schema is None:
        return schema if merged is None else merged
    refuse_zone_clash(merged, schema, file)
    adds = style is None or (style.header and evolution in {ADD_COLUMNS, WIDEN})
    if adds or merged.names == schema.names:
        return merge_schemas(merged, schema)
    if evolution == DEAD_LETTER:
        return merged
    raise BadInput(
        f"{file}: its columns are {listed_names(schema.names)}, those of the files before it "
        f"{listed_names(merged.names)}: set `source.schema`, set {EVOLUTION}={ADD_COLUMNS}, or "
        "move it away"
    )
