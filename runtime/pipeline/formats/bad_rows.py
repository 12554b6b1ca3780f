# pyright: basic
"""Separates rows that do not fit the schema, and finds the reason for each.

Spark's reader keeps the text of such a row in a corrupt-record column, without the bad value or the
line number. So the bad value is searched in these rows by a second parse. A file of parquet has no
texts: a value that does not fit fails the job. Spark cuts small integers there without a word, so
they are read with a wider type, and compared.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from ..batches.counting import RowAggregates
from ..batches.row_files import path_of
from ..engines.spelling import quoted
from ..spi.rows import Rejects
from .json.values import JsonValues
from .spark.text_values import TextValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader

    Hint = Callable[[Column, DataType], Column]
    """What else is to be said of a text that does not fit a type."""

RAW: Final = "__fairlead_raw"
"""The column with the text of a bad row; null in good rows."""
FILE: Final = "__fairlead_file"
_BAD, _KEPT = "bad", "kept"
BAD_VALUE: Final = "fairlead bad value"
"""The beginning of a job's error for a bad value; the file and the reason follow."""
_QUOTED: Final = 100
"""How many characters of a bad value an error shows."""
KEEPING: Final = {"mode": "PERMISSIVE", "columnnameofcorruptrecord": RAW}
"""Options of Spark's readers, in lower case, to keep bad rows."""


def with_raw(schema: StructType) -> StructType:
    """Return a schema with the column for bad rows added."""
    return with_texts(schema, (RAW,))


def with_texts(schema: StructType, names: Iterable[str]) -> StructType:
    """Return a schema with text columns added."""
    return StructType([*schema.fields, *(StructField(name, StringType()) for name in names)])


def with_file(frame: "DataFrame") -> "DataFrame":
    """Add a column with the URI of each row's file."""
    return frame.select("*", frame.metadataColumn("_metadata")["file_path"].alias(FILE))


def split_bad_rows(
    frame: "DataFrame", reason: "Column", originals: Mapping[str, Path], text_format: str
) -> "tuple[DataFrame, Rejects]":
    """Return the good rows, and the bad ones with `reason`, an expression over `RAW`.

    `originals` has the input file of each copy, by the path of the copy. `text_format`: csv, json.
    """
    aggregates = RowAggregates()
    names = [each for each in frame.columns if each not in {RAW, FILE}]
    is_bad = sf.col(RAW).isNotNull()
    # This uses all columns: the json reader parses only used columns, and would miss bad values.
    every = sf.first(sf.struct(*(sf.col(quoted(each)) for each in names))).alias(_KEPT)
    counted = aggregates.on(frame, sf.count_if(is_bad).alias(_BAD), every)
    good = counted.where(~is_bad).select(*(sf.col(quoted(each)) for each in names))
    bad = counted.where(is_bad).select(
        sf.create_map(sf.lit("file"), _named(sf.col(FILE), originals)).alias("position"),
        reason.alias("reason"),
        sf.col(RAW).alias("raw"),
        sf.lit(text_format).alias("format"),
        (sf.array(*map(sf.lit, names)) if text_format == "csv" else sf.lit(None)).alias("columns"),
    )
    return good, Rejects(bad, lambda: int(aggregates.values.get(_BAD, 0)))


def csv_reason(schema: StructType, options: Mapping[str, str], values: TextValues) -> "Column":
    """Return the reason for a bad csv row: a wrong number of values, or the first bad value."""
    texts = ", ".join(f"_{number} STRING" for number in range(len(schema.fields)))
    parsed = sf.from_csv(sf.col(RAW), f"{texts}, {RAW} STRING", {**options, **KEEPING})
    reason = sf.when(parsed[RAW].isNotNull(), f"does not have {len(schema.fields)} values")
    for number, each in enumerate(schema.fields):
        if not isinstance(each.dataType, StringType):
            text = parsed[f"_{number}"]
            hint = values.hint(text, each.dataType)
            reason = reason.when(values.is_misfit(text, each.dataType), _about(each, text, hint))
    return reason.otherwise(_misfit(schema))


def json_reason(
    schema: StructType, options: Mapping[str, str], values: JsonValues, raw: str = RAW
) -> "Column":
    """Return the reason for a bad json line: not an object, or the first bad value.

    `raw` is the column with the line.
    """
    line = sf.col(raw)
    whole = sf.from_json(line, "MAP<STRING, STRING>", dict(options))
    reason = sf.when(whole.isNull(), "is not a JSON object")
    for each in schema.fields:
        alone = StructType([each])
        read = with_raw(values.schema_to_read(alone))
        parsed = sf.from_json(line, read, {**options, **KEEPING})
        is_bad = parsed[RAW].isNotNull()
        if values.converted(alone):
            is_bad |= values.is_misfit(parsed.getField(each.name), each.dataType)
        text = whole[each.name]
        reason = reason.when(is_bad, _about(each, text, values.hint(text, each.dataType)))
    return reason.otherwise(_misfit(schema))


def load_json(  # one of them has no default for safety
    reader: "DataFrameReader",
    schema: StructType,
    paths: list[str],
    options: Mapping[str, str],
    values: JsonValues,
    beside: Sequence[str],
) -> "DataFrame":
    """Return the rows of JSON files; `beside` are columns to read in addition to the schema's.

    If `RAW` is among these, bad rows are kept, and the file of each row. `options` are those of the
    reader. A value that was read as another type and does not fit is like any other bad value.
    """
    read = values.schema_to_read(schema)
    keeps = RAW in beside
    frame = reader.schema(with_texts(read, beside)).load(paths)
    frame = with_file(frame) if keeps else frame
    other = values.converted(schema)
    if not other:
        return frame
    kinds = {each.name: (frame[quoted(each.name)], each.dataType) for each in other}
    misfits = {name: values.is_misfit(*each) for name, each in kinds.items()}
    columns = {name: values.value(*each) for name, each in kinds.items()}
    if keeps:
        row = sf.to_json(sf.struct(*(frame[quoted(name)] for name in schema.names)))
        raw = sf.coalesce(frame[RAW], sf.when(reduce(or_, misfits.values()), row))
        return frame.withColumns({**columns, RAW: raw})
    if options["mode"].upper() != "FAILFAST":
        good = {name: sf.when(~misfits[name], value) for name, value in columns.items()}
        return frame.withColumns(good)
    fields = {each.name: each for each in other}
    return _where_all_fit(frame, fields, misfits, values.hint).withColumns(columns)


def load_parquet(
    reader: "DataFrameReader",
    schema: StructType,
    paths: list[str],
    stored: Iterable[StructType],
    beside: Sequence[str] = (),
) -> "DataFrame":
    """Return the rows of parquet files; a value that does not fit its type fails the job.

    `stored`: the columns of each file, as far as they are known; `beside`: those that folders name.
    """
    fields = [field for each in stored for field in each.fields]
    to_read = StructType(
        [StructField(e.name, _type_to_read(e.dataType), e.nullable) for e in schema.fields]
    )
    pairs = zip(schema.fields, to_read.fields, strict=True)
    wide = {each.name: each for each, read in pairs if read.dataType != each.dataType}
    own = {name.lower(): each.dataType for name, each in wide.items()}
    if all(own.get(each.name.lower(), each.dataType) == each.dataType for each in fields):
        # The usual case, at no cost.
        return reader.schema(with_texts(schema, beside)).load(paths)
    frame = reader.schema(with_texts(to_read, beside)).load(paths)
    misfits = {name: _is_cut(frame[quoted(name)], each.dataType) for name, each in wide.items()}
    values = {name: frame[quoted(name)].try_cast(each.dataType) for name, each in wide.items()}
    return _where_all_fit(frame, wide, misfits).withColumns(values)


def _where_all_fit(
    frame: "DataFrame",
    fields: Mapping[str, StructField],
    misfits: "Mapping[str, Column]",
    hint: "Hint | None" = None,
) -> "DataFrame":
    """Fail the job for the first value that does not fit."""
    for name, is_bad in misfits.items():
        text = frame[quoted(name)].cast("string")
        more = hint(text, fields[name].dataType) if hint else sf.lit("")
        refused = refuse_value(text, fields[name], more)
        frame = frame.where(sf.when(is_bad, refused).otherwise(sf.expr("true")))
    return frame


def folder_values(
    frame: "DataFrame", columns: Sequence[StructField], values: TextValues
) -> "DataFrame":
    """Convert columns that folders name to their types; a wrong one fails the job."""
    there = {each.name: (frame[quoted(each.name)], each.dataType) for each in columns}
    misfits = {name: values.is_misfit(*each) for name, each in there.items()}
    fields = {each.name: each for each in columns}
    columns_made = {name: values.value(*each) for name, each in there.items()}
    return _where_all_fit(frame, fields, misfits, values.hint).withColumns(columns_made)


def refuse_value(text: "Column", column: StructField, hint: "Column") -> "Column":
    """Return an expression that fails the job with the bad value, its file and a hint."""
    place = sf.concat(sf.lit(f"{BAD_VALUE} "), sf.input_file_name(), sf.lit(" "))
    cut = sf.left(text, sf.lit(_QUOTED))
    return sf.raise_error(sf.concat(place, _about(column, cut, hint))).cast("boolean")


def _about(column: StructField, text: "Column", hint: "Column") -> "Column":
    kind = column.dataType.simpleString().upper()
    told = sf.lit(f'column {quoted(column.name)} ({kind}): For input string: "')
    return sf.concat(told, sf.coalesce(text, sf.lit("")), sf.lit('"'), hint)


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


def _type_to_read(kind: DataType) -> DataType:
    """Return the type to read a column of parquet with: Spark takes any INT for a small integer.

    A column with a map is left as it is, since Spark compares no maps.
    """
    return kind if "map<" in kind.simpleString() else _widened(kind)


def _widened(kind: DataType) -> DataType:
    if isinstance(kind, ArrayType):
        return ArrayType(_widened(kind.elementType), kind.containsNull)
    if isinstance(kind, StructType):
        fields = [(each.name, _widened(each.dataType), each.nullable) for each in kind.fields]
        return StructType([StructField(*each) for each in fields])
    return IntegerType() if isinstance(kind, ByteType | ShortType) else kind


def _is_cut(value: "Column", kind: DataType) -> "Column":
    """Return whether a value that was read with a wider type does not fit its column's."""
    return ~value.eqNullSafe(value.try_cast(kind).cast(_type_to_read(kind)))
