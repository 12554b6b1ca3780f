# pyright: basic, reportAttributeAccessIssue=false
"""Decodes records to rows, by the converters of keys and values.

Texts and bytes stay in Arrow. Spark parses JSON in the batch's own job, as it does JSON files. A
value that cannot be decoded is reported with topic, partition and offset; it fails the batch, or
becomes a bad row.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from ....batches.counting import RowAggregates
from ....batches.frames import frame_of
from ....engines.sessions import zone_of
from ....engines.spelling import quoted
from ....formats.bad_rows import RAW, json_reason
from ....formats.connect import CORRUPT, LONE
from ....formats.evolution.arrow_columns import to_ddl
from ....formats.evolution.names import find_duplicates
from ....formats.evolution.policy import DEAD_LETTER, SchemaPolicy, parse_ddl, parse_given
from ....formats.json.attempts import ProofAttempts
from ....formats.json.columns import JsonColumns, columns_in
from ....formats.json.flaws import find_number_flaws, find_text_flaws, objects_in, values_of
from ....formats.json.proof import reading_of
from ....formats.json.records import parse_records, with_nulls
from ....formats.json.values import OF_RECORDS, JsonValues
from ....formats.spark.odd_texts import may_be_odd, odd_in_json
from ....formats.spark.text_values import TextValues
from ....spi.config import ConfigInvalid
from ....spi.errors import BadInput, SchemaRefused
from ....spi.rows import Rejects
from .bad_records import (
    NAMED,
    PLACE,
    POSITION,
    as_text,
    record_error,
    reject_records,
    without_rows,
)
from .reader import HEADER_FLAW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PARSED: Final = "_fairlead_parsed"
_CORRUPT_FIELD: Final = StructField(CORRUPT, StringType())
_NO_FIT: Final = "it is no JSON object that fits the schema"
FLAW: Final = "_fairlead_flaw"
"""The column with the reason why a value must not be read; null: it may."""
_OPTIONS: Final = {"allowSingleQuotes": "false"}
"""Like Kafka's own converter."""
_TEXTS: Final = TextValues(has_seconds=True, has_blank_nulls=False)


class KafkaRows(NamedTuple):
    """The settings that all decoders share: metadata columns, keys, bad records."""

    metadata: Sequence[str]
    """The metadata columns, each with its underscore."""
    has_text_keys: bool
    """Whether keys become texts."""
    separates_bad: bool
    """Whether records that cannot be decoded become bad rows; else they fail the batch."""
    keeps_records: bool = False
    """Whether bad records are handed on with their keys and values as they came."""
    by_arrow: bool = False
    """Whether Arrow may read what is proved to be read alike by Spark."""
    sample: Callable[[], pa.Table] | None = None
    """Returns the last records of the task's partitions; None: nobody can look."""


class RecordDecoder(ABC):
    """Decodes the records of one batch after another."""

    def __init__(self, rows: KafkaRows) -> None:
        """Start with the shared settings."""
        self._rows = rows

    @abstractmethod
    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the rows; raises `BadInput`."""

    @property
    def needs_spark(self) -> bool:
        """Whether `decode_held` returns nothing."""
        return True

    def decode_held(self, table: pa.Table) -> "pa.Table | None":
        """Return the rows without Spark; None: it needs Spark. Raises `BadInput`."""
        del table
        return None

    @property
    def separates_bad_rows(self) -> bool:
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
        """Start; `has_texts`: values become texts."""
        super().__init__(rows)
        self._has_texts = has_texts

    @property
    def needs_spark(self) -> bool:
        """Whether it needs Spark: it never does."""
        return False

    def decode(self, spark: "SparkSession", table: pa.Table) -> pa.Table:
        """Return the rows in Arrow."""
        del spark
        return self.decode_held(table)

    def decode_held(self, table: pa.Table) -> pa.Table:
        """Return the rows in Arrow."""
        values = as_text(table["_value"]) if self._has_texts else table["_value"]
        kept = self._metadata(table)
        return pa.table({LONE: values, **dict(zip(kept.column_names, kept.columns, strict=True))})


class JsonDecoder(RecordDecoder):
    """Decodes JSON objects; their columns are known beforehand."""

    def __init__(self, rows: KafkaRows, ddl: str, policy: SchemaPolicy | None = None) -> None:
        """Start with the columns as DDL, and the policy for other columns."""
        super().__init__(rows)
        self._ddl = ddl
        self._policy = policy or SchemaPolicy()
        self._schema: StructType | None = None
        """The current columns; None: unchanged."""
        self._left_out: dict[str, None] = {}
        """The other columns that were left out."""
        self._rejects: list[Rejects] = []
        self._values = JsonValues(_TEXTS)
        """The values of the session that parses the batch."""
        self._attempts = ProofAttempts(is_allowed=rows.by_arrow)
        """When to try whether Arrow may read the records."""

    @property
    def separates_bad_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return self._rows.separates_bad or self._policy.mode == DEAD_LETTER

    @property
    def remark(self) -> str:
        """Return a remark on the columns that are left out."""
        return self._policy.remark([*self._left_out], "records")

    def rejects(self) -> Sequence[Rejects]:
        """Return the records that were left out."""
        return self._rejects

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the rows; raises `SchemaRefused` for new columns that are not allowed."""
        self._rejects = []
        schema = self._schema = self._schema or self._given()
        rows = self._read_by_arrow(schema, table)
        if rows is not None:
            return rows
        table = self._admitted(spark, schema, with_flaws(with_values(table)))
        frame = self._sound(self._parsed(spark, table, self._schema), self._schema)
        return frame.select(f"{PARSED}.*", *self._kept()).drop(CORRUPT)

    @property
    def needs_spark(self) -> bool:
        """Whether Spark has to read the next records; it has parsed the schema before."""
        reading = reading_of(self._schema) if self._schema else None
        # Sinks take lists and structs from Spark only.
        return reading is None or reading.is_nested or not self._attempts.is_due

    def decode_held(self, table: pa.Table) -> pa.Table | None:
        """Return the rows if it is proved that Spark would have the same."""
        self._rejects = []
        return self._read_by_arrow(self._schema, table) if self._schema else None

    def _read_by_arrow(self, schema: StructType, table: pa.Table) -> pa.Table | None:
        """Return the rows if it is proved that Spark would have the same; None: Spark reads them.

        Bad records, and columns that are to be added or refused, are left to Spark's way as well.
        """
        reading = reading_of(schema) if self._attempts.is_due else None
        parsed = reading and parse_records(table["_value"], reading)
        rows = reading and parsed and self._is_admitted(schema, parsed) and reading.typed(parsed)
        self._attempts.end_turn(is_tried=reading is not None, has_failed=not rows)
        if not rows:
            return None
        kept, rows = self._metadata(table), with_nulls(rows, table["_value"])
        names = [*rows.column_names, *kept.column_names]
        return pa.table([*rows.columns, *kept.columns], names)

    def _is_admitted(self, schema: StructType, parsed: pa.Table) -> bool:
        """Return whether records are read with the schema as it is."""
        known = {each.name: each.dataType for each in schema.fields}
        try:
            self._admit_columns(schema, columns_in(parsed, known))
        except SchemaRefused:
            return False
        return self._schema == schema

    def _given(self) -> StructType:
        """Return the columns that are known beforehand; raises `ConfigInvalid`."""
        schema = parse_given(self._ddl)
        if duplicates := find_duplicates(schema, self._rows.metadata):
            raise ConfigInvalid(columns_clash(*duplicates))
        return schema

    def _admitted(self, spark: "SparkSession", schema: StructType, table: pa.Table) -> pa.Table:
        """Extend the schema by new columns of values; return the records that are allowed."""
        try:
            self._admit(schema, table)
        except SchemaRefused:
            refused = dict(self._refused_rows(schema, table))
            if self._policy.mode != DEAD_LETTER:
                row, why = next(iter(refused.items()))
                raise SchemaRefused(record_error(table, row, why)) from None
            self._rejects.append(reject_records(spark, table, refused, "json"))
            return without_rows(table, refused)
        return table

    def _admit(self, schema: StructType, table: pa.Table) -> None:
        columns = JsonColumns(schema)
        columns.feed(b"\n".join(objects_in(table["_value"], table[FLAW])))
        self._admit_columns(schema, columns.end())

    def _admit_columns(self, schema: StructType, columns: pa.Schema) -> None:
        found = parse_ddl(to_ddl(columns))
        self._schema, left_out = self._policy.admit(parse_given(self._ddl), schema, found, "")
        self._left_out |= dict.fromkeys(left_out)

    def _refused_rows(self, schema: StructType, table: pa.Table) -> Iterator[tuple[int, str]]:
        """Yield the refused values by row, with the reason."""
        for row in range(table.num_rows):
            try:
                self._admit(schema, table.slice(row, 1))
            except SchemaRefused as refused:
                yield row, str(refused).removeprefix(": ")

    def _kept(self) -> list[str]:
        return [quoted(name) for name in self._rows.metadata]

    def _parsed(self, spark: "SparkSession", table: pa.Table, schema: StructType) -> "DataFrame":
        """Return the records with a column of parsed values, and a column of flaws."""
        place = [name for name in PLACE if name not in self._rows.metadata]
        kept = self._metadata(table)
        columns = dict(zip(kept.column_names, kept.columns, strict=True))
        columns |= {f"_fairlead{name}": table[name] for name in place}
        is_odd = may_be_odd(table["_value"], odd_in_json(schema))
        flaws = table[FLAW]
        flaws = find_number_flaws(table["_value"], flaws, schema) if is_odd else flaws
        raw = pa.table({LONE: as_text(table["_value"]), FLAW: flaws, **columns})
        options = {**_OPTIONS, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        self._values = JsonValues(_TEXTS.within(zone_of(spark)), OF_RECORDS if is_odd else ())
        read = StructType([*self._values.schema_to_read(schema).fields, _CORRUPT_FIELD])
        parsed = sf.from_json(sf.when(sf.col(FLAW).isNull(), sf.col(LONE)), read, options)
        # `explode` makes Spark parse once, not again for each column and condition.
        return frame_of(spark, raw).select("*", sf.explode(sf.array(parsed)).alias(PARSED))

    def _sound(self, frame: "DataFrame", schema: StructType) -> "DataFrame":
        """Separate records that could not be parsed, or fail the job for them."""
        empty = f"({PARSED} IS NULL AND {LONE} IS NOT NULL)"
        bad = sf.expr(
            f"{empty} OR {FLAW} IS NOT NULL OR coalesce({PARSED}.{CORRUPT} IS NOT NULL, false)"
        )
        read, values = sf.col(PARSED), self._values
        if other := values.converted(schema):
            bad |= values.is_misfit(read, schema)
        casts = {PARSED: values.value(read, schema)} if other else {}
        if not self._rows.separates_bad:
            sound = frame.where(sf.when(bad, self._refused(schema)).otherwise(sf.expr("true")))
            return sound.withColumns(casts) if casts else sound
        aggregates = RowAggregates()
        frame = frame.withColumn(CORRUPT, bad)
        frame = aggregates.on(frame, sf.count_if(sf.col(CORRUPT)).alias("bad"))
        places = (
            part
            for name, column in zip(POSITION, self._places, strict=True)
            for part in (sf.lit(name), sf.col(column).cast("string"))
        )
        letters = (
            frame.where(CORRUPT)
            .select(sf.create_map(*places).alias("position"), sf.col(LONE).alias(RAW), FLAW)
            .select(
                "position",
                _reason(schema, values).alias("reason"),
                sf.col(RAW).alias("raw"),
                sf.lit("json").alias("format"),
            )
        )
        count = lambda: int(aggregates.values.get("bad", 0))  # noqa: E731
        self._rejects.append(Rejects(letters, count))
        sound = frame.where(~sf.col(CORRUPT))
        return sound.withColumns(casts) if casts else sound

    @property
    def _places(self) -> Sequence[str]:
        """The columns of topic, partition and offset."""
        kept = self._rows.metadata
        return [quoted(name if name in kept else f"_fairlead{name}") for name in PLACE]

    def _refused(self, schema: StructType) -> "Column":
        """Return an expression that fails the job; where numbers may be odd it names the column."""
        topic, partition, offset = (sf.col(each).cast("string") for each in self._places)
        before, between, behind = map(sf.lit, NAMED.split("{}")[:3])
        is_odd = bool(self._values.fractions)
        why = _reason(schema, self._values, LONE) if is_odd else _or_flaw(sf.lit(_NO_FIT))
        told = sf.concat(before, topic, sf.lit("-"), partition, between, offset, behind, why)
        return sf.raise_error(told).cast("boolean")


def _reason(schema: StructType, values: JsonValues, raw: str = RAW) -> "Column":
    return _or_flaw(json_reason(schema, _OPTIONS, values, raw))


def _or_flaw(reason: "Column") -> "Column":
    flaw = sf.concat(sf.lit("it "), sf.col(FLAW))
    return sf.when(flaw.isNotNull(), flaw).otherwise(reason)


def columns_clash(one: str, other: str) -> str:
    """Return the error of two columns with one name."""
    return (
        f"source.schema: the columns `{one}` and `{other}` have one name, but for its case at "
        "most, and rows cannot have both: leave one out of source.schema, or of "
        "source.metadata.columns"
    )


def with_values(table: pa.Table) -> pa.Table:
    """Return records in JSON whose values are what Connect reads; see `values_of`."""
    at = table.column_names.index("_value")
    return table.set_column(at, "_value", values_of(table["_value"]))


def with_flaws(table: pa.Table) -> pa.Table:
    """Return records in JSON with the column of reasons why one must not be parsed."""
    return table.append_column(FLAW, find_text_flaws(table["_value"]))


class HeaderDecoder(RecordDecoder):
    """Refuses records with unreadable headers; another decoder decodes the others.

    The client gives the keys of headers as texts. If one is no UTF-8, the record has none at all.
    """

    def __init__(self, rows: KafkaRows, others: RecordDecoder) -> None:
        """Start with the decoder of keys and values."""
        super().__init__(rows)
        self._others = others
        self._rejects: list[Rejects] = []

    @property
    def separates_bad_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return self._rows.separates_bad or self._others.separates_bad_rows

    @property
    def remark(self) -> str:
        """Return the remark of the other decoder."""
        return self._others.remark

    def rejects(self) -> Sequence[Rejects]:
        """Return the records with unreadable headers, and those of the other decoder."""
        return [*self._rejects, *self._others.rejects()]

    @property
    def needs_spark(self) -> bool:
        """Whether the other decoder needs Spark; unreadable headers do as well."""
        return self._others.needs_spark

    def decode_held(self, table: pa.Table) -> "pa.Table | None":
        """Return the decoded rows unless headers are unreadable; raises `BadInput`."""
        self._rejects = []
        return None if self._unreadable(table) else self._others.decode_held(table)

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the decoded rows; raises `BadInput`."""
        self._rejects = []
        if bad := self._unreadable(table):
            self._rejects.append(reject_records(spark, table, bad))
            table = without_rows(table, bad)
        return self._others.decode(spark, table)

    def _unreadable(self, table: pa.Table) -> dict[int, str]:
        """Return why headers cannot be read, by row; raises `BadInput` unless that is tolerated."""
        bad = {row: why for row, why in enumerate(table[HEADER_FLAW].to_pylist()) if why}
        if bad and not self._rows.separates_bad:
            row = min(bad)
            raise BadInput(record_error(table, row, bad[row]))
        return bad
