# pyright: basic, reportAttributeAccessIssue=false
"""Type inference for csv columns from a sample.

A type is inferred only if its values keep everything that the texts say: `01234` is not a number.
"""

import io
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from .style import CsvStyle

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


def types_of(
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
    """Tell for each column of complete records whether it has a text, even just `""`."""
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


def _keeps(kind: pa.DataType, texts: pa.ChunkedArray) -> bool:
    """Tell whether values of a type keep everything that their texts say."""
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


def _any(found: pa.ChunkedArray) -> bool:
    return pc.any(found).as_py() is True
