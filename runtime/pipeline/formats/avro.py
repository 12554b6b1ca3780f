# pyright: basic
"""Conversion between Avro schemas and Arrow types.

Values pass in Avro's form: a time is a number, and the Arrow type has its unit. So fastavro gets
schemas without logical types, except decimal.

A union with null is a nullable column. A union of several types is read as Connect reads it, as a
struct with one field for each type. fastavro's values do not tell int from long, or string from
enum. But a record with one field has the same bytes as the field. So each type of a union is
wrapped in such a record before fastavro gets the schema, and a value comes as `{"int": 1}`.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import pyarrow as pa
from fastavro import parse_schema
from fastavro.schema import SchemaParseException, UnknownType

from .connect import DEBEZIUM_TIMES

_UTC: Final = "UTC"
_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", _UTC),
    ("long", "timestamp-micros"): pa.timestamp("us", _UTC),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_WRITTEN: Final[Mapping[pa.DataType, Any]] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.uint8(): "int",
    pa.uint16(): "int",
    pa.int64(): "long",
    pa.uint32(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.string(): "string",
    pa.large_string(): "string",
    **{kind: {"type": base, "logicalType": name} for (base, name), kind in _LOGICAL.items()},
}
_MOST_DIGITS: Final = 38
_ENDLESS: Final = 10_000
"""The precision that fastavro gets for decimals, since it rounds to the given precision."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_NAMED: Final = ("record", "error", "enum", "fixed")
_INSIDE: Final = {"array": "items", "map": "values"}
_NULL: Final = "null"


class AvroRefused(Exception):  # noqa: N818  # says what it is about
    """A schema is invalid, or has no equivalent; the text says why."""


class AvroSchema(NamedTuple):
    """A schema that is parsed for reading and writing."""

    parsed: Any
    """The schema for fastavro."""
    kind: pa.DataType
    """The Arrow type of values, with times in their units; a record is a struct."""
    name: str
    """The full name of a record; empty for everything else."""
    needed: frozenset[str]
    """The fields of a record without a default that must not be null."""
    has_branches: bool
    """Whether it has a union of several types, which can be read but not written."""


class RegisteredSchema(NamedTuple):
    """A schema of the registry, with the schemas that it references, in order of dependency."""

    id: int
    kind: str
    """`AVRO`, `JSON` or `PROTOBUF`."""
    text: str
    references: tuple[str, ...] = ()
    """The texts of those schemas."""


def avro_schema(registered: RegisteredSchema) -> AvroSchema:
    """Parse a schema of the registry; raises `AvroRefused`."""
    if registered.kind != "AVRO":
        raise AvroRefused(f"it is {registered.kind}, not Avro")
    try:
        documents = [json.loads(each) for each in (*registered.references, registered.text)]
        bare, numbers = [_bare(each) for each in documents], count()
        marked = [_tagged(each, numbers) for each in bare]
        has_branches = next(numbers) > 0
        *_, parsed = _parsed(marked if has_branches else bare)
        *_, whole = _parsed(documents, expand=True)
        is_record = isinstance(whole, dict) and whole["type"] == "record"
        fields = whole["fields"] if is_record else ()
        needed = (each["name"] for each in fields if "default" not in each and not _is_null(each))
        name = str(whole["name"]) if is_record else ""
        return AvroSchema(parsed, _kind(whole), name, frozenset(needed), has_branches)
    except (SchemaParseException, UnknownType) as error:
        raise AvroRefused(f"it is no schema of Avro's: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise AvroRefused("it is no schema of Avro's") from None


def optional_of(kind: pa.DataType, name: str) -> list[Any]:
    """Return the schema of a nullable value; `name` is the prefix for names of records in it."""
    return ["null", _written(kind, name)]


def as_columns(kind: pa.DataType) -> pa.DataType:
    """Return the type for Spark: timestamps in µs, and times of day as texts."""

    def column(leaf: pa.DataType) -> pa.DataType:
        if pa.types.is_timestamp(leaf):
            return pa.timestamp("us", leaf.tz)
        return pa.string() if pa.types.is_time(leaf) else leaf

    return retyped(kind, column)


def as_numbers(kind: pa.DataType) -> pa.DataType:
    """Return the type with numbers in place of times."""

    def number(leaf: pa.DataType) -> pa.DataType:
        if pa.types.is_date32(leaf) or pa.types.is_time32(leaf):
            return pa.int32()
        is_long = pa.types.is_timestamp(leaf) or pa.types.is_time64(leaf)
        return pa.int64() if is_long else leaf

    return retyped(kind, number)


def retyped(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with `change` applied to all leaf types."""
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(retyped(each.type, change)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(retyped(kind.value_type, change))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, retyped(kind.item_type, change))
    return change(kind)


def _parsed(documents: Sequence[Any], *, expand: bool = False) -> Sequence[Any]:
    named: dict[str, Any] = {}
    return [parse_schema(each, named, expand=expand) for each in documents]


def _bare(schema: Any) -> Any:  # noqa: ANN401  # JSON
    """Return a schema without logical types of times, and with decimals that are never rounded."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: value if key == "default" else _bare(value)
        for key, value in schema.items()
        if key != "logicalType"
    }
    if schema.get("logicalType") != "decimal":
        return kept
    size = schema.get("size")
    digits = _ENDLESS if size is None else math.floor(math.log10(2) * (8 * size - 1))
    return {**kept, "logicalType": "decimal", "precision": digits}


def _kind(schema: Any) -> pa.DataType:  # noqa: ANN401  # JSON
    if isinstance(schema, list):
        kinds = _branches(schema)
        if len(kinds) > 1:
            return _of_branches(kinds)
        return _kind(kinds[0] if kinds else "null")
    if isinstance(schema, str):
        if schema not in _PLAIN:
            raise AvroRefused(f"{schema} holds itself, which no column can")
        return _PLAIN[schema]
    base, logical = schema["type"], schema.get("logicalType")
    if not isinstance(base, str):
        return _kind(base)
    if logical == "decimal" and base in {"bytes", "fixed"}:
        digits = min(schema["precision"], _MOST_DIGITS)
        return pa.decimal128(digits, min(schema.get("scale", 0), digits))
    return (
        _debezium_time(base, schema) or _LOGICAL.get((base, str(logical))) or _nested(base, schema)
    )


def _debezium_time(base: str, schema: Mapping[str, Any]) -> pa.DataType | None:
    """Return the time of a type that has a name of Connect's only, as in Connect's JSON."""
    time = DEBEZIUM_TIMES.get(str(schema.get("connect.name")))
    return time if time and base == ("int" if pa.types.is_date32(time) else "long") else None


def _of_branches(kinds: Sequence[Any]) -> pa.DataType:
    """Return Connect's struct for a union: one field for each type."""
    names = [_branch(each) for each in kinds]
    if len({each.lower() for each in names}) < len(names):
        raise AvroRefused(f"the types of a union are no fields by their names: {', '.join(names)}")
    return pa.struct([(name, _kind(each)) for name, each in zip(names, kinds, strict=True)])


def _nested(base: str, schema: Mapping[str, Any]) -> pa.DataType:
    if base in {"record", "error"}:
        return pa.struct([(each["name"], _kind(each["type"])) for each in schema["fields"]])
    if base == "array":
        return pa.list_(_kind(schema["items"]))
    if base == "map":
        return pa.map_(pa.string(), _kind(schema["values"]))
    return _kind(base)


def _is_null(field: Mapping[str, Any]) -> bool:
    kind = field["type"]
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


def schema_of(fields: Any, name: str) -> dict[str, Any]:  # noqa: ANN401  # a schema or a struct
    """Return the schema of a record with nullable fields for columns; raises `AvroRefused`."""
    for each in fields:
        if not _NAME.fullmatch(each.name):
            raise AvroRefused(f"Avro has no name for column {each.name!r}: rename it")
    space, _, last = name.rpartition(".")
    written = [
        {
            "name": each.name,
            "type": optional_of(each.type, f"{name}.{each.name}"),
            "default": None,
        }
        for each in fields
    ]
    return {"type": "record", "name": last, "namespace": space, "fields": written}


def _written(kind: pa.DataType, name: str) -> Any:  # noqa: ANN401  # JSON
    if kind in _WRITTEN:
        return _WRITTEN[kind]
    if pa.types.is_decimal(kind) and kind.scale >= 0:
        parts = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **parts}
    if pa.types.is_timestamp(kind):
        return _WRITTEN[pa.timestamp("us", kind.tz and _UTC)]
    if pa.types.is_struct(kind):
        return schema_of(kind, name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": optional_of(kind.value_type, name)}
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return {"type": "map", "values": optional_of(kind.item_type, name)}
    raise AvroRefused(f"Avro has no type for column {name.rpartition('.')[2]}: {kind}")


def _tagged(schema: Any, numbers: Iterator[int]) -> Any:  # noqa: ANN401  # JSON
    """Return a schema with each type of a union wrapped in a record; removes defaults.

    Each record's name has the next of `numbers`.
    """
    if isinstance(schema, list):
        types = [_tagged(each, numbers) for each in schema]
        if len(_branches(schema)) <= 1:
            return types
        return [each if _branch(each) == _NULL else _one_field(each, numbers) for each in types]
    if not isinstance(schema, dict):
        return schema
    made = {key: value for key, value in schema.items() if key != "default"}
    inner = _INSIDE.get(str(made["type"]), "type")
    made[inner] = _tagged(made[inner], numbers)
    if "fields" in made:
        made["fields"] = [_tagged(each, numbers) for each in made["fields"]]
    return made


def _branches(union: Sequence[Any]) -> Sequence[Any]:
    """Return the types of a union without null."""
    return [each for each in union if _branch(each) != _NULL]


def _branch(kind: Any) -> str:  # noqa: ANN401  # JSON
    """Return Connect's field name for a type: its name without the namespace."""
    while isinstance(kind, dict):
        kind = kind["name"] if kind["type"] in _NAMED else kind["type"]
    return str(kind).rpartition(".")[2]


def _one_field(kind: Any, numbers: Iterator[int]) -> dict[str, Any]:  # noqa: ANN401  # JSON
    fields = [{"name": _branch(kind), "type": kind}]
    return {"type": "record", "name": f"_fairlead_branch_{next(numbers)}", "fields": fields}
