# pyright: basic, reportAttributeAccessIssue=false
"""From records as Kafka has them to rows: what the converters of keys and values make of them.

Texts and bytes stay in Arrow. JSON is parsed by Spark in the batch's own job, by the rules that
files of JSON are read by. A value that cannot be decoded is told by its topic, its partition and
its offset, and ends the batch, or is dropped and counted.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Observation
from pyspark.sql import functions as sf

from ....batches.counting import observed
from ....spark.spelling import literal, quoted, refusal
from ....spi.errors import BadInput
from .connect_schema import LONE, SchemaUnknown, columns_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PARSED: Final = "_fairlead_parsed"
_CORRUPT: Final = "_fairlead_corrupt"
_AT: Final = "_fairlead_at"
"""A record's offset, by which rows of several schemas are put in order again."""
_NO_FIT: Final = "it is no JSON object that fits the schema"
NAMED: Final = "the record of {} at offset {}: {}"
"""How a record is told that cannot be decoded."""


class KafkaRows(NamedTuple):
    """What becomes of records: which of the columns beside the value stay, and how keys look."""

    metadata: Sequence[str]
    has_text_keys: bool
    drops_bad: bool


class RecordDecoder(ABC):
    """Makes rows of records; one for each batch after another."""

    def __init__(self, rows: KafkaRows) -> None:
        """Take what is the same for all converters of values."""
        self._rows = rows

    @abstractmethod
    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the rows, or describe them; raises `BadInput`."""

    def dropped(self) -> int:
        """Return how many records of the last batch were dropped, once its job is over."""
        return 0

    def _metadata(self, table: pa.Table) -> pa.Table:
        """Return the columns beside the value, keys as they are asked for."""
        kept = table.select(list(self._rows.metadata))
        if self._rows.has_text_keys and "_key" in kept.column_names:
            place = kept.column_names.index("_key")
            kept = kept.set_column(place, "_key", as_text(kept["_key"]))
        return kept


class PlainDecoder(RecordDecoder):
    """Values stay whole, as texts or as bytes."""

    def __init__(self, rows: KafkaRows, *, has_texts: bool) -> None:
        """Take what values are."""
        super().__init__(rows)
        self._has_texts = has_texts

    def decode(self, spark: "SparkSession", table: pa.Table) -> pa.Table:
        """Return the rows in Arrow."""
        del spark
        values = as_text(table["_value"]) if self._has_texts else table["_value"]
        kept = self._metadata(table)
        return pa.table({LONE: values, **dict(zip(kept.column_names, kept.columns, strict=True))})


class JsonDecoder(RecordDecoder):
    """Values are objects in JSON; their columns are known beforehand."""

    def __init__(self, rows: KafkaRows, ddl: str) -> None:
        """Take the columns, as DDL."""
        super().__init__(rows)
        self._ddl = ddl
        self._observation: Observation | None = None

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame":
        """Describe the rows."""
        frame = self._parsed(spark, table, self._ddl)
        frame = self._sound(frame)
        return frame.select(f"{_PARSED}.*", *self._kept()).drop(_CORRUPT)

    def dropped(self) -> int:
        """Return how many there were."""
        return 0 if self._observation is None else int(observed(self._observation).get("bad", 0))

    def _kept(self) -> list[str]:
        return [quoted(name) for name in self._rows.metadata]

    def _parsed(self, spark: "SparkSession", table: pa.Table, ddl: str) -> "DataFrame":
        """Describe the records with their values parsed, and a flag of those that cannot be."""
        place = [name for name in _PLACE if name not in self._rows.metadata]
        kept = self._metadata(table)
        columns = dict(zip(kept.column_names, kept.columns, strict=True))
        columns |= {f"_fairlead{name}": table[name] for name in place}
        raw = pa.table({LONE: as_text(table["_value"]), **columns})
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = sf.from_json(sf.col(LONE), f"{ddl}, {_CORRUPT} STRING", options)
        # As a generator it is evaluated once: Spark would parse anew for each column and condition.
        return spark.createDataFrame(raw).select("*", sf.explode(sf.array(parsed)).alias(_PARSED))

    def _sound(self, frame: "DataFrame") -> "DataFrame":
        """Leave out, or refuse in the job, what could not be parsed."""
        empty = f"({_PARSED} IS NULL AND {LONE} IS NOT NULL AND trim({LONE}) <> 'null')"
        bad = sf.expr(f"{empty} OR coalesce({_PARSED}.{_CORRUPT} IS NOT NULL, false)")
        if self._rows.drops_bad:
            observation = self._observation = Observation()
            frame = frame.withColumn(_CORRUPT, bad)
            frame = frame.observe(observation, sf.count_if(sf.col(_CORRUPT)).alias("bad"))
            return frame.where(~sf.col(_CORRUPT))
        return frame.where(sf.when(bad, self._refused()).otherwise(sf.expr("true")))

    def _refused(self) -> "Column":
        topic, partition, offset = (
            quoted(name if name in self._rows.metadata else f"_fairlead{name}") for name in _PLACE
        )
        before, between, behind = (literal(each) for each in NAMED.split("{}")[:3])
        place = f"{topic}, '-', CAST({partition} AS STRING)"
        told = (before, place, between, f"CAST({offset} AS STRING)", behind, literal(_NO_FIT))
        return sf.expr(f"CAST({refusal(*told)} AS BOOLEAN)")


_PLACE: Final = ("_topic", "_partition", "_offset")


class _Envelope(msgspec.Struct):
    """Connect's envelope, its two parts not yet parsed."""

    schema: msgspec.Raw
    payload: msgspec.Raw


class EnvelopeDecoder(JsonDecoder):
    """Values are Connect's envelopes in JSON: each record brings its schema along."""

    no_envelope: ClassVar[str] = (
        "it is not Connect's envelope of schema and payload: set "
        "source.value.converter.schemas.enable=false if values are plain JSON"
    )

    def __init__(self, rows: KafkaRows) -> None:
        """Begin without any schema."""
        super().__init__(rows, "")
        self._bad = 0
        """How many records of the last batch had no envelope."""
        self._observations: list[Observation] = []

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame":
        """Describe the rows; those of several schemas have the columns of all."""
        self._bad, self._observations = 0, []
        made = (self._frame(spark, schema, part) for schema, part in self._by_schema(table))
        frames = [each for each in made if each is not None]
        if not frames:
            return spark.createDataFrame(self._metadata(table.slice(0, 0)))
        if len(frames) == 1:
            return frames[0].drop(_AT)
        rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
        # In one partition: a sort across some would run the job twice, and count twice what is bad.
        return rows.coalesce(1).sortWithinPartitions(_AT).drop(_AT)

    def dropped(self) -> int:
        """Return how many there were."""
        return self._bad + sum(int(observed(each).get("bad", 0)) for each in self._observations)

    def _frame(self, spark: "SparkSession", schema: bytes, part: pa.Table) -> "DataFrame | None":
        """Describe the rows of one schema; None: it cannot be used, and they are dropped."""
        try:
            known: Mapping[str, object] = json.loads(schema) or {"type": "struct", "fields": []}
            columns = columns_of(known, _PARSED)
        except SchemaUnknown as unknown:
            if self._rows.drops_bad:
                self._bad += part.num_rows
                return None
            raise BadInput(_named(part, 0, f"its schema cannot be used: {unknown}")) from None
        if not columns.is_struct:
            payloads = part["_value"].to_pylist()
            lone = [each and b'{"%s": %s}' % (LONE.encode(), each) for each in payloads]
            part = part.set_column(0, "_value", pa.array(lone, pa.binary()))
        frame = self._sound(self._parsed(spark, part, columns.ddl))
        if self._observation is not None:
            self._observations.append(self._observation)
        offset = "_offset" if "_offset" in self._rows.metadata else "_fairlead_offset"
        return frame.selectExpr(*columns.select, *self._kept(), f"{offset} AS {_AT}")

    def _by_schema(self, table: pa.Table) -> Iterator[tuple[bytes, pa.Table]]:
        """Yield each schema with the payloads of its records; tombstones go with the first."""
        decode = msgspec.json.Decoder(_Envelope).decode
        rows: dict[bytes, tuple[list[int], list[bytes | None]]] = {}
        alone: list[int] = []
        for row, value in enumerate(table["_value"].to_pylist()):
            if value is None:
                alone.append(row)
                continue
            try:
                envelope = decode(value)
            except msgspec.DecodeError:
                self._refuse(table, row)
                continue
            numbers, payloads = rows.setdefault(bytes(envelope.schema), ([], []))
            numbers.append(row)
            payloads.append(bytes(envelope.payload))
        if alone:
            numbers, payloads = rows.setdefault(next(iter(rows), b"null"), ([], []))
            numbers += alone
            payloads += [None] * len(alone)
        for schema, (numbers, payloads) in rows.items():
            part = table.take(numbers).set_column(0, "_value", pa.array(payloads, pa.binary()))
            yield schema, part.take(pc.sort_indices(pa.array(numbers)))

    def _refuse(self, table: pa.Table, row: int) -> None:
        self._bad += 1
        if not self._rows.drops_bad:
            raise BadInput(_named(table, row, self.no_envelope))


def _named(table: pa.Table, row: int, why: str) -> str:
    topic, partition, offset = (table[name][row].as_py() for name in _PLACE)
    return NAMED.format(f"{topic}-{partition}", offset, why)


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return bytes as text; what is no UTF-8 becomes U+FFFD, as in Kafka's own deserializer."""
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        texts = [each and each.decode(errors="replace") for each in values.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
