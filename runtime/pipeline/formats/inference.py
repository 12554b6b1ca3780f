# pyright: basic, reportAttributeAccessIssue=false
"""Inference of columns from samples of CSV, JSON and Parquet, and the union of what samples say.

Arrow reads a sample. A type is inferred only if its values keep everything that the texts say:
`01234` is not a number. The columns of several samples are merged, and a type that would lose
digits becomes a text (`merge_schemas`).

Nothing here knows where a sample comes from: the store names the file, or the records, in errors.
"""

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from pyspark.sql.types import DataType

from ..spi.errors import BadInput
from .csv.style import CsvStyle, header_of
from .evolution.arrow_columns import to_ddl
from .json.columns import fit_number_type, merge_columns, parse_lines, parse_value
from .parquet import parquet_columns, refuse_unreadable

_NO_LINE: Final = "no line is an object with a value: is `source.option.multiLine=true` missing?"
_UTC: Final = pa.timestamp("us", "UTC")
_LONG: Final = b"long"
"""Metadata key of a column with integers that lose digits as a DOUBLE."""
_MOST_EXACT: Final = 1 << 53

NOTHING: Final = pa.null()
"""The type of a column without any value."""
_TEXT: Final = pa.string()
_LONG_NUMBER = 16
"""The length from which a fraction may have more digits than a DOUBLE keeps."""
_FAR = r"[eE][+-]?[0-9]{3}"
"""Matches an exponent that may be out of a DOUBLE's range."""

# `01234`, `+1`, `1e5` and `0x1F` are taken for codes, not for numbers, since they would lose
# characters.
_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_FRACTION = (
    r"^-?(0|[1-9][0-9]*)?(\.[0-9]+|(\.[0-9]+)?[eE][+-][0-9]+|\.[0-9]+[eE][0-9]+)$"
    r"|^(0|-?[1-9][0-9]*)$|^(NaN|-?Inf|-?Infinity)$"
)
_TOO_FINE = r"\.[0-9]{7}"


class DuplicateColumns(BadInput):
    """Column names differ at most in case, which Spark ignores; more files do not mend that."""


def csv_schema(
    sample: bytes,
    style: CsvStyle,
    types: Mapping[str, DataType],
    *,
    tolerant: bool,
) -> pa.Schema:
    """Return the columns of complete csv records, and their header if there is one.

    `types` are those of the schema, by names in lower case; `tolerant`: rows with a wrong
    number of values are skipped. Raises `BadInput`, `ArrowException`.
    """
    names = list(header_of(sample, style)) if style.header else []
    refuse_duplicates(names)
    columns = csv_types(sample, style, tolerant=tolerant)
    names = names or [f"_c{number}" for number in range(len(columns))]
    # A time without a zone is an instant in the session's zone, as in Spark's own inference.
    pairs = zip(names, columns, strict=True)
    kinds = [
        fit_number_type(_UTC if pa.types.is_timestamp(kind) else kind, types.get(name.lower()), it)
        for name, (kind, it) in pairs
    ]
    fields = map(mark_long, names, kinds, (values for _, values in columns))
    return pa.schema([*fields])


def csv_types(
    sample: bytes, style: CsvStyle, *, tolerant: bool
) -> list[tuple[pa.DataType, pa.ChunkedArray]]:
    """Infer the type of each column of complete records; raises `ArrowException`.

    Returns the values, too. `tolerant`: rows with a wrong number of values are skipped.
    """
    table = _parsed(sample, style, {}, tolerant=tolerant)
    kinds = dict(zip(table.schema.names, table.schema.types, strict=True))
    # Parse these columns as text as well, to see whether the type keeps the texts.
    typed = {name: _TEXT for name, kind in kinds.items() if kind not in (_TEXT, NOTHING)}
    texts = _parsed(sample, style, typed, tolerant=tolerant) if typed else table
    for name in typed:
        if not _keeps(kinds[name], _trimmed(texts.column(name), style)):
            kinds[name] = _TEXT
    return list(zip(kinds.values(), table.columns, strict=True))


def has_texts(sample: bytes, style: CsvStyle, *, tolerant: bool) -> list[bool]:
    """Return for each column of complete records whether it has a text, even just `""`."""
    names = _parsed(sample, style, {}, tolerant=tolerant).column_names
    texts = _parsed(sample, style, dict.fromkeys(names, _TEXT), tolerant=tolerant, has_empty=True)
    return [each.null_count < len(each) for each in texts.columns]


def _parsed(
    sample: bytes,
    style: CsvStyle,
    types: dict[str, pa.DataType],
    *,
    tolerant: bool,
    has_empty: bool = False,
) -> pa.Table:
    sample, style = _with_marks_of_a_byte(sample, style)
    return pacsv.read_csv(
        io.BytesIO(sample.lstrip(b"\r\n")),
        # By position, since several columns may have no name.
        read_options=pacsv.ReadOptions(
            autogenerate_column_names=True,
            skip_rows_after_names=int(style.header),
            block_size=len(sample) + 1,
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=style.separator,
            quote_char=style.quote or False,
            double_quote=not style.escape,
            escape_char=style.escape or False,
            newlines_in_values=True,
            invalid_row_handler=(lambda _: "skip") if tolerant else None,
        ),
        convert_options=pacsv.ConvertOptions(
            column_types=types,
            null_values=["", *style.nulls],
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=not has_empty,
        ),
    )


def _with_marks_of_a_byte(sample: bytes, style: CsvStyle) -> tuple[bytes, CsvStyle]:
    """Replace separator, quote and escape of several bytes, which Arrow does not take.

    Bytes that the sample has nowhere stand for them. Raises `BadInput` if there is none.
    """
    free = (byte for byte in range(1, 0x20) if byte not in b"\t\n\r" and byte not in sample)
    others: dict[str, str] = {}
    for mark in (style.separator, style.quote, style.escape):
        if len(mark.encode()) > 1 and mark not in others:
            byte = next(free, None)
            if byte is None:
                raise BadInput(f"set `source.schema`: Arrow does not take {mark!r} here")
            sample = sample.replace(mark.encode(), bytes([byte]))
            others[mark] = chr(byte)
    separator, quote, escape = (
        others.get(each, each) for each in (style.separator, style.quote, style.escape)
    )
    return sample, replace(style, separator=separator, quote=quote, escape=escape)


def _keeps(kind: pa.DataType, texts: pa.ChunkedArray) -> bool:
    """Return whether values of a type keep everything that their texts say."""
    if pa.types.is_timestamp(kind):
        return not _any(pc.match_substring_regex(texts, _TOO_FINE))
    if pa.types.is_integer(kind):
        return not _any(pc.invert(pc.match_substring_regex(texts, _INTEGER)))
    if not pa.types.is_floating(kind):
        return True
    if _any(pc.invert(pc.match_substring_regex(texts, _FRACTION))):
        return False
    is_long = pc.greater_equal(pc.binary_length(texts), _LONG_NUMBER)
    long = texts.filter(pc.or_(is_long, pc.match_substring_regex(texts, _FAR)))
    return all(Decimal(text) == Decimal(repr(float(text))) for text in long.to_pylist())


def _trimmed(texts: pa.ChunkedArray, style: CsvStyle) -> pa.ChunkedArray:
    if not style.trim:
        return texts
    trimmed = pc.utf8_trim_whitespace(texts)
    return trimmed.filter(pc.not_equal(trimmed, ""))


def _any(values: pa.ChunkedArray) -> bool:
    return pc.any(values).as_py() is True


def json_schema(sample: bytes) -> pa.Schema:
    """Return the columns of complete lines with a JSON object each; raises `BadInput`."""
    return _json_schema(parse_lines(sample), _NO_LINE)


def json_value_schema(text: bytes) -> pa.Schema:
    """Return the columns of a text that is one object or one list of them; raises `BadInput`."""
    return _json_schema(parse_value(text), "it is not an object with a value")


def infer_json(sample: bytes, where: str) -> str:
    """Return the columns of complete lines with a JSON object each, as DDL.

    Raises `BadInput`, which names the place of the sample.
    """
    try:
        schema = json_schema(sample)
    except (pa.ArrowException, BadInput) as error:
        raise BadInput(f"{where}: cannot infer a schema from this json: {error}") from error
    refuse_duplicates(schema.names)
    return to_ddl(schema)


def parquet_schema(file: Path) -> pa.Schema:
    """Return the columns of a parquet file that Spark can read; raises `BadInput`."""
    return refuse_unreadable(parquet_columns(file))


def refuse_duplicates(names: Sequence[str], where: str = "") -> None:
    """Raise `DuplicateColumns` for names that differ at most in case."""
    duplicates = Counter(name.lower() for name in names)
    alike = [name for name in names if duplicates[name.lower()] > 1]
    if alike:
        raise DuplicateColumns(
            f"{where}columns {listed_names(alike)} differ at most in upper and lower case: rename "
            "all of them but one"
        )


def _json_schema(table: pa.Table, otherwise: str) -> pa.Schema:
    if not table.column_names:
        raise BadInput(otherwise)
    kinds = (_timeless(each) for each in table.schema.types)
    return pa.schema([*map(mark_long, table.column_names, kinds, table.columns)])


def _timeless(kind: pa.DataType) -> pa.DataType:
    """Return a JSON type with strings instead of the timestamps that Arrow infers."""
    if pa.types.is_struct(kind):
        fields = [field.with_type(_timeless(field.type)) for field in kind]
        return pa.struct(fields) if fields else pa.null()  # Spark cannot write empty structs
    if pa.types.is_list(kind):
        return pa.list_(_timeless(kind.value_type))
    return pa.string() if pa.types.is_timestamp(kind) else kind


def listed_names(names: Iterable[str]) -> str:
    """Return column names as messages list them."""
    return "(" + ", ".join(names) + ")"


def mark_long(name: str, kind: pa.DataType, values: pa.ChunkedArray) -> pa.Field:
    """Return a column, marked if it has integers of more digits than a DOUBLE keeps."""
    ends = pc.min_max(values).as_py().values() if kind == pa.int64() == values.type else ()
    is_long = any(each is not None and abs(each) > _MOST_EXACT for each in ends)
    return pa.field(name, kind, metadata={_LONG: b""} if is_long else None)


def spelt_alike(one: pa.Schema | None, other: pa.Schema | None) -> pa.Schema | None:
    """Return the other columns with the names of the first ones, where they differ in case only."""
    if one is None or other is None:
        return other
    spelt = {name.lower(): name for name in one.names}
    return pa.schema([each.with_name(spelt.get(each.name.lower(), each.name)) for each in other])


def merge_schemas(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return the columns of both; integers and fractions become STRING if DOUBLE loses digits."""
    long = {each.name for each in (*one, *other) if _LONG in (each.metadata or {})}
    mixed = {each for each in long if {pa.int64(), pa.float64()} == _types_of(each, one, other)}
    both = [
        pa.schema([each.with_type(pa.string()) if each.name in mixed else each for each in schema])
        for schema in (one, other)
    ]
    merged = _united(*both)
    marked = [each.with_metadata({_LONG: b""}) if each.name in long else each for each in merged]
    return pa.schema(marked)


def _types_of(name: str, *schemas: pa.Schema) -> set[pa.DataType]:
    return {schema.field(name).type for schema in schemas if name in schema.names}


def _united(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    try:
        return pa.unify_schemas([one, other], promote_options="permissive")
    except pa.ArrowException:
        return merge_columns(one, other)
