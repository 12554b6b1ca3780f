# pyright: basic
"""The columns of keys in JSON, and how parsed values become theirs.

A column comes from a schema of Connect's, or is given. A schema says what is required, and the
default of what is null or missing.
"""

import json
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from .....batches.arrow_schema import arrow_schema_of
from .....formats.evolution.policy import parse_given
from .connect_checks import is_required
from .connect_schema import DECIMAL, Schema, SchemaUnknown, default_of, fields_of, scale_of

Converter = Callable[[Any], Any]
"""Makes a value of a column from parsed JSON, also from null; raises `KeyUnfit`."""

KEY: Final = "_key"
_MOMENT: Final = pa.timestamp("us", "UTC")
_TIMES: Final[Mapping[str, tuple[pa.DataType, int]]] = {
    "org.apache.kafka.connect.data.Date": (pa.date32(), 1),
    "org.apache.kafka.connect.data.Timestamp": (_MOMENT, 1000),
    "io.debezium.time.Date": (pa.date32(), 1),
    "io.debezium.time.Timestamp": (_MOMENT, 1000),
    "io.debezium.time.MicroTimestamp": (_MOMENT, 1),
}
"""The type of a logical type of time, and the factor of its numbers."""
_NUMBERS: Final = ("int8", "int16", "int32", "int64", "float", "float32", "double", "float64")
_PLAIN: Final[Mapping[str, pa.DataType]] = {
    **{each: pa.type_for_alias(each) for each in _NUMBERS},
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}


class KeyUnfit(ValueError):  # noqa: N818  # a state of the record
    """A key does not fit its column; the text says why."""


class KeyForm(NamedTuple):
    """The column of keys."""

    type: pa.DataType
    convert: Converter


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
    if name in _TIMES:
        time, factor = _TIMES[name]
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
    if kind not in _PLAIN:
        raise SchemaUnknown(f"nothing is known of the type {kind!r}")
    return KeyForm(_PLAIN[kind], _converter_of(_PLAIN[kind]))


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
