# pyright: basic
"""Decodes keys in JSON: plain, or in Connect's envelope of `schema` and `payload`.

An object becomes a struct, any other value a column of its own type. The worker decodes them, as it
does Avro, so that they stand beside values of any converter. A key must not have other fields than
its column: without these, different keys would be the same.
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from ....spi.errors import BadInput
from ....spi.rows import Rejects
from .decoding import KafkaRows, RecordDecoder
from .envelope import Envelope
from .records.bad_records import record_error, reject_records, without_rows
from .records.connect_schema import SchemaUnknown
from .records.json_texts import find_text_flaws, values_of
from .records.key_forms import KEY, KeyForm, KeyUnfit, form_of, given_form

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_ENVELOPE: Final = (
    "its key is not Connect's envelope of schema and payload: set "
    "source.key.converter.schemas.enable=false if keys are plain JSON"
)


class JsonKeyDecoder(RecordDecoder):
    """Decodes keys in JSON; another decoder decodes the values."""

    def __init__(self, rows: KafkaRows, ddl: str, values: RecordDecoder) -> None:
        """Take the column `_key` as DDL, empty for envelopes, and the decoder of values."""
        super().__init__(rows)
        self._ddl = ddl
        self._values = values
        self._forms: dict[bytes, KeyForm] = {}
        """The columns by their schemas; `b""` is that of plain JSON."""
        self._last: pa.DataType = pa.string()
        """The type of the last key, which a batch without any key has as well."""
        self._rejects: list[Rejects] = []

    @property
    def parts_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return self._rows.parts_bad or self._values.parts_rows

    @property
    def remark(self) -> str:
        """Say which columns of values are left out."""
        return self._values.remark

    def rejects(self) -> Sequence[Rejects]:
        """Return the records with a bad key or a bad value."""
        return [*self._rejects, *self._values.rejects()]

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the decoded values with the decoded keys."""
        self._rejects, bad = [], dict[int, str]()
        keys = self._keys(table[KEY], bad)
        if bad and not self._rows.parts_bad:
            row = min(bad)
            raise BadInput(record_error(table, row, bad[row]))
        keyed = table.set_column(table.column_names.index(KEY), KEY, keys)
        if bad:
            self._rejects.append(reject_records(spark, table, bad))
            keyed = without_rows(keyed, bad)
        return self._values.decode(spark, keyed)

    def _keys(self, texts: pa.ChunkedArray, bad: dict[int, str]) -> pa.ChunkedArray:
        """Return the column of keys; notes the bad ones, whose places are null."""
        texts = values_of(texts)
        flaws = find_text_flaws(texts).to_pylist()
        found: dict[bytes, dict[int, Any]] = {}
        for row, text in enumerate(texts.to_pylist()):
            if text is None:
                continue
            try:
                schema, payload = self._parts(text, flaws[row])
                value = self._form(schema).convert(_parsed(payload))
            except SchemaUnknown as unknown:
                bad[row] = f"the schema of its key cannot be used: {unknown}"
            except KeyUnfit as unfit:
                bad[row] = str(unfit)
            else:
                found.setdefault(schema, {})[row] = value
        return self._united(found, len(texts), bad)

    def _parts(self, text: bytes, flaw: str | None) -> tuple[bytes, bytes]:
        """Return the schema, empty for plain JSON, and the payload of a key."""
        if flaw:
            raise KeyUnfit(f"its key {flaw}")
        if self._ddl:
            return b"", text
        try:
            envelope = msgspec.json.decode(text, type=Envelope)
        except msgspec.DecodeError:
            raise KeyUnfit(_NO_ENVELOPE) from None
        return bytes(envelope.schema), bytes(envelope.payload)

    def _form(self, schema: bytes) -> KeyForm:
        if schema not in self._forms:
            self._forms[schema] = form_of(schema) if schema else given_form(self._ddl)
        return self._forms[schema]

    def _united(
        self, found: Mapping[bytes, Mapping[int, Any]], count: int, bad: dict[int, str]
    ) -> pa.ChunkedArray:
        """Return the keys of all schemas in one column, in the order of their rows."""
        kind = self._form(b"").type if self._ddl else self._last
        united = pa.table({KEY: pa.nulls(0, pa.null() if found else kind)})
        places: list[int] = []
        for schema, values in found.items():
            made = _array(values, self._form(schema).type, bad)
            try:
                parts = [united, pa.table({KEY: made})]
                united = pa.concat_tables(parts, promote_options="permissive")
                places += values
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                bad |= dict.fromkeys(values, "its key is of another type than earlier keys")
        self._last = united.schema[0].type
        at = {row: place for place, row in enumerate(places)}
        return united[KEY].take(pa.array([at.get(row) for row in range(count)], pa.int64()))


def _parsed(text: bytes) -> Any:  # noqa: ANN401  # what JSON holds
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError:
        raise KeyUnfit("its key is no JSON") from None


def _array(values: Mapping[int, Any], kind: pa.DataType, bad: dict[int, str]) -> pa.Array:
    """Return values by row as an array; notes those that the type cannot hold, as nulls."""
    try:
        return pa.array(values.values(), kind)
    except (ValueError, OverflowError):  # ArrowInvalid is a ValueError
        for row, value in values.items():
            try:
                pa.scalar(value, kind)
            except (ValueError, OverflowError):
                bad[row] = f"its key is too large for {kind}"
        return pa.array([None if row in bad else values[row] for row in values], kind)
