"""Encodes and decodes the frames of Kafka's protocol with kio.

A frame here is without its length prefix. A message is refused if it does not fill its frame
exactly, or has null in a field that is not nullable. Unknown tagged fields are skipped, as in Kafka
(KIP-482): kio refuses them, so a structure that has any is decoded field by field.
"""
# pyright: basic

import io
import struct
import typing
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import cache, partial
from typing import Any, Final, NamedTuple

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.serial._parse import get_field_reader
from kio.serial.errors import DecodeError
from kio.serial.readers import compact_array_reader, read_unsigned_varint
from kio.static.constants import EntityType

from .bounds import FrameRefused
from .connect_messages import REQUESTS, RESPONSES
from .lengths import check_lengths, end_of_header
from .terms import NO_TOPIC_IDS, TopicIds

HEAD: Final = struct.Struct(">hhi")
LENGTH: Final = struct.Struct(">i")
API_VERSIONS: Final = 18
"""Its responses have header version 0 in all versions."""


class Head(NamedTuple):
    """The first eight bytes of a request."""

    api: int
    version: int
    number: int
    """The correlation id."""


class Request(NamedTuple):
    """A decoded request, and the client id in its header."""

    head: Head
    client_id: str
    message: Any
    topic_ids: TopicIds = NO_TOPIC_IDS
    """Those by which it is answered; most versions have names instead."""


Read = Callable[[bytes, int], tuple[Any, int]]
"""Decodes a value at a position in a frame; returns it and its size in bytes."""


class _RequestForm(NamedTuple):
    kind: Any
    read_header: Read
    read: Read


def read_head(data: bytes) -> Head:
    """Decode the first eight bytes of a request."""
    return Head(*HEAD.unpack_from(data))


def read_request(
    head: Head, frame: bytes, topic_ids: TopicIds = NO_TOPIC_IDS, *, is_exact: bool = True
) -> Request:
    """Decode a request; raises `FrameRefused`.

    Unless it has to be exact, bytes behind it are ignored, as brokers ignore them.
    """
    form = _form_of_request(head.api, head.version)
    is_flexible = form.kind.__header_schema__.__flexible__
    check_lengths(form.kind, frame, end_of_header(frame, is_flexible=is_flexible))
    try:
        header, start = form.read_header(frame, 0)
        message, size = form.read(frame, start)
    except (DecodeError, ValueError, LookupError, OverflowError, MemoryError) as error:
        raise FrameRefused("malformed", type(error).__name__) from None
    if is_exact and start + size != len(frame):
        raise FrameRefused("trailing bytes", str(len(frame) - start - size))
    return Request(head, header.client_id or "", message, topic_ids)


def write_request(request: Request) -> bytes:
    """Encode a request, without its length prefix."""
    out, kind = io.BytesIO(), type(request.message)
    schema: Any = kind.__header_schema__
    api, version, number = request.head
    header = {"request_api_key": api, "request_api_version": version, "correlation_id": number}
    entity_writer(schema)(out, make(schema, **header, client_id=request.client_id))
    entity_writer(kind)(out, request.message)
    return out.getvalue()


def write_response(head: Head, message: Any) -> bytes:
    """Encode a response, with its length prefix."""
    out, kind = io.BytesIO(), type(message)
    out.write(bytes(LENGTH.size) + LENGTH.pack(head.number))
    if kind.__flexible__ and head.api != API_VERSIONS:
        out.write(b"\0")  # no tagged fields in the header
    entity_writer(kind)(out, message)
    LENGTH.pack_into(frame := bytearray(out.getvalue()), 0, out.tell() - LENGTH.size)
    return bytes(frame)


def read_response(head: Head, frame: bytes) -> Any:
    """Decode a broker's response, without its header; raises `FrameRefused`.

    To an ApiVersions request of an unknown version, a broker responds with version 0.
    """
    kind = response_class(head.api, head.version)
    start = LENGTH.size + (kind.__flexible__ and head.api != API_VERSIONS)
    try:
        message, size = _reader(kind)(frame, start)
    except (DecodeError, ValueError, LookupError, OverflowError, MemoryError) as error:
        raise FrameRefused("answer of the broker", type(error).__name__) from None
    if start + size != len(frame):
        raise FrameRefused("answer of the broker", "trailing bytes")
    return message


def is_known(api: int) -> bool:
    """Return whether this API key exists, in Kafka or as one of ours."""
    return api in api_key_map or api in REQUESTS


@cache
def request_class(api: int, version: int) -> Any:
    """Return the class of a request; raises `FrameRefused` for an unknown API or version."""
    if api in REQUESTS:
        return REQUESTS[api]
    try:
        return load_request_schema(api, version)
    except KioIndexError:
        raise FrameRefused("unknown call", f"{api} in version {version}") from None


@cache
def response_class(api: int, version: int) -> Any:
    """Return the class of a response; raises `FrameRefused` for an unknown API or version."""
    if api in RESPONSES:
        return RESPONSES[api]
    try:
        return load_response_schema(api, version)
    except KioIndexError:
        raise FrameRefused("unknown call", f"{api} in version {version}") from None


@cache
def item_class(kind: Any, name: str) -> Any:
    """Return the class of the items in an array field of a message."""
    annotation = next(each.type for each in fields(kind) if each.name == name)
    return next(each for each in _parts(annotation) if is_dataclass(each))


def make(kind: Any, **values: Any) -> Any:
    """Build a message; values without a field in its version are dropped."""
    return kind(**{name: values[name] for name in _names(kind) if name in values})


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def _parts(annotation: Any) -> typing.Iterator[Any]:
    yield annotation
    for each in typing.get_args(annotation):
        yield from _parts(each)


@cache
def _form_of_request(api: int, version: int) -> _RequestForm:
    kind = request_class(api, version)
    return _RequestForm(kind, _reader(kind.__header_schema__), _reader(kind))


# -- unknown tagged fields


@cache
def _reader(kind: Any) -> Read:
    return _either(entity_reader(kind), partial(_read_known, kind))


def _either(read: Read, read_known: Read) -> Read:
    """Return a reader that tries kio's, and the second one if kio finds unknown tags."""

    def read_either(frame: bytes, at: int) -> tuple[Any, int]:
        try:
            return read(frame, at)
        except KeyError:
            return read_known(frame, at)

    return read_either


def _read_known(kind: Any, frame: bytes, start: int) -> tuple[Any, int]:
    """Decode a structure of a flexible version, skipping unknown tagged fields."""
    plain, tagged = _field_readers(kind)
    values, at = dict[str, Any](), start
    for name, read in plain:
        values[name], size = read(frame, at)
        at += size
    count, size = read_unsigned_varint(frame, at)
    at += size
    for _ in range(count):
        tag, size = read_unsigned_varint(frame, at)
        length, more = read_unsigned_varint(frame, at + size)
        at += size + more
        if tag in tagged:
            name, read = tagged[tag]
            values[name], _ = read(frame, at)
        at += length
    return kind(**values), at - start


@cache
def _field_readers(kind: Any) -> tuple[list[tuple[str, Read]], dict[int, tuple[str, Read]]]:
    """Return the readers of the fields: the regular ones in order, the tagged ones by tag."""
    readers = [
        (each.metadata.get("tag"), (each.name, _field_reader(kind, each))) for each in fields(kind)
    ]
    plain = [reads for tag, reads in readers if tag is None]
    return plain, {tag: reads for tag, reads in readers if tag is not None}


def _field_reader(kind: Any, field: "Field[Any]") -> Read:
    is_header, is_tagged = kind.__type__ is EntityType.header, "tag" in field.metadata
    read: Read = get_field_reader(kind, field, is_header, is_tagged)
    parts = [*_parts(field.type)]
    inner: Any = next((each for each in parts if is_dataclass(each)), None)
    if inner is None:
        return read
    read_known: Any = partial(_read_known, inner)
    if any(typing.get_origin(each) is tuple for each in parts):
        read_known = compact_array_reader(read_known)
    elif field.type is not inner:
        read_known = partial(_read_nullable, inner)
    return _either(read, read_known)


def _read_nullable(kind: Any, frame: bytes, at: int) -> tuple[Any, int]:
    """Decode a nullable structure: a byte below 0 means null."""
    if frame[at] >= 1 << 7:
        return None, 1
    found, size = _read_known(kind, frame, at + 1)
    return found, size + 1
