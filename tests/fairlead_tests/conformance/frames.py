"""Encodes and decodes frames of Kafka's protocol with kio, with Kafka's own field names.

A frame here is without its length: header and body. Bytes and uuids are spelled `hex:…`, durations
are milliseconds, errors are numbers. What a version lacks, or a tag leaves out, may be missing.
"""
# pyright: basic

import io
import typing
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

MS = timedelta(milliseconds=1)
FROM_FIELDS: dict[str, Callable[[Any], Any]] = {
    "bytes": lambda told: bytes.fromhex(told.removeprefix("hex:")),
    "uuid": lambda told: UUID(told.removeprefix("hex:")),
    "error_code": ErrorCode,
    "timedelta_i32": lambda told: told * MS,
    "timedelta_i64": lambda told: told * MS,
}
"""The parsers of values, by schema type; other values are used as they are."""


class Frame(NamedTuple):
    """A decoded frame, with kio's classes."""

    header: Any
    message: Any


@cache
def message_class(direction: str, api_key: int, version: int) -> Any:
    """Return kio's class for the requests or the responses of a call in one version."""
    load = load_request_schema if direction == "request" else load_response_schema
    return load(api_key, version)


def read_frame(data: bytes, message_class: Any) -> Frame:
    """Decode a frame, which must be used up completely."""
    header, start = entity_reader(message_class.__header_schema__)(data, 0)
    message, size = entity_reader(message_class)(data, start)
    assert start + size == len(data), "bytes after the end of the message"
    return Frame(header, message)


def write_frame(frame: Frame) -> bytes:
    """Encode a frame."""
    out = io.BytesIO()
    for part in frame:
        entity_writer(type(part))(out, part)
    return out.getvalue()


def spell(value: Any) -> Any:
    """Format a message, or a structure in one."""
    match value:
        case bytes() | UUID():
            return f"hex:{value.hex if isinstance(value, UUID) else value.hex()}"
        case timedelta():
            return value // MS
        case Enum():
            return value.value
        case tuple():
            return [*map(spell, value)]
    if not is_dataclass(value):
        return value
    return {name: spell(getattr(value, each.name)) for name, each in named_fields(value)}


def build(kind: Any, told: Any) -> Any:
    """Parse a message, or a structure in one."""
    if told is None:
        return None
    if isinstance(told, list):
        return tuple(build(kind, each) for each in told)
    values = {each.name: (each, told[name]) for name, each in named_fields(kind) if name in told}
    return kind(**{name: _build_field(each, value) for name, (each, value) in values.items()})


def _build_field(field: Field[Any], told: Any) -> Any:
    kafka_type = field.metadata.get("kafka_type")
    if kafka_type is None:
        return build(next(_classes(field.type)), told)
    make = FROM_FIELDS.get(kafka_type, lambda same: same)
    if isinstance(told, list):
        return tuple(map(make, told))
    return None if told is None else make(told)


def _classes(kind: Any) -> Iterator[Any]:
    """Yield the structures in a type: `tuple[Member, ...] | None` has one."""
    if is_dataclass(kind):
        yield kind
    for each in typing.get_args(kind):
        yield from _classes(each)


def named_fields(kind: Any) -> tuple[tuple[str, Field[Any]], ...]:
    """Return the fields of a class of kio, each with its name in Kafka's schema."""
    return tuple((_name(each), each) for each in fields(kind))


def _name(field: Field[Any]) -> str:
    words = field.name.title().replace("_", "")
    return f"{words}Ms" if field.metadata.get("kafka_type", "").startswith("timedelta") else words
