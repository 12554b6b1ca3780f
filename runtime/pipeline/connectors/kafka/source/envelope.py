# pyright: basic, reportAttributeAccessIssue=false
"""Decodes values in Connect's JSON envelope, where each record has its own schema."""

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ....spi.errors import BadInput
from ...evolution.policy import parse_ddl
from .connect_schema import LONE, Rewrite, SchemaUnknown, columns_of
from .decoding import PARSED, JsonDecoder, KafkaRows, record_error, reject_records, without_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT: Final = "_fairlead_at"
"""The column of a record's offset, to restore the order of rows of several schemas."""
_NULL: Final = b"null"
_NO_FIELDS: Final = {"type": "struct", "fields": []}
"""The schema of tombstones, where no other is known."""
_NO_SCHEMA: Final = "its envelope has a payload without a schema, so its type is unknown"


class Envelope(msgspec.Struct):
    """Connect's envelope, its two parts not yet parsed."""

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
        self._last = _NULL
        """The last schema with columns, for a batch of tombstones alone."""

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the rows, with the columns of all schemas; without a row there are none."""
        self._rejects, self._strange = [], {}
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
            known: Mapping[str, object] = _NO_FIELDS if schema == _NULL else json.loads(schema)
            columns = columns_of(known, PARSED)
        except SchemaUnknown as unknown:
            why = f"its schema cannot be used: {unknown}"
            if self._rows.parts_bad:
                every = dict.fromkeys(range(part.num_rows), why)
                self._rejects.append(reject_records(spark, part, every))
                return None
            raise BadInput(record_error(part, 0, why)) from None
        self._last = schema if columns.select else self._last
        if columns.to_numbers is not None:
            part = self._with_numbers(spark, part, columns.to_numbers)
        if not columns.is_struct:
            payloads = part["_value"].to_pylist()
            lone = [each and b'{"%s": %s}' % (LONE.encode(), each) for each in payloads]
            part = part.set_column(0, "_value", pa.array(lone, pa.binary()))
        found = parse_ddl(columns.ddl)
        frame = self._sound(self._parsed(spark, part, found), found)
        offset = "_offset" if "_offset" in self._rows.metadata else "_fairlead_offset"
        return frame.selectExpr(*columns.select, *self._kept(), f"{offset} AS {AT}")

    def _with_numbers(self, spark: "SparkSession", part: pa.Table, to_numbers: Rewrite) -> pa.Table:
        """Return records with Decimals as numbers, without those that have others."""
        payloads: list[bytes | None] = []
        bad: dict[int, str] = {}
        for row, payload in enumerate(part["_value"].to_pylist()):
            try:
                payloads.append(payload and bytes(to_numbers(msgspec.Raw(payload))))
            except msgspec.DecodeError as error:
                bad[row] = f"its Decimals are neither numbers nor base64: {error}"
                if not self._rows.parts_bad:
                    raise BadInput(record_error(part, row, bad[row])) from None
        if bad:
            self._rejects.append(reject_records(spark, part, bad))
            part = without_rows(part, bad)
        return part.set_column(0, "_value", pa.array(payloads, pa.binary()))

    def _by_schema(self, table: pa.Table) -> Iterator[tuple[bytes, pa.Table]]:
        """Yield each schema with the payloads of its records; tombstones go with the first one."""
        decode = msgspec.json.Decoder(Envelope).decode
        rows: dict[bytes, tuple[list[int], list[bytes | None]]] = {}
        alone: list[int] = []
        for row, value in enumerate(table["_value"].to_pylist()):
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
            numbers, payloads = rows.setdefault(next(iter(rows), self._last), ([], []))
            numbers += alone
            payloads += [None] * len(alone)
        for schema, (numbers, payloads) in rows.items():
            part = table.take(numbers).set_column(0, "_value", pa.array(payloads, pa.binary()))
            yield schema, part.take(pc.sort_indices(pa.array(numbers)))

    def _refuse(self, table: pa.Table, row: int, why: str) -> None:
        self._strange[row] = why
        if not self._rows.parts_bad:
            raise BadInput(record_error(table, row, why))
