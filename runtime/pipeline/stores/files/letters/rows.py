# pyright: basic, reportAttributeAccessIssue=false
"""The rows in dead letters, read from their texts by the rules of the source that had them.

A letter says what its text is (`spi.rows.Rejects`). `csv` and `json` are texts of the source, read
with its dialect, its options and its language of values; `row` is JSON that this program wrote, and
has none of them. Letters that are read alike are read together. What was lost is not guessed: such
a letter is refused, with the reason and all that it had, and so is a text that still does not fit.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from ....batches.counting import RowAggregates
from ....batches.frames import frame_of
from ....engines.sessions import zone_of
from ....formats.bad_rows import KEEPING, RAW, csv_reason, json_reason, with_raw
from ....formats.evolution.policy import LEAVE_OUT
from ....formats.json.values import OF_RECORDS, JsonValues
from ....formats.spark.text_values import TextValues
from ....spi.rows import ArrowTable, Rejects
from ..source.formats import ReadFormat

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LETTER_COLUMNS: Final = (
    "connector STRING, task INT, stage STRING, position MAP<STRING, STRING>, reason STRING, "
    "raw STRING, format STRING, columns ARRAY<STRING>, time STRING, headers MAP<STRING, STRING>"
)
"""The columns of a file of letters, as DDL."""
_KEPT: Final = pa.schema(
    [
        ("position", pa.map_(pa.string(), pa.string())),
        ("raw", pa.string()),
        ("format", pa.string()),
        ("columns", pa.list_(pa.string())),
    ]
)
"""What a letter keeps if it is refused again."""
_PARSED: Final = "__fairlead_parsed"
_BAD: Final = "__fairlead_bad"
_CSV: Final = "csv"
ROW: Final = "row"
"""The format of a row as JSON that this program wrote."""
_LOST: Final = "\ufffd"
_OF_ROW: Final = TextValues(has_blank_nulls=False)
NOT_KEPT: Final = (
    "cannot be retried: its text is not the row that the source had, since a transform had changed "
    "it, or the source has no text that can be read again"
)
_NO_TEXT: Final = "cannot be retried: the letter has no text"
_NO_BYTES: Final = (
    "cannot be retried: its text has U+FFFD, which stands for bytes that are no text, and these "
    "were not kept"
)
_NO_OBJECT: Final = "cannot be retried: its text is not a JSON object"


class _Kind(NamedTuple):
    """The format and the columns of texts that are read alike."""

    format: str
    columns: tuple[str, ...]
    """The names of the values of csv, in their order; empty for JSON."""


class _Reading(NamedTuple):
    """How a text is read, as expressions over the columns `RAW` and `_PARSED`."""

    parsed: "Column"
    """What `_PARSED` is."""
    is_bad: "Column"
    reason: "Column"
    values: "Mapping[str, Column]"
    """The values by column; those of a bad text mean nothing."""


@dataclass(frozen=True, slots=True)
class LetterRows:
    """Reads the rows in the letters of one connector."""

    connector: str
    form: ReadFormat
    """The format and the columns that the source has today."""

    def own(self, letters: "DataFrame") -> "DataFrame":
        """Return the letters of the connector, with what `restore` needs."""
        return letters.where(sf.col("connector") == self.connector).select(*_KEPT.names)

    def restore(
        self, spark: "SparkSession", letters: ArrowTable
    ) -> "tuple[DataFrame, Sequence[Rejects]]":
        """Return the rows in letters, and the letters whose rows cannot be read."""
        refused: dict[int, str] = {}
        kinds = defaultdict[_Kind, list[int]](list)
        table = cast("Any", letters).cast(_KEPT)
        for number, letter in enumerate(table.to_pylist()):
            if flaw := self._flaw(letter):
                refused[number] = flaw
            else:
                columns = tuple(letter["columns"] or ()) if letter["format"] == _CSV else ()
                kinds[_Kind(letter["format"], columns)].append(number)
        rejects = [_refuse(spark, table, refused)] if refused else []
        frames: list[DataFrame] = []
        for kind, numbers in kinds.items():
            frame, bad = self._read(spark, kind, table.take(numbers))
            frames.append(frame)
            rejects.append(bad)
        frames = frames or [spark.createDataFrame([], self.form.columns)]
        return reduce(lambda one, other: one.unionAll(other), frames), rejects

    def _flaw(self, letter: Mapping[str, Any]) -> str:
        """Return why the row of a letter cannot be read again; "": it may be."""
        raw, kind = letter["raw"], letter["format"]
        if raw is None:
            return _NO_TEXT
        if kind is None:
            return NOT_KEPT
        if kind not in {ROW, self.form.name}:
            return f"cannot be retried: its text is {kind}, and source.format is {self.form.name}"
        if kind != ROW and _LOST in raw:
            return _NO_BYTES
        names = letter["columns"] or () if kind == _CSV else _names_in(raw)
        return _NO_OBJECT if names is None else self._flaw_in_names(kind, names)

    def _flaw_in_names(self, kind: str, names: Sequence[str]) -> str:
        """Return which columns of a text would be lost; "": none, or they are to be left out."""
        if kind != ROW and self.form.policy.mode == LEAVE_OUT:
            return ""
        known = {each.lower() for each in self.form.columns.names}
        more = [each for each in names if each.lower() not in known]
        return f"cannot be retried: source.schema has no column {', '.join(more)}" if more else ""

    def _read(
        self, spark: "SparkSession", kind: _Kind, letters: pa.Table
    ) -> "tuple[DataFrame, Rejects]":
        """Return the rows of letters that are read alike, and those that do not fit."""
        how = self._csv(spark, kind.columns) if kind.format == _CSV else self._json(spark, kind)
        frame = frame_of(spark, letters).withColumnRenamed("raw", RAW)
        frame = frame.withColumn(_PARSED, how.parsed)
        frame = frame.withColumn(_BAD, sf.coalesce(how.is_bad, sf.expr("true")))
        counts = RowAggregates()
        frame = counts.on(frame, sf.count_if(sf.col(_BAD)).alias("bad"))
        values = (how.values[name].alias(name) for name in self.form.columns.names)
        bad = frame.where(sf.col(_BAD)).select(
            "position", how.reason.alias("reason"), sf.col(RAW).alias("raw"), "format", "columns"
        )
        rejects = Rejects(bad, lambda: int(counts.values.get("bad", 0)))
        return frame.where(~sf.col(_BAD)).select(*values), rejects

    def _csv(self, spark: "SparkSession", columns: Sequence[str]) -> _Reading:
        """Return how the values of csv are read; those of no column are texts."""
        form, texts = self.form, self.form.text_values(spark)
        types = {each.name.lower(): each for each in form.columns.fields}
        fields = [types.get(each.lower(), StructField(each, StringType())) for each in columns]
        options = {**form.parser_options(), **KEEPING}
        ddl = ", ".join((*(f"_{number} STRING" for number in range(len(fields))), f"{RAW} STRING"))
        # An empty text in quotes is not null, so null needs a text that no letter has.
        parsed = sf.from_csv(sf.col(RAW), ddl, {**options, "nullvalue": form.null_stand_in})
        read = sf.col(_PARSED)
        is_bad = read[RAW].isNotNull()
        values = {each.name: sf.lit(None).cast(each.dataType) for each in form.columns.fields}
        for number, each in enumerate(fields):
            text = read[f"_{number}"]
            is_bad |= texts.is_misfit(text, each.dataType)
            values[each.name] = texts.value(text, each.dataType)
        return _Reading(parsed, is_bad, csv_reason(StructType(fields), options, texts), values)

    def _json(self, spark: "SparkSession", kind: _Kind) -> _Reading:
        """Return how an object of JSON is read."""
        form, schema = self.form, self.form.columns
        is_row = kind.format == ROW
        texts = _OF_ROW.within(zone_of(spark)) if is_row else form.text_values(spark)
        options = {**({} if is_row else form.parser_options()), **KEEPING}
        values = JsonValues(texts, OF_RECORDS)
        parsed = sf.from_json(sf.col(RAW), with_raw(values.schema_to_read(schema)), options)
        read = sf.col(_PARSED)
        misfits = (
            values.is_misfit(read.getField(each.name), each.dataType)
            for each in values.converted(schema)
        )
        is_bad = reduce(or_, misfits, read.isNull() | read[RAW].isNotNull())
        found = {e.name: values.value(read.getField(e.name), e.dataType) for e in schema.fields}
        return _Reading(parsed, is_bad, json_reason(schema, options, values), found)


def _names_in(raw: str) -> Sequence[str] | None:
    """Return the names in an object of JSON; None: it is none."""
    with suppress(ValueError, RecursionError):
        found: object = json.loads(raw)
        return [*found] if isinstance(found, dict) else None
    return None


def _refuse(spark: "SparkSession", letters: pa.Table, reasons: Mapping[int, str]) -> Rejects:
    """Return letters, given by number with the reason, as rejects."""
    part = letters.take([*reasons])
    part = part.append_column("reason", pa.array(reasons.values(), pa.string()))
    return Rejects(frame_of(spark, part), lambda: len(reasons))
