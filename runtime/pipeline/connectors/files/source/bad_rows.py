# pyright: basic
"""Separates rows that do not fit the schema, and finds the reason for each.

Spark's reader keeps the text of such a row in a corrupt-record column, without the bad value or the
line number. So the bad value is searched in these rows by a second parse.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    NumericType,
    StringType,
    StructField,
    StructType,
)

from ....batches.counting import Passing
from ....batches.row_files import path_of
from ....spark.spelling import path_to_read, quoted
from ....spi.rows import Rejects
from ..copies import FileSurvey
from ..numeric_codes import NUMERIC_CODE
from ..small_integers import IN_PARQUET, is_misfit, is_widened, widened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader

RAW: Final = "__fairlead_raw"
"""The column with the text of a bad row; null in good rows."""
FILE: Final = "__fairlead_file"
_BAD, _KEPT = "bad", "kept"
BAD_VALUE: Final = "fairlead bad value"
"""The beginning of a job's error for a bad value; the file and the reason follow."""
_QUOTED: Final = 100
"""How many characters of a bad value an error shows."""
_OF_CODES: Final = (
    ", which loses zeros or a sign as a number: give the columns in `source.schema`, this one as "
    "STRING, or as a number type to read it as a number"
)
KEEPING: Final = {"mode": "PERMISSIVE", "columnnameofcorruptrecord": RAW}
"""Options of Spark's readers, in lower case, to keep bad rows."""


def with_raw(schema: StructType) -> StructType:
    """Return a schema with the column for bad rows added."""
    return StructType([*schema.fields, StructField(RAW, StringType())])


def with_file(frame: "DataFrame") -> "DataFrame":
    """Add a column with the URI of each row's file."""
    return frame.select("*", frame.metadataColumn("_metadata")["file_path"].alias(FILE))


def split_bad_rows(
    frame: "DataFrame", reason: "Column", originals: Mapping[str, Path]
) -> "tuple[DataFrame, Rejects]":
    """Return the good rows, and the bad ones with `reason`, an expression over `RAW`.

    `originals` has the input file of each copy, by the path of the copy.
    """
    passing = Passing()
    names = [each for each in frame.columns if each not in {RAW, FILE}]
    is_bad = sf.col(RAW).isNotNull()
    # This uses all columns: the json reader parses only used columns, and would miss bad values.
    every = sf.first(sf.struct(*(sf.col(quoted(each)) for each in names))).alias(_KEPT)
    counted = passing.on(frame, sf.count_if(is_bad).alias(_BAD), every)
    good = counted.where(~is_bad).select(*(sf.col(quoted(each)) for each in names))
    bad = counted.where(is_bad).select(
        sf.create_map(sf.lit("file"), _named(sf.col(FILE), originals)).alias("position"),
        reason.alias("reason"),
        sf.col(RAW).alias("raw"),
    )
    return good, Rejects(bad, lambda: int(passing.values.get(_BAD, 0)))


def csv_reason(
    schema: StructType,
    options: Mapping[str, str],
    misfit: "Callable[[Column, StructField], Column]",
) -> "Column":
    """Return the reason for a bad csv row: a wrong number of values, or the first bad value.

    `misfit` tells whether a text does not fit a column.
    """
    texts = ", ".join(f"_{number} STRING" for number in range(len(schema.fields)))
    parsed = sf.from_csv(sf.col(RAW), f"{texts}, {RAW} STRING", {**options, **KEEPING})
    found = sf.when(parsed[RAW].isNotNull(), f"does not have {len(schema.fields)} values")
    for number, each in enumerate(schema.fields):
        if not isinstance(each.dataType, StringType):
            text = parsed[f"_{number}"]
            found = found.when(misfit(text, each), _about(each, text))
    return found.otherwise(_misfit(schema))


def json_reason(schema: StructType, options: Mapping[str, str]) -> "Column":
    """Return the reason for a bad json line: not an object, or the first bad value."""
    raw = sf.col(RAW)
    whole = sf.from_json(raw, "MAP<STRING, STRING>", dict(options))
    found = sf.when(whole.isNull(), "is not a JSON object")
    for each in schema.fields:
        alone = with_raw(widened(StructType([each])))
        parsed = sf.from_json(raw, alone, {**options, **KEEPING})
        is_bad = parsed[RAW].isNotNull()
        if is_widened(each.dataType):
            is_bad |= is_misfit(parsed.getField(each.name), each.dataType)
        found = found.when(is_bad, _about(each, whole[each.name]))
    return found.otherwise(_misfit(schema))


def load_json(
    reader: "DataFrameReader",
    schema: StructType,
    files: Sequence[FileSurvey],
    options: Mapping[str, str],
    *,
    keeps: bool,
) -> "DataFrame":
    """Return the rows of JSON files, with bad ones and the files of all if the caller `keeps` them.

    `options` are those of the reader. A TINYINT that does not fit is like any other bad value.
    """
    read = widened(schema)
    frame = reader.schema(with_raw(read) if keeps else read).load(_paths(files))
    frame = with_file(frame) if keeps else frame
    wide = {each.name: each for each in schema.fields if is_widened(each.dataType)}
    if not wide:
        return frame
    misfits = {name: is_misfit(frame[quoted(name)], each.dataType) for name, each in wide.items()}
    if keeps:
        row = sf.to_json(sf.struct(*(frame[quoted(name)] for name in schema.names)))
        raw = sf.coalesce(frame[RAW], sf.when(reduce(or_, misfits.values()), row))
        return frame.withColumns({**_narrow(frame, wide.values()), RAW: raw})
    if options["mode"].upper() == "FAILFAST":
        frame = _where_all_fit(frame, wide, misfits)
    return frame.withColumns(_narrow(frame, wide.values()))


def load_parquet(
    reader: "DataFrameReader", schema: StructType, files: Sequence[FileSurvey]
) -> "DataFrame":
    """Return the rows of parquet files; a value that does not fit its type fails the job."""
    wide = {each.name: each for each in schema.fields if is_widened(each.dataType, IN_PARQUET)}
    stored = [field for each in files if each.columns for field in each.columns.fields]
    own = {name.lower(): each.dataType for name, each in wide.items()}
    if all(own.get(each.name.lower(), each.dataType) == each.dataType for each in stored):
        return reader.schema(schema).load(_paths(files))  # the usual case, at no cost
    frame = reader.schema(widened(schema, IN_PARQUET)).load(_paths(files))
    misfits = {
        name: is_misfit(frame[quoted(name)], each.dataType, IN_PARQUET)
        for name, each in wide.items()
    }
    return _where_all_fit(frame, wide, misfits).withColumns(_narrow(frame, wide.values()))


def _paths(files: Sequence[FileSurvey]) -> list[str]:
    return [path_to_read(each.path) for each in files]


def _narrow(frame: "DataFrame", fields: Iterable[StructField]) -> "dict[str, Column]":
    return {each.name: frame[quoted(each.name)].try_cast(each.dataType) for each in fields}


def _where_all_fit(
    frame: "DataFrame", fields: Mapping[str, StructField], misfits: "Mapping[str, Column]"
) -> "DataFrame":
    """Fail the job for the first value that does not fit."""
    for name, is_bad in misfits.items():
        refused = refuse_value(frame[quoted(name)].cast("string"), fields[name])
        frame = frame.where(sf.when(is_bad, refused).otherwise(sf.expr("true")))
    return frame


def refuse_value(text: "Column", column: StructField) -> "Column":
    """Return an expression that fails the job with the bad value and its file."""
    kind = column.dataType.simpleString().upper()
    why = sf.lit(f' column {quoted(column.name)} ({kind}): For input string: "')
    message = sf.concat(
        sf.lit(f"{BAD_VALUE} "),
        sf.input_file_name(),
        why,
        sf.left(text, sf.lit(_QUOTED)),
        sf.lit('"'),
        _way_out(text, column),
    )
    return sf.raise_error(message).cast("boolean")


def _about(column: StructField, text: "Column") -> "Column":
    kind = column.dataType.simpleString().upper()
    return sf.concat(
        sf.lit(f'column {quoted(column.name)} ({kind}): For input string: "'),
        sf.coalesce(text, sf.lit("")),
        sf.lit('"'),
        _way_out(text, column),
    )


def _way_out(text: "Column", column: StructField) -> "Column":
    """Return the remedy for a numeric code; empty for other bad values."""
    if not isinstance(column.dataType, NumericType):
        return sf.lit("")
    is_code = text.rlike(NUMERIC_CODE) & text.try_cast(column.dataType).isNotNull()
    return sf.when(is_code, _OF_CODES).otherwise("")


def _misfit(schema: StructType) -> str:
    return f"does not fit {schema.simpleString()}"


def _named(uri: "Column", originals: Mapping[str, Path]) -> "Column":
    """Return the path of the input file for Spark's file URI."""
    plain = path_of(uri)
    if not originals:
        return plain
    pairs: Sequence[Column] = [
        sf.lit(text) for copy, original in originals.items() for text in (copy, str(original))
    ]
    return sf.coalesce(sf.create_map(*pairs)[plain], plain)
