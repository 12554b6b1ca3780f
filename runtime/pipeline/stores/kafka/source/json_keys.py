# pyright: basic
"""Decodes keys in JSON: plain, or in Connect's envelope of `schema` and `payload`.

An object becomes a struct, any other value a column of its own type. The worker decodes them, as it
does Avro, so that they stand beside values of any converter. A key must not have other fields than
its column: without these, different keys would be the same.

A `KeyForm` is a column's type, and the function that makes its values of parsed JSON. It comes from
a schema of Connect's, which says what is required and what stands for null (`form_of`), or from the
column that is given or inferred (`given_form`). A batch may have keys of several schemas: each
schema's keys become an array of its type, and these are joined if Arrow has a type for all of them.
A key that does not fit is a bad record, and its place is null.
"""

import json
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from ....batches.frames import arrow_schema_of
from ....formats.connect import (
    DECIMAL,
    PLAIN,
    Schema,
    SchemaUnknown,
    default_of,
    fields_of,
    is_required,
    scale_of,
    time_of,
)
from ....formats.evolution.policy import parse_given
from ....formats.json.flaws import find_text_flaws, values_of
from ....spi.errors import BadInput
from ....spi.rows import Rejects
from .bad_records import record_error, reject_records, without_rows
from .decoding import KafkaRows, RecordDecoder
from .envelope import Envelope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_ENVELOPE: Final = (
    "its key is not Connect's envelope of schema and payload: set "
    "source.key.converter.schemas.enable=false if keys are plain JSON"
)


Converter = Callable[[Any], Any]
"""Makes a value of a column from parsed JSON, also from null; raises `KeyUnfit`."""

KEY: Final = "_key"
_MOMENT: Final = pa.timestamp("us", "UTC")
_MILLIS: Final = pa.timestamp("ms", "UTC")


class KeyUnfit(ValueError):  # noqa: N818  # a state of the record
    """A key does not fit its column; the text says why."""


class KeyForm(NamedTuple):
    """The column of keys."""

    type: pa.DataType
    convert: Converter
    """Makes a key of the type from parsed JSON."""


class JsonKeyDecoder(RecordDecoder):
    """Decodes keys in JSON; another decoder decodes the values."""

    def __init__(self, rows: KafkaRows, ddl: str, values: RecordDecoder) -> None:
        """Start with the column `_key` as DDL, empty for envelopes, and the decoder of values."""
        super().__init__(rows)
        self._ddl = ddl
        self._values = values
        self._forms: dict[bytes, KeyForm] = {}
        """The columns by their schemas; `b""` is that of plain JSON."""
        self._last: pa.DataType = pa.string()
        """The type of the last key, which a batch without any key has as well."""
        self._rejects: list[Rejects] = []

    @property
    def separates_bad_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return self._rows.separates_bad or self._values.separates_bad_rows

    @property
    def remark(self) -> str:
        """Return a remark on the columns of values that are left out."""
        return self._values.remark

    def rejects(self) -> Sequence[Rejects]:
        """Return the records with a bad key or a bad value."""
        return [*self._rejects, *self._values.rejects()]

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the decoded values with the decoded keys."""
        self._rejects, bad = [], dict[int, str]()
        keys = self._keys(table[KEY], bad)
        if bad and not self._rows.separates_bad:
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
        by_schema: dict[bytes, dict[int, Any]] = {}
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
                by_schema.setdefault(schema, {})[row] = value
        return self._united(by_schema, len(texts), bad)

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
        self, by_schema: Mapping[bytes, Mapping[int, Any]], count: int, bad: dict[int, str]
    ) -> pa.ChunkedArray:
        """Return the keys of all schemas in one column, in the order of their rows."""
        kind = self._form(b"").type if self._ddl else self._last
        united = pa.table({KEY: pa.nulls(0, pa.null() if by_schema else kind)})
        places: list[int] = []
        for schema, values in by_schema.items():
            keys = _array(values, self._form(schema).type, bad)
            try:
                parts = [united, pa.table({KEY: keys})]
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


def _converter_to(kind: pa.DataType) -> Converter:
    return partial(_optional, _converter_of(kind))


def _converter_of(kind: pa.DataType) -> Converter:
    if pa.types.is_struct(kind):
        return partial(_struct, {each.name: _converter_to(each.type) for each in kind})
    if pa.types.is_list(kind):
        return partial(_list, _converter_to(kind.value_type))
    if pa.types.is_map(kind):
        return partial(_map, _converter_to(kind.item_type))
    for is_kind, kinds, parse in _LEAVES:
        if is_kind(kind):
            return partial(_leaf, str(kind), kinds, parse)
    return partial(_leaf, str(kind), (), str)


def given_form(ddl: str) -> KeyForm:
    """Return the column that is given as DDL; it has no required fields."""
    schema: Any = arrow_schema_of(parse_given(ddl))
    kind: pa.DataType = schema.field(KEY).type
    return KeyForm(kind, _converter_to(kind))


def form_of(schema: bytes) -> KeyForm:
    """Return the column of one of Connect's schemas; raises `SchemaUnknown`."""
    try:
        return _connect_form(json.loads(schema, parse_float=Decimal) or {})
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):  # malformed
        raise SchemaUnknown("it is no schema of Connect's") from None


def _connect_form(schema: Schema) -> KeyForm:
    """Return the column of a schema, whose default stands for null and missing values."""
    form = _bare_form(schema)
    if is_required(schema):
        return KeyForm(form.type, partial(_required, str(schema.get("field", "")), form.convert))
    return KeyForm(form.type, partial(_optional, form.convert, default=default_of(schema)))


def _bare_form(schema: Schema) -> KeyForm:
    kind, name = str(schema.get("type")), schema.get("name") or ""
    if unit := time_of(schema):
        time, factor = (_MOMENT, 1000) if unit == _MILLIS else (unit, 1)
        scaled = partial(_leaf, str(time), (int,), lambda number: number * factor)
        return KeyForm(time, scaled)
    if name == DECIMAL:
        decimal = pa.decimal128(38, max(0, scale_of(schema)))
        parse = partial(_decimal, scale_of(schema))
        return KeyForm(decimal, partial(_leaf, str(decimal), (int, Decimal, str), parse))
    if kind == "struct":
        fields = {at: _connect_form(each) for at, each in fields_of(schema).items()}
        types = pa.struct([(field, form.type) for field, form in fields.items()])
        return KeyForm(types, partial(_struct, {each: fields[each].convert for each in fields}))
    if kind == "array":
        items = _connect_form(schema["items"])
        return KeyForm(pa.list_(items.type), partial(_list, items.convert))
    if kind == "map" and schema["keys"].get("type") == "string":
        values = _connect_form(schema["values"])
        return KeyForm(pa.map_(pa.string(), values.type), partial(_map, values.convert))
    if kind not in PLAIN:
        raise SchemaUnknown(f"nothing is known of the type {kind!r}")
    return KeyForm(PLAIN[kind], _converter_of(PLAIN[kind]))


def _optional(convert: Converter, value: object, *, default: object = None) -> object:
    value = default if value is None else value
    return None if value is None else convert(value)


def _required(name: str, convert: Converter, value: object) -> object:
    if value is None:
        what = f"the field `{name}`" if name else "it"
        raise KeyUnfit(f"its key has no value for {what}, which its schema requires")
    return convert(value)


def _leaf(kind: str, kinds: tuple[type, ...], parse: Converter, value: object) -> object:
    if type(value) in kinds:
        try:
            return parse(value)
        except (ValueError, OverflowError):
            pass
    raise KeyUnfit(f"its key does not fit: {json.dumps(value, default=str)} is no {kind}")


def _struct(fields: Mapping[str, Converter], value: object) -> object:
    if not isinstance(value, dict):
        raise KeyUnfit(f"its key does not fit: there is no object with {', '.join(fields)}")
    if others := [str(name) for name in value if name not in fields]:
        raise KeyUnfit(f"its key has {', '.join(others)} as well, besides {', '.join(fields)}")
    return {name: convert(value.get(name)) for name, convert in fields.items()}


def _list(convert: Converter, value: object) -> object:
    if not isinstance(value, list):
        raise KeyUnfit("its key does not fit: there is no array")
    return [convert(each) for each in value]


def _map(convert: Converter, value: object) -> object:
    if not isinstance(value, dict):
        raise KeyUnfit("its key does not fit: there is no object")
    return [(name, convert(each)) for name, each in value.items()]


def _decimal(scale: int, value: int | Decimal | str) -> Decimal:
    """Return a Decimal: a number, or base64 of its unscaled bytes."""
    if not isinstance(value, str):
        return Decimal(value)
    unscaled = int.from_bytes(b64decode(value, validate=True), signed=True)
    return Decimal(unscaled).scaleb(-scale)


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _double(number: int | Decimal) -> float:
    float(number).as_integer_ratio()  # raises OverflowError for infinity
    return float(number)


def _single(number: int | Decimal) -> float:
    struct.pack("<f", _double(number))  # raises OverflowError for what is infinity there
    return float(number)


_LEAVES: Final[Sequence[tuple[Callable[[pa.DataType], bool], tuple[type, ...], Converter]]] = (
    (pa.types.is_boolean, (bool,), bool),
    (pa.types.is_integer, (int,), int),
    (pa.types.is_float32, (int, Decimal), _single),
    (pa.types.is_floating, (int, Decimal), _double),
    (pa.types.is_decimal, (int, Decimal), Decimal),
    (pa.types.is_date, (str,), date.fromisoformat),
    (pa.types.is_timestamp, (str,), _moment),
    (pa.types.is_binary, (str,), partial(b64decode, validate=True)),
    (pa.types.is_string, (str,), str),
)
"""For each kind of type: the types of parsed JSON, and how they are read."""
