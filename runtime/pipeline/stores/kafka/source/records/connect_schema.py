"""Conversion of the JSON schemas in `JsonConverter` envelopes to Spark types.

Connect's and Debezium's times become Spark's times where Spark has such a type. A `Decimal` is a
number (`decimal.format=NUMERIC`), or base64 of its unscaled bytes, which Spark cannot read as one.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta, Raw
from msgspec.json import Decoder, encode

from .....engines.spelling import literal, quoted

Schema = Mapping[str, Any]
Rewrite = Callable[[Raw], Raw]
"""Rewrites one JSON value, or returns it itself; raises msgspec's `DecodeError`."""

_PLAIN: Final[Mapping[str, str]] = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "float32": "FLOAT",
    "double": "DOUBLE",
    "float64": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "STRING",
    "bytes": "BINARY",
}
_TIMES: Final[Mapping[str, str]] = {
    "org.apache.kafka.connect.data.Date": "date_from_unix_date({})",
    "org.apache.kafka.connect.data.Timestamp": "timestamp_millis({})",
    "io.debezium.time.Date": "date_from_unix_date({})",
    "io.debezium.time.Timestamp": "timestamp_millis({})",
    "io.debezium.time.MicroTimestamp": "timestamp_micros({})",
}
_IN_MILLIS: Final = ("org.apache.kafka.connect.data.Timestamp", "io.debezium.time.Timestamp")
DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_MOST_DIGITS: Final = 38
_OBJECT: Final[Decoder[dict[str, Raw] | None]] = Decoder(dict[str, Raw] | None)
_ARRAY: Final[Decoder[list[Raw] | None]] = Decoder(list[Raw] | None)
_BASE64: Final[Decoder[bytes]] = Decoder(Annotated[bytes, Meta(min_length=1)])
LONE: Final = "_value"
"""The column of a value that is not a struct."""


CORRUPT: Final = "_fairlead_corrupt"
"""The field of a parsed object with its text, if a part of it does not fit."""


class SchemaUnknown(Exception):  # noqa: N818  # says what it is about
    """A schema is not one of Connect's, or Spark has no such type; the text says why."""


class ConnectColumns(NamedTuple):
    """The columns of a value: the DDL to parse with, and the select list that converts them."""

    ddl: str
    select: Sequence[str]
    names: Sequence[str]
    is_struct: bool
    to_numbers: Rewrite | None
    """Rewrites a value's Decimals in base64 as numbers; None: it has no Decimals."""


def columns_of(schema: Schema, parsed: str) -> ConnectColumns:
    """Return the columns of a schema; `parsed` is the name of the parsed object.

    Raises `SchemaUnknown`.
    """
    try:
        return _columns(schema, parsed)
    except (AttributeError, KeyError, TypeError, ValueError):  # malformed
        raise SchemaUnknown("it is no schema of Connect's") from None


def _columns(schema: Schema, parsed: str) -> ConnectColumns:
    is_struct = schema.get("type") == "struct"
    fields = fields_of(schema) if is_struct else {LONE: schema}
    ddl = ", ".join(f"{quoted(name)} {_type(each)}" for name, each in fields.items())
    select = [
        f"{_value(each, f'{parsed}.{quoted(name)}')} AS {quoted(name)}"
        for name, each in fields.items()
    ]
    return ConnectColumns(ddl, select, [*fields], is_struct, _to_numbers(schema))


def fields_of(schema: Schema) -> dict[str, Schema]:
    """Return the schemas of a struct's fields, by name; raises `SchemaUnknown`."""
    try:
        pairs = [(str(each["field"]), each) for each in schema["fields"]]
    except (KeyError, TypeError):
        raise SchemaUnknown("a struct's schema does not name its fields") from None
    spellings = {name.lower(): name for name, _ in reversed(pairs)}
    if twice := [name for name, _ in pairs if spellings[name.lower()] != name]:
        one, other = spellings[twice[0].lower()], twice[0]
        raise SchemaUnknown(f"its fields `{one}` and `{other}` differ in case only")
    if len(spellings) < len(pairs):
        raise SchemaUnknown("it names a field twice")
    return dict(pairs)


def _type(schema: Schema) -> str:
    """Return the type to parse a value with."""
    kind = str(schema.get("type"))
    if schema.get("name") == DECIMAL:
        scale = max(0, scale_of(schema))  # one of 5E2 has the scale -2
        if scale > _MOST_DIGITS:
            raise SchemaUnknown(f"a Decimal has at most {_MOST_DIGITS} digits, not {scale}")
        return f"DECIMAL({_MOST_DIGITS}, {scale})"
    if kind == "struct":
        inner = (f"{quoted(name)}: {_type(each)}" for name, each in fields_of(schema).items())
        return f"STRUCT<{', '.join(inner)}>"
    if kind == "array":
        return f"ARRAY<{_type(schema.get('items', {}))}>"
    if kind == "map" and schema.get("keys", {}).get("type") == "string":
        return f"MAP<STRING, {_type(schema.get('values', {}))}>"
    if kind == "map":
        raise SchemaUnknown("it has a map whose keys are not of the type string")
    if kind not in _PLAIN:
        raise SchemaUnknown(f"nothing is known of the type {kind!r}")
    return _PLAIN[kind]


def scale_of(schema: Schema) -> int:
    """Return the scale of a Decimal's schema."""
    return int(schema.get("parameters", {}).get("scale", 0))


def default_of(schema: Schema) -> object:
    """Return the default of a value in JSON; None: it has none."""
    return schema.get("default")


def is_in_millis(schema: Schema) -> bool:
    """Tell whether a value is a time in ms since 1970."""
    return (schema.get("name") or "") in _IN_MILLIS


def _value(schema: Schema, sql: str) -> str:
    """Return the expression that converts a parsed value, or the default of a missing one."""
    if default_of(schema) is not None:
        sql = f"coalesce({sql}, {_default(schema)})"
    kind = schema.get("type")
    if time := _TIMES.get(schema.get("name") or ""):
        return time.format(sql)
    if kind == "struct" and _is_changed(schema):
        fields = fields_of(schema).items()
        made = ", ".join(
            f"{literal(name)}, {_value(each, f'{sql}.{quoted(name)}')}" for name, each in fields
        )
        return f"IF({sql} IS NULL, NULL, named_struct({made}))"
    if kind == "array" and _is_changed(schema):
        return f"transform({sql}, each -> {_value(schema['items'], 'each')})"
    if kind == "map" and _is_changed(schema):
        return f"transform_values({sql}, (name, each) -> {_value(schema['values'], 'each')})"
    return sql


def _default(schema: Schema) -> str:
    """Return the expression of a default, in the type that values are parsed with."""
    text = encode(default_of(schema))
    rewrite = _to_numbers(schema)
    made = b'{"v":%s}' % (bytes(rewrite(Raw(text))) if rewrite else text)
    return f"from_json({literal(made.decode())}, {literal(f'v {_type(schema)}')}).v"


def _is_changed(schema: Schema) -> bool:
    """Tell whether a value has times, which must be converted, or defaults."""
    if default_of(schema) is not None:
        return True
    if schema.get("type") == "struct":
        return any(map(_is_changed, fields_of(schema).values()))
    if schema.get("type") == "array":
        return _is_changed(schema.get("items", {}))
    if schema.get("type") == "map":
        return _is_changed(schema.get("values", {}))
    return (schema.get("name") or "") in _TIMES


def _to_numbers(schema: Schema) -> Rewrite | None:
    kind = schema.get("type")
    if schema.get("name") == DECIMAL:
        return partial(_number, scale_of(schema))
    if kind == "struct":
        fields = fields_of(schema).items()
        inside = {name: made for name, each in fields if (made := _to_numbers(each))}
        return partial(_struct, inside) if inside else None
    if kind == "array":
        items = _to_numbers(schema.get("items", {}))
        return items and partial(_array, items)
    if kind == "map":
        values = _to_numbers(schema.get("values", {}))
        return values and partial(_map, values)
    return None


def _number(scale: int, found: Raw) -> Raw:
    if not bytes(found).startswith(b'"'):
        return found
    return Raw(b"%dE%d" % (int.from_bytes(_BASE64.decode(found), signed=True), -scale))


def _struct(inside: Mapping[str, Rewrite], found: Raw) -> Raw:
    fields = _OBJECT.decode(found) or {}
    made = {name: inside[name](each) for name, each in fields.items() if name in inside}
    return _replaced(found, fields, made)


def _array(item: Rewrite, found: Raw) -> Raw:
    items = _ARRAY.decode(found) or []
    made = [item(each) for each in items]
    return found if all(map(is_, made, items)) else Raw(encode(made))


def _map(value: Rewrite, found: Raw) -> Raw:
    values = _OBJECT.decode(found) or {}
    return _replaced(found, values, {name: value(each) for name, each in values.items()})


def _replaced(found: Raw, values: dict[str, Raw], made: dict[str, Raw]) -> Raw:
    """Return an object with some of its values replaced; itself if none of them changed."""
    is_same = all(each is values[name] for name, each in made.items())
    return found if is_same else Raw(encode(values | made))
