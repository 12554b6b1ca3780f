# pyright: basic
"""Reads csv files as Spark frames: by Spark's types where these say the same as the texts.

Times are read as texts unless all records of a file are plain (`plain_records`), and so are all
columns of a file that Spark would misread. The texts are converted afterwards (`text_values`).
"""

from collections.abc import Container, Sequence
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from ....engines.sessions import read_csv
from ....engines.spelling import path_to_read, quoted
from ..copies import FileSurvey
from ..rows.bad_rows import FILE, RAW, refuse_value, with_file, with_texts
from ..rows.text_values import TIMES, TextValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from .formats import ReadFormat


class _Way(NamedTuple):
    """How some files are read."""

    line_end: str
    is_by_lines: bool
    is_as_text: bool
    """Whether all columns are read as texts."""
    is_plain: bool
    """Whether times are read as such."""


def read_csv_files(
    form: "ReadFormat", spark: "SparkSession", files: Sequence[FileSurvey]
) -> "DataFrame":
    """Return the rows of csv files with the same columns, including bad rows if these are kept."""
    schema = form.columns
    is_one = len(schema.fields) == 1  # a null is an empty line then, which a line reader skips
    named = sorted(
        (
            _Way(
                each.line_end,
                each.is_by_lines and not is_one,
                _is_misread(form, each),
                each.plain == schema,
            ),
            each.path,
        )
        for each in files
    )
    frames = [
        _read(form, spark, way, [path for _, path in group])
        for way, group in groupby(named, lambda each: each[0])
    ]
    return reduce(lambda one, other: one.unionAll(other), frames)


def _is_misread(form: "ReadFormat", found: FileSurvey) -> bool:
    """Tell whether to read all of a file as text and convert it afterwards, which costs more.

    Spark's reader knows only one text for null, refuses `""` in a number column instead of reading
    null, and takes `01234` for a number.
    """
    has_types = any(not isinstance(each.dataType, StringType) for each in form.columns.fields)
    is_misread = found.quotes_nothing or found.is_odd
    return len(form.style.nulls) > 1 or (is_misread and has_types)


def _read(
    form: "ReadFormat", spark: "SparkSession", way: _Way, files: Sequence[Path]
) -> "DataFrame":
    nulls, as_text = form.style.nulls, way.is_as_text
    # `""` is not null, so null needs a text that no file has.
    null = nulls[0] if len(nulls) == 1 and not as_text else form.null_stand_in
    by_lines = str(not way.is_by_lines).lower()
    how = {"nullvalue": null, "linesep": way.line_end, "multiline": by_lines}
    read = [_column(each, way) for each in form.columns.fields]
    texts = {one.name for one in read if as_text or one not in form.columns.fields}
    beside = (*form.folders, *([RAW] if form.parts_rows else ()))
    given = with_texts(StructType(read), beside)
    paths = [path_to_read(each) for each in files]
    frame = read_csv(spark, given, {**how, **form.reader_options()}, paths)
    frame = with_file(frame) if form.parts_rows else frame
    return _typed(form, frame, texts, form.text_values(spark)) if texts else frame


def _column(column: StructField, way: _Way) -> StructField:
    """Return the column that Spark reads."""
    is_text = way.is_as_text or (isinstance(column.dataType, TIMES) and not way.is_plain)
    return StructField(column.name, StringType()) if is_text else column


def _typed(
    form: "ReadFormat", frame: "DataFrame", texts: Container[str], values: TextValues
) -> "DataFrame":
    """Convert text columns to their types."""
    is_strict = form.reader_options()["mode"].upper() == "FAILFAST"
    fits: Column = sf.expr("true")
    columns: list[Column] = [frame[quoted(name)] for name in form.folders]
    for each in form.columns.fields:
        text = frame[quoted(each.name)]
        if each.name not in texts:
            columns.append(text)
            continue
        value, is_misfit = (of(text, each.dataType) for of in (values.value, values.is_misfit))
        if is_strict:
            otherwise = refuse_value(text, each, values.hint(text, each.dataType))
            fits = sf.when(is_misfit, otherwise).otherwise(fits)
        else:
            fits = ~is_misfit & fits
            value = sf.when(~is_misfit, value)
        columns.append(value.alias(each.name))
    if is_strict:
        return frame.where(fits).select(*columns)
    return _with_bad_rows(form, frame, columns, fits) if form.parts_rows else frame.select(*columns)


def _with_bad_rows(
    form: "ReadFormat", frame: "DataFrame", columns: "Sequence[Column]", fits: "Column"
) -> "DataFrame":
    read = sf.struct(*(frame[quoted(each.name)] for each in form.columns.fields))
    row = sf.when(~fits, sf.to_csv(read, form.parser_options()))
    return frame.select(*columns, sf.coalesce(frame[RAW], row).alias(RAW), FILE)
