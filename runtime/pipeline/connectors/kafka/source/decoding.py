# pyright: basic, reportAttributeAccessIssue=false
"""Decodes records to rows, by the converters of keys and values.

Texts and bytes stay in Arrow. Spark parses JSON in the batch's own job, as it does JSON files. A
value that cannot be decoded is reported with topic, partition and offset; it fails the batch, or
becomes a bad row.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from ....batches.counting import Passing
from ....batches.frames import frame_of
from ....spark.spelling import literal, quoted, refusal
from ....spi.errors import SchemaRefused
from ....spi.rows import Rejects
from ...evolution.arrow_columns import to_ddl
from ...evolution.json_columns import JsonColumns
from ...evolution.json_text import find_flaws
from ...evolution.policy import DEAD_LETTER, SchemaPolicy, parse_ddl, parse_given
from ...files.small_integers import is_misfit, is_widened, widened
from ...files.source.bad_rows import RAW, json_reason
from .connect_schema import LONE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PARSED: Final = "_fairlead_parsed"
_CORRUPT: Final = "_fairlead_corrupt"
_CORRUPT_FIELD: Final = StructField(_CORRUPT, StringType())
_NO_FIT: Final = "it is no JSON object that fits the schema"
_FLAW: Final = "_fairlead_flaw"
"""The column with the reason why a value must not be read; null: it may."""
_OPTIONS: Final = {"allowSingleQuotes": "false"}
"""Like Kafka's own converter."""
NAMED: Final = "the record of {} at offset {}: {}"
"""The error for a record that cannot be decoded."""


class KafkaRows(NamedTuple):
    """The settings that all decoders share: metadata columns, keys, bad records."""

    metadata: Sequence[str]
    has_text_keys: bool
    parts_bad: bool
    """Whether records that cannot be decoded become bad rows; else they fail the batch."""
    keeps_records: bool = False
    """Whether bad records are handed on with their keys and values as they came."""


class RecordDecoder(ABC):
    """Decodes the records of one batch after another."""

    def __init__(self, rows: KafkaRows) -> None:
        """Take the shared settings."""
        self._rows = rows

    @abstractmethod
    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the rows; raises `BadInput`."""

    @property
    def parts_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return False

    @property
    def keeps_records(self) -> bool:
        """Whether bad records are handed on with their keys and values as they came."""
        return self._rows.keeps_records

    @property
    def remark(self) -> str:
        """The remark about the records so far, for the status."""
        return ""

    def rejects(self) -> Sequence[Rejects]:
        """Return the records of the last batch that were left out."""
        return ()

    def _metadata(self, table: pa.Table) -> pa.Table:
        """Return the metadata columns."""
        kept = table.select(list(self._rows.metadata))
        if self._rows.has_text_keys and "_key" in kept.column_names:
            place = kept.column_names.index("_key")
            kept = kept.set_column(place, "_key", as_text(kept["_key"]))
        return kept


class PlainDecoder(RecordDecoder):
    """Leaves values as texts or bytes."""

    def __init__(self, rows: KafkaRows, *, has_texts: bool) -> None:
        """Take whether values become texts."""
        super().__init__(rows)
        self._has_texts = has_texts

    def decode(self, spark: "SparkSession", table: pa.Table) -> pa.Table:
        """Return the rows in Arrow."""
        del spark
        values = as_text(table["_value"]) if self._has_texts else table["_value"]
        kept = self._metadata(table)
        return pa.table({LONE: values, **dict(zip(kept.column_names, kept.columns, strict=True))})


class JsonDecoder(RecordDecoder):
    """Decodes JSON objects; their columns are known beforehand."""

    def __init__(self, rows: KafkaRows, ddl: str, policy: SchemaPolicy | None = None) -> None:
        """Take the columns as DDL, and the policy for other columns."""
        super().__init__(rows)
        self._ddl = ddl
        self._policy = policy or SchemaPolicy()
        self._schema: StructType | None = None
        """The current columns; None: unchanged."""
        self._left_out: dict[str, None] = {}
        """The other columns that were left out."""
        self._rejects: list[Rejects] = []

    @property
    def parts_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return self._rows.parts_bad or self._policy.mode == DEAD_LETTER

    @property
    def remark(self) -> str:
        """Say which columns are left out."""
        return self._policy.remark([*self._left_out], "records")

    def rejects(self) -> Sequence[Rejects]:
        """Return the records that were left out."""
        return self._rejects

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the rows; raises `SchemaRefused` for new columns that are not allowed."""
        self._rejects = []
        schema = self._schema = self._schema or parse_given(self._ddl)
        table = self._admitted(spark, schema, table)
        frame = self._sound(self._parsed(spark, table, self._schema), self._schema)
        return frame.select(f"{PARSED}.*", *self._kept()).drop(_CORRUPT)

    def _admitted(self, spark: "SparkSession", schema: StructType, table: pa.Table) -> pa.Table:
        """Extend the schema by new columns of values; return the records that are allowed."""
        values = table["_value"].to_pylist()
        try:
            self._admit(schema, b"\n".join(each.replace(b"\n", b" ") for each in values if each))
        except SchemaRefused:
            refused = dict(self._refused_rows(schema, values))
            if self._policy.mode != DEAD_LETTER:
                row, why = next(iter(refused.items()))
                raise SchemaRefused(record_error(table, row, why)) from None
            self._rejects.append(reject_records(spark, table, refused))
            return without_rows(table, refused)
        return table

    def _admit(self, schema: StructType, text: bytes) -> None:
        columns = JsonColumns(schema)
        columns.feed(text)
        found = parse_ddl(to_ddl(columns.end()))
        self._schema, left_out = self._policy.admit(parse_given(self._ddl), schema, found, "")
        self._left_out |= dict.fromkeys(left_out)

    def _refused_rows(
        self, schema: StructType, values: Sequence[bytes | None]
    ) -> Iterator[tuple[int, str]]:
        """Yield the refused values by row, with the reason."""
        for row, value in enumerate(values):
            try:
                self._admit(schema, value or b"")
            except SchemaRefused as refused:
                yield row, str(refused).removeprefix(": ")

    def _kept(self) -> list[str]:
        return [quoted(name) for name in self._rows.metadata]

    def _parsed(self, spark: "SparkSession", table: pa.Table, schema: StructType) -> "DataFrame":
        """Return the records with a column of parsed values, and a column of flaws."""
        place = [name for name in _PLACE if name not in self._rows.metadata]
        kept = self._metadata(table)
        columns = dict(zip(kept.column_names, kept.columns, strict=True))
        columns |= {f"_fairlead{name}": table[name] for name in place}
        flaws = find_flaws(table["_value"])
        raw = pa.table({LONE: as_text(table["_value"]), _FLAW: flaws, **columns})
        options = {**_OPTIONS, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = sf.from_json(
            sf.col(LONE), StructType([*widened(schema).fields, _CORRUPT_FIELD]), options
        )
        # `explode` makes Spark parse once, not again for each column and condition.
        return frame_of(spark, raw).select("*", sf.explode(sf.array(parsed)).alias(PARSED))

    def _sound(self, frame: "DataFrame", schema: StructType) -> "DataFrame":
        """Separate records that could not be parsed, or fail the job for them."""
        empty = f"({PARSED} IS NULL AND {LONE} IS NOT NULL AND trim({LONE}) <> 'null')"
        bad = sf.expr(
            f"{empty} OR {_FLAW} IS NOT NULL OR coalesce({PARSED}.{_CORRUPT} IS NOT NULL, false)"
        )
        wide = [each for each in schema.fields if is_widened(each.dataType)]
        for each in wide:
            bad |= is_misfit(sf.col(PARSED).getField(each.name), each.dataType)
        own = StructType([*schema.fields, _CORRUPT_FIELD])
        casts = {PARSED: sf.col(PARSED).try_cast(own)} if wide else {}
        if not self._rows.parts_bad:
            sound = frame.where(sf.when(bad, self._refused()).otherwise(sf.expr("true")))
            return sound.withColumns(casts) if casts else sound
        passing = Passing()
        frame = frame.withColumn(_CORRUPT, bad)
        frame = passing.on(frame, sf.count_if(sf.col(_CORRUPT)).alias("bad"))
        places = (
            part
            for name, column in zip(_POSITION, self._places, strict=True)
            for part in (sf.lit(name), sf.col(column).cast("string"))
        )
        letters = (
            frame.where(_CORRUPT)
            .select(sf.create_map(*places).alias("position"), sf.col(LONE).alias(RAW), _FLAW)
            .select("position", _reason(schema).alias("reason"), sf.col(RAW).alias("raw"))
        )
        count = lambda: int(passing.values.get("bad", 0))  # noqa: E731
        self._rejects.append(Rejects(letters, count))
        sound = frame.where(~sf.col(_CORRUPT))
        return sound.withColumns(casts) if casts else sound

    @property
    def _places(self) -> Sequence[str]:
        """The columns of topic, partition and offset."""
        kept = self._rows.metadata
        return [quoted(name if name in kept else f"_fairlead{name}") for name in _PLACE]

    def _refused(self) -> "Column":
        topic, partition, offset = self._places
        before, between, behind = (literal(each) for each in NAMED.split("{}")[:3])
        place = f"{topic}, '-', CAST({partition} AS STRING)"
        why = f"coalesce('it ' || {_FLAW}, {literal(_NO_FIT)})"
        told = (before, place, between, f"CAST({offset} AS STRING)", behind, why)
        return sf.expr(f"CAST({refusal(*told)} AS BOOLEAN)")


def _reason(schema: StructType) -> "Column":
    flaw = sf.concat(sf.lit("it "), sf.col(_FLAW))
    return sf.when(flaw.isNotNull(), flaw).otherwise(json_reason(schema, _OPTIONS))


_PLACE: Final = ("_topic", "_partition", "_offset")
_POSITION: Final = ("topic", "partition", "offset")


def record_error(table: pa.Table, row: int, why: str) -> str:
    """Return the error of a record, with topic, partition and offset."""
    topic, partition, offset = (table[name][row].as_py() for name in _PLACE)
    return NAMED.format(f"{topic}-{partition}", offset, why)


def reject_records(spark: "SparkSession", table: pa.Table, rows: Mapping[int, str]) -> Rejects:
    """Return records, given by row number with the reason, as rejects."""
    part = table.take(list(rows))
    places = (part[name].cast(pa.string()).to_pylist() for name in _PLACE)
    position = [list(zip(_POSITION, each, strict=True)) for each in zip(*places, strict=True)]
    letters = pa.table(
        {
            "position": pa.array(position, pa.map_(pa.string(), pa.string())),
            "reason": pa.array(rows.values(), pa.string()),
            "raw": as_text(part["_value"]),
        }
    )
    return Rejects(spark.createDataFrame(letters), lambda: len(rows))


def without_rows(table: pa.Table, rows: Container[int]) -> pa.Table:
    """Return a table without some of its rows, perhaps all."""
    return table.filter(pa.array([row not in rows for row in range(table.num_rows)], pa.bool_()))


def with_records(rejects: Rejects, records: pa.Table) -> Rejects:
    """Return rejects with the original bytes of key and value added."""
    letters = rejects.frame
    columns = {each: records[f"_{each}"] for each in ("key", "value", *_POSITION)}
    originals = letters.sparkSession.createDataFrame(pa.table(columns))
    is_same = (letters["position"][each] == originals[each].cast("string") for each in _POSITION)
    joined = letters.join(originals, reduce(and_, is_same), "left").drop(*_POSITION)
    return Rejects(joined, rejects.count)


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return bytes as text; invalid UTF-8 becomes U+FFFD, as in Kafka's own deserializer."""
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        texts = [each and each.decode(errors="replace") for each in values.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
