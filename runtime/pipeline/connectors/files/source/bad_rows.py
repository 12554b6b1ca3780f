# pyright: basic
"""Rows of files that do not fit their schema, kept apart from those that do.

Spark's reader keeps the text of such a row in a column of its own. It tells neither which value
is wrong nor in which line: the value is looked for once more, in those rows alone.
"""

from collections.abc import Callable, Mapping, Sequence
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
from ....spark.spelling import quoted
from ....spi.rows import Rejects
from ..number_names import NUMBER_NAME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RAW: Final = "__fairlead_raw"
"""The column that holds the text of a row that does not fit, and null in all others."""
FILE: Final = "__fairlead_file"
_BAD, _KEPT = "bad", "kept"
BAD_VALUE: Final = "fairlead bad value"
"""Begins the message of a job that met a value that does not fit; its file and reason follow."""
_QUOTED: Final = 100
"""How many letters of such a value are told."""
_OF_NAMES: Final = (
    ", of which a number loses zeros or a sign: give the columns in `source.schema`, this one as "
    "STRING, or as a number to have it read as one"
)
KEEPING: Final = {"mode": "PERMISSIVE", "columnnameofcorruptrecord": RAW}
"""Options of Spark's readers, in lower case, with which they keep rows that do not fit."""


def with_raw(schema: StructType) -> StructType:
    """Return a schema with the column that holds rows that do not fit."""
    return StructType([*schema.fields, StructField(RAW, StringType())])


def with_file(frame: "DataFrame") -> "DataFrame":
    """Add the file that each row is from, as Spark spells it."""
    return frame.select("*", frame.metadataColumn("_metadata")["file_path"].alias(FILE))


def parted(
    frame: "DataFrame", reason: "Column", originals: Mapping[str, Path]
) -> "tuple[DataFrame, Rejects]":
    """Return the rows that fit, and the others; `reason` is made of `RAW`, and tells what is wrong.

    `originals` are the files that were copied to be read, by the path of the copy.
    """
    passing = Passing()
    names = [each for each in frame.columns if each not in {RAW, FILE}]
    is_bad = sf.col(RAW).isNotNull()
    # All columns are asked for: the reader of json looks at no others, and would miss bad values.
    every = sf.first(sf.struct(*(sf.col(quoted(each)) for each in names))).alias(_KEPT)
    told = passing.on(frame, sf.count_if(is_bad).alias(_BAD), every)
    good = told.where(~is_bad).select(*(sf.col(quoted(each)) for each in names))
    bad = told.where(is_bad).select(
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
    """Return what is wrong with a row of csv: its number of values, or the first bad one.

    `misfit` tells whether a text does not fit a column, as the reader would.
    """
    texts = ", ".join(f"_{number} STRING" for number in range(len(schema.fields)))
    parsed = sf.from_csv(sf.col(RAW), f"{texts}, {RAW} STRING", {**options, **KEEPING})
    found = sf.when(parsed[RAW].isNotNull(), f"has not just {len(schema.fields)} values")
    for number, each in enumerate(schema.fields):
        if not isinstance(each.dataType, StringType):
            text = parsed[f"_{number}"]
            found = found.when(misfit(text, each), _about(each, text))
    return found.otherwise(_misfit(schema))


def json_reason(schema: StructType, options: Mapping[str, str]) -> "Column":
    """Return what is wrong with a line of json: all of it, or the first value that does not fit."""
    raw = sf.col(RAW)
    whole = sf.from_json(raw, "MAP<STRING, STRING>", dict(options))
    found = sf.when(whole.isNull(), "is no object of JSON")
    for each in schema.fields:
        alone = with_raw(StructType([each]))
        parsed = sf.from_json(raw, alone, {**options, **KEEPING})
        found = found.when(parsed[RAW].isNotNull(), _about(each, whole[each.name]))
    return found.otherwise(_misfit(schema))


def refuse_value(text: "Column", column: StructField) -> "Column":
    """Return what ends the job, and says which value of which file does not fit."""
    kind = column.dataType.simpleString().upper()
    why = sf.lit(f' column {quoted(column.name)} ({kind}): For input string: "')
    told = sf.concat(
        sf.lit(f"{BAD_VALUE} "),
        sf.input_file_name(),
        why,
        sf.left(text, sf.lit(_QUOTED)),
        sf.lit('"'),
        _way_out(text, column),
    )
    return sf.raise_error(told).cast("boolean")


def _about(column: StructField, text: "Column") -> "Column":
    kind = column.dataType.simpleString().upper()
    return sf.concat(
        sf.lit(f'column {quoted(column.name)} ({kind}): For input string: "'),
        sf.coalesce(text, sf.lit("")),
        sf.lit('"'),
        _way_out(text, column),
    )


def _way_out(text: "Column", column: StructField) -> "Column":
    """Return what is told beside a text that is a number, and says more than that."""
    if not isinstance(column.dataType, NumericType):
        return sf.lit("")
    is_name = text.rlike(NUMBER_NAME) & text.try_cast(column.dataType).isNotNull()
    return sf.when(is_name, _OF_NAMES).otherwise("")


def _misfit(schema: StructType) -> str:
    return f"does not fit {schema.simpleString()}"


def _named(uri: "Column", originals: Mapping[str, Path]) -> "Column":
    """Return the path that a user knows a file by, of one as Spark spells it."""
    plain = sf.url_decode(sf.replace(uri, sf.lit("+"), sf.lit("%2B")))
    plain = sf.regexp_replace(plain, "^file:(//)?", "")
    if not originals:
        return plain
    pairs: Sequence[Column] = [
        sf.lit(text) for copy, original in originals.items() for text in (copy, str(original))
    ]
    return sf.coalesce(sf.create_map(*pairs)[plain], plain)
