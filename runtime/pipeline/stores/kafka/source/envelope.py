# pyright: basic, reportAttributeAccessIssue=false
"""Decodes values in Connect's JSON envelope, where each record has its own schema."""

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from ....formats.connect import (
    LONE,
    ConnectColumns,
    Schema,
    SchemaUnknown,
    columns_of,
    default_of,
    flaw_of,
    is_required,
)
from ....formats.evolution.policy import parse_ddl
from ....formats.json.flaws import values_of
from ....spi.errors import BadInput
from .bad_records import record_error, reject_records, without_rows
from .decoding import (
    FLAW,
    PARSED,
    JsonDecoder,
    KafkaRows,
    with_flaws,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT: Final = "_fairlead_at"
"""The column of a record's offset, to restore the order of rows of several schemas."""
_NULL: Final = b"null"
_NO_FIELDS: Final[Schema] = {"type": "struct", "fields": [], "optional": True}
"""The schema of tombstones, where no other is known."""
_NO_SCHEMA: Final = "its envelope has a payload without a schema, so its type is unknown"


class Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """Connect's envelope, its two parts not yet parsed; Connect allows no other fields."""

    schema: msgspec.Raw
    payload: msgspec.Raw


class EnvelopeDecoder(JsonDecoder):
    """Decodes values in Connect's JSON envelope of `schema` and `payload`."""

    no_envelope: ClassVar[str] = (
        "it is not Connect's envelope of schema and payload: set "
        "source.value.converter.schemas.enable=false if values are plain JSON"
    )

    def __init__(self, rows: KafkaRows) -> None:
        """Begin without a schema."""
        super().__init__(rows, "")
        self._strange: dict[int, str] = {}
        """The records of the last batch without an envelope, by row, with the reason."""
        self._names: dict[str, str] = {}
        """The columns of the batch by their names in lower case."""
        self._last = _NULL
        """The last schema with columns, for a batch of tombstones alone."""
        self._has_looked = False
        """Whether the last records of the topics were searched for such a schema."""

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the rows, with the columns of all schemas; without a row there are none."""
        self._rejects, self._strange = [], {}
        self._names = {each.lower(): each for each in self._rows.metadata}
        made = (self._frame(spark, schema, part) for schema, part in self._by_schema(table))
        frames = [each for each in made if each is not None]
        if self._strange:
            self._rejects.append(reject_records(spark, table, self._strange))
        if not frames:
            return self._metadata(table.slice(0, 0))
        if len(frames) == 1:
            return frames[0].drop(AT)
        rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
        # One partition: a global sort would run the job twice, and count bad rows twice.
        return rows.coalesce(1).sortWithinPartitions(AT).drop(AT)

    def _frame(self, spark: "SparkSession", schema: bytes, part: pa.Table) -> "DataFrame | None":
        """Return the rows of one schema; None: it is unusable, and the rows are rejected."""
        try:
            envelope_schema = _parsed_schema(schema)
            columns = columns_of(envelope_schema, PARSED)
            flaw = flaw_of(envelope_schema, PARSED)
            self._refuse_cases(columns)
        except SchemaUnknown as unknown:
            why = f"its schema cannot be used: {unknown}"
            self._part_bad(spark, part, dict.fromkeys(range(part.num_rows), why))
            return None
        self._last = schema if columns.select else self._last
        part = self._with_payloads(spark, part, envelope_schema, columns)
        spark_schema = parse_ddl(columns.ddl)
        parsed = self._parsed(spark, with_flaws(part), spark_schema)
        if flaw:
            parsed = parsed.withColumn(FLAW, sf.expr(f"coalesce({FLAW}, {flaw})"))
        frame = self._sound(parsed, spark_schema)
        offset = "_offset" if "_offset" in self._rows.metadata else "_fairlead_offset"
        return frame.selectExpr(*columns.select, *self._kept(), f"{offset} AS {AT}")

    def _refuse_cases(self, columns: ConnectColumns) -> None:
        """Raise `SchemaUnknown` for a column whose name differs from an earlier one's in case.

        A refused schema's records have no row, so none of its names counts.
        """
        names = dict(self._names)
        for name in columns.names:
            known = names.setdefault(name.lower(), name)
            if known != name:
                raise SchemaUnknown(
                    f"its field `{name}` and the column `{known}` of metadata, or of a record "
                    "before it, differ in case only"
                )
            if name in self._rows.metadata:
                raise SchemaUnknown(
                    f"its field `{name}` has the name of a column of source.metadata.columns"
                )
        self._names = names

    def _with_payloads(
        self, spark: "SparkSession", part: pa.Table, schema: Schema, columns: ConnectColumns
    ) -> pa.Table:
        """Return records with payloads to parse, without those that have no usable one.

        Decimals are numbers, a value that is no struct is an object's only field, and a payload of
        null is the schema's default, or nothing.
        """
        rewrite, default = columns.to_numbers, default_of(schema)
        instead = None if default is None else msgspec.json.encode(default)
        form = b"%s" if columns.is_struct else b'{"%s": %%s}' % LONE.encode()
        payloads: list[bytes | None] = []
        bad: dict[int, str] = {}
        for row, payload in enumerate(part["_value"].to_pylist()):
            if payload == _NULL and is_required(schema):
                bad[row] = "its payload is null, but its schema requires a value"
                continue
            there = instead if payload == _NULL else payload
            try:
                made = there and bytes(rewrite(msgspec.Raw(there)) if rewrite else there)
            except msgspec.DecodeError as error:
                bad[row] = f"its Decimals are neither numbers nor base64: {error}"
            else:
                payloads.append(made and form % made)
        if bad:
            self._part_bad(spark, part, bad)
            part = without_rows(part, bad)
        return part.set_column(0, "_value", pa.array(payloads, pa.binary()))

    def _part_bad(self, spark: "SparkSession", part: pa.Table, bad: Mapping[int, str]) -> None:
        """Reject records, or raise for the first of them."""
        if not self._rows.separates_bad:
            row = min(bad)
            raise BadInput(record_error(part, row, bad[row]))
        self._rejects.append(reject_records(spark, part, bad))

    def _by_schema(self, table: pa.Table) -> Iterator[tuple[bytes, pa.Table]]:
        """Yield each schema with the payloads of its records; tombstones go with the first one."""
        decode = msgspec.json.Decoder(Envelope).decode
        rows: dict[bytes, tuple[list[int], list[bytes | None]]] = {}
        alone: list[int] = []
        for row, value in enumerate(values_of(table["_value"]).to_pylist()):
            if value is None:
                alone.append(row)
                continue
            try:
                envelope = decode(value)
            except msgspec.DecodeError:
                self._refuse(table, row, self.no_envelope)
                continue
            schema, payload = bytes(envelope.schema), bytes(envelope.payload)
            if schema == _NULL:
                if payload == _NULL:
                    alone.append(row)
                else:
                    self._refuse(table, row, _NO_SCHEMA)
                continue
            numbers, payloads = rows.setdefault(schema, ([], []))
            numbers.append(row)
            payloads.append(payload)
        if alone:
            usable = (each for each in rows if self._is_usable(each))
            schema = next(usable, b"") or self._last_schema()
            numbers, payloads = rows.setdefault(schema, ([], []))
            numbers += alone
            payloads += [None] * len(alone)
        for schema, (numbers, payloads) in rows.items():
            part = table.take(numbers).set_column(0, "_value", pa.array(payloads, pa.binary()))
            yield schema, part.take(pc.sort_indices(pa.array(numbers)))

    def _is_usable(self, schema: bytes) -> bool:
        """Return whether a schema has columns that rows can have beside their metadata."""
        try:
            names = columns_of(_parsed_schema(schema), PARSED).names
        except SchemaUnknown:
            return False
        metadata = {each.lower() for each in self._rows.metadata}
        return bool(names) and metadata.isdisjoint(each.lower() for each in names)

    def _last_schema(self) -> bytes:
        """Return the last usable schema, at first that of the last records of the topics."""
        if self._last == _NULL and self._rows.sample is not None and not self._has_looked:
            decode, self._has_looked = msgspec.json.Decoder(Envelope).decode, True
            for value in reversed(values_of(self._rows.sample()["_value"]).to_pylist()):
                try:
                    schema = bytes(decode(value or b"").schema)
                except msgspec.DecodeError:
                    continue
                if schema != _NULL and self._is_usable(schema):
                    self._last = schema
                    break
        return self._last

    def _refuse(self, table: pa.Table, row: int, why: str) -> None:
        self._strange[row] = why
        if not self._rows.separates_bad:
            raise BadInput(record_error(table, row, why))


def _parsed_schema(schema: bytes) -> Schema:
    """Return a schema; raises `SchemaUnknown`."""
    try:
        return _NO_FIELDS if schema == _NULL else json.loads(schema)
    except (ValueError, RecursionError):
        raise SchemaUnknown("it is no JSON in UTF-8") from None
