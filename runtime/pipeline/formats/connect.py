# pyright: basic
"""Connect's JSON schemas: as the columns of Spark that read them, and made of the types of Arrow.

One table has the plain types, and one the times that have a name (Connect's own and Debezium's),
each with its type in Arrow. All else follows from these two, whoever asks: the type that Spark
parses a value with, the columns of keys, the schema of rows that are written.

Reading. `columns_of` gives the types to parse payloads with, and the expressions that make their
values: a time comes as a number, so it is converted, and a default stands for a value that is null
or not there. A `Decimal` is a number (`decimal.format=NUMERIC`), or base64 of its unscaled bytes,
which Spark cannot read as one: `to_numbers` rewrites the text before. `flaw_of` finds what the
converter of Connect refuses: no value where one is required and has no default (it is required
unless its schema says `"optional": true`). It also finds milliseconds beyond Spark's timestamps:
Debezium writes such ones for PostgreSQL's `infinity`.

Writing. `envelope_of` makes the schema of rows, whose fields are all optional, and has their times
as numbers: milliseconds, or microseconds under Debezium's name for these.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Annotated, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta, Raw
from msgspec.json import Decoder, encode

from ..engines.spelling import literal, quoted
from ..spi.errors import RowsRefused, SchemaRefused
from .evolution.arrow_columns import MOST_DIGITS, spark_type

Schema = Mapping[str, Any]
Rewrite = Callable[[Raw], Raw]
"""Rewrites one JSON value, or returns it itself; raises msgspec's `DecodeError`."""

DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_DATE: Final = "org.apache.kafka.connect.data.Date"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
MICRO_TIMESTAMP: Final = "io.debezium.time.MicroTimestamp"
_DAYS: Final = pa.date32()
_MILLIS: Final = pa.timestamp("ms", "UTC")
_MICROS: Final = pa.timestamp("us", "UTC")

PLAIN: Final[Mapping[str, pa.DataType]] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float": pa.float32(),
    "float64": pa.float64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
"""The types without a name; the last name of a type is the one that is written."""
DEBEZIUM_TIMES: Final[Mapping[str, pa.DataType]] = {
    "io.debezium.time.Date": _DAYS,
    "io.debezium.time.Timestamp": _MILLIS,
    MICRO_TIMESTAMP: _MICROS,
}
TIMES: Final[Mapping[str, pa.DataType]] = {_DATE: _DAYS, TIMESTAMP: _MILLIS, **DEBEZIUM_TIMES}
"""The names of dates and times, whose numbers are in the unit of the type."""

_FROM_NUMBER: Final[Mapping[pa.DataType, str]] = {
    _DAYS: "date_from_unix_date({})",
    _MILLIS: "timestamp_millis({})",
    _MICROS: "timestamp_micros({})",
}
_WRITTEN: Final[Mapping[pa.DataType, str]] = {
    **{kind: name for name, kind in PLAIN.items()},
    pa.uint8(): "int16",
    pa.uint16(): "int32",
    pa.uint32(): "int64",
    pa.large_string(): "string",
    pa.large_binary(): "bytes",
}
_LATEST_MS: Final = ((1 << 63) - 1) // 1000
"""The latest time of a timestamp in ms since 1970; the earliest one is its negative."""
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
    """The columns to parse payloads with."""
    select: Sequence[str]
    """The expressions of the columns, from what was parsed."""
    names: Sequence[str]
    is_struct: bool
    """Whether a value is a struct, and not a single column."""
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
        if scale > MOST_DIGITS:
            raise SchemaUnknown(f"a Decimal has at most {MOST_DIGITS} digits, not {scale}")
        return f"DECIMAL({MOST_DIGITS}, {scale})"
    if kind == "struct":
        inner = (f"{quoted(name)}: {_type(each)}" for name, each in fields_of(schema).items())
        return f"STRUCT<{', '.join(inner)}>"
    if kind == "array":
        return f"ARRAY<{_type(schema.get('items', {}))}>"
    if kind == "map" and schema.get("keys", {}).get("type") == "string":
        return f"MAP<STRING, {_type(schema.get('values', {}))}>"
    if kind == "map":
        raise SchemaUnknown("it has a map whose keys are not of the type string")
    if kind not in PLAIN:
        raise SchemaUnknown(f"nothing is known of the type {kind!r}")
    return spark_type(PLAIN[kind])


def scale_of(schema: Schema) -> int:
    """Return the scale of a Decimal's schema."""
    return int(schema.get("parameters", {}).get("scale", 0))


def default_of(schema: Schema) -> object:
    """Return the default of a value in JSON; None: it has none."""
    return schema.get("default")


def time_of(schema: Schema) -> pa.DataType | None:
    """Return Connect's date or time type of this name; None: it is another name."""
    return TIMES.get(schema.get("name") or "")


def _value(schema: Schema, sql: str) -> str:
    """Return the expression that converts a parsed value, or the default of a missing one."""
    if default_of(schema) is not None:
        sql = f"coalesce({sql}, {_default(schema)})"
    kind = schema.get("type")
    if time := time_of(schema):
        return _FROM_NUMBER[time].format(sql)
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
    """Return whether a value has times, which must be converted, or defaults."""
    if default_of(schema) is not None:
        return True
    if schema.get("type") == "struct":
        return any(map(_is_changed, fields_of(schema).values()))
    if schema.get("type") == "array":
        return _is_changed(schema.get("items", {}))
    if schema.get("type") == "map":
        return _is_changed(schema.get("values", {}))
    return time_of(schema) is not None


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


def is_required(schema: Schema) -> bool:
    """Return whether a value must not be null, nor missing."""
    return schema.get("optional") is not True and default_of(schema) is None


def flaw_of(schema: Schema, parsed: str) -> str:
    """Return the expression of the reason why a parsed record is refused; "": none ever is.

    `parsed` is the name of the parsed object, whose column `_value` is a value that is no struct.
    """
    is_struct = schema.get("type") == "struct"
    fields = fields_of(schema) if is_struct else {LONE: schema}
    flaw = _first([_flaw(each, at, f"{parsed}.{quoted(at)}") for at, each in fields.items()])
    # A value that does not fit its type is null here as well, and is told as such.
    is_whole = f"{parsed} IS NOT NULL AND {parsed}.{CORRUPT} IS NULL"
    return flaw and f"CASE WHEN {is_whole} THEN {flaw} END"


def _flaw(schema: Schema, name: str, sql: str) -> str:
    """Return the expression of the reason why a parsed value is refused; "": none ever is.

    Its value is null for values that are not refused. `name` is the field's name.
    """
    whys = [*_own_flaws(schema, name, sql)]
    if inner := _inner_flaw(schema, name, sql):
        whys.append(f"CASE WHEN {sql} IS NOT NULL THEN {inner} END")
    return _first(whys)


def _own_flaws(schema: Schema, name: str, sql: str) -> Iterable[str]:
    if is_required(schema):
        why = literal(f"has no value for the field `{name}`, which its schema requires")
        yield f"CASE WHEN {sql} IS NULL THEN {why} END"
    if time_of(schema) == _MILLIS:
        before = literal(f"has a time in the field `{name}` that no timestamp holds: ")
        why = f"concat({before}, CAST({sql} AS STRING), ' ms since 1970')"
        yield f"CASE WHEN {sql} NOT BETWEEN {-_LATEST_MS} AND {_LATEST_MS} THEN {why} END"


def _inner_flaw(schema: Schema, name: str, sql: str) -> str:
    """Return the expression for the values within a value; "": none is refused."""
    kind = schema.get("type")
    if kind == "struct":
        fields = fields_of(schema).items()
        return _first([_flaw(each, at, f"{sql}.{quoted(at)}") for at, each in fields])
    if kind == "array":
        return _of_items(sql, lambda each: _flaw(schema.get("items", {}), name, each))
    if kind == "map":
        return _of_items(
            f"map_values({sql})", lambda each: _flaw(schema.get("values", {}), name, each)
        )
    return ""


def _of_items(sql: str, flaw: Callable[[str], str]) -> str:
    inner = flaw("each")
    return inner and f"get(filter(transform({sql}, each -> {inner}), why -> why IS NOT NULL), 0)"


def _first(whys: Iterable[str]) -> str:
    found = [each for each in whys if each]
    return f"coalesce({', '.join(found)})" if found else ""


class WrittenTimes(NamedTuple):
    """How times are written."""

    name: str = TIMESTAMP
    """The name of their type, a key of `TIMES`."""
    advice: str = "write it as Avro or without schemas"
    """What else to do with a time that does not fit."""


def envelope_of(
    columns: pa.Table, *, is_lone: bool, times: WrittenTimes | None = None
) -> tuple[dict[str, Any], pa.Table]:
    """Return the schema of rows, and the rows with times as numbers.

    Raises `SchemaRefused`, and `RowsRefused` for a time that has more than milliseconds.

    A Decimal is written as a number, which Connect's JsonConverter reads with any `decimal.format`.
    """
    times = times or WrittenTimes()
    fields = [_field_of(each.name, each.type, times.name) for each in columns.schema]
    numbers = pa.table(
        {name: _with_numbers(columns[name], name, times) for name in columns.column_names},
    )
    if is_lone:
        lone = {key: value for key, value in fields[0].items() if key != "field"}
        return lone, numbers
    return {"type": "struct", "optional": False, "fields": fields}, numbers


def cut_times(columns: pa.Table) -> pa.Table:
    """Return columns whose times have milliseconds; what they have beyond is gone."""
    millis = [each.with_type(_retyped(each.type, pa.timestamp("ms"))) for each in columns.schema]
    return columns.cast(pa.schema(millis), safe=False)


def _field_of(name: str, kind: pa.DataType, time: str) -> dict[str, Any]:
    return {"field": name, "optional": True, **_type_of(kind, name, time)}


def _type_of(  # noqa: PLR0911  # one for each kind
    kind: pa.DataType, name: str, time: str
) -> dict[str, Any]:
    if plain := _WRITTEN.get(kind):
        return {"type": plain}
    if pa.types.is_date32(kind):
        return {"type": "int32", "name": _DATE, "version": 1}
    if pa.types.is_timestamp(kind):
        return {"type": "int64", "name": time, "version": 1}
    if pa.types.is_decimal(kind):
        parameters = {"scale": str(kind.scale)}
        return {"type": "bytes", "name": DECIMAL, "version": 1, "parameters": parameters}
    if pa.types.is_struct(kind):
        fields = [_field_of(each.name, each.type, time) for each in kind]
        return {"type": "struct", "fields": fields}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = _type_of(kind.value_type, name, time)
        return {"type": "array", "items": {"optional": True, **items}}
    if pa.types.is_map(kind):
        values = {"optional": True, **_type_of(kind.item_type, name, time)}
        return {"type": "map", "keys": _type_of(kind.key_type, name, time), "values": values}
    raise SchemaRefused(f"Connect has no type for column {name}: {kind}")


def _with_numbers(column: pa.ChunkedArray, name: str, times: WrittenTimes) -> pa.ChunkedArray:
    """Return a column with its dates as days and its times as numbers since 1970."""
    unit = pa.timestamp(TIMES[times.name].unit)
    written, plain = _retyped(column.type, unit), _retyped(column.type, pa.int64())
    if plain == column.type:
        return column
    if pa.types.is_nested(column.type):  # a copy: a cast looks at what lies beside a slice, too
        column = column.take(pa.array(range(len(column)), pa.int64()))
    try:
        return pc.cast(pc.cast(column, written), plain)
    except pa.ArrowInvalid:
        raise RowsRefused(
            f"column {name}: a time has microseconds, and Connect's Timestamp has milliseconds: "
            f"cut them by a transform (date_trunc('MILLISECOND', {name})), or {times.advice}"
        ) from None


def _retyped(kind: pa.DataType, time: pa.DataType) -> pa.DataType:
    """Return a type with its times replaced by `time`; dates become int32 if `time` is a number."""
    if pa.types.is_timestamp(kind):
        return time
    if pa.types.is_date32(kind):
        return pa.int32() if pa.types.is_integer(time) else kind
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_retyped(each.type, time)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(_retyped(kind.value_type, time))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _retyped(kind.item_type, time))
    return kind
