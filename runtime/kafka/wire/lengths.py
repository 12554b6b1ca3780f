"""Validates the lengths and counts in a request before kio decodes it.

kio allocates memory for any count in a frame. Its readers are native code: if memory runs out, they
abort the process without an exception. So the frame is first traversed by its schema: each length
and count must fit in the rest of the frame, with at least one byte for each item, and null is
allowed only in nullable fields.

The number of items is limited as well: a frame of 1 MiB has room for 340,000 of the smallest
structures, and decoding these would block the event loop for a second.

The encoding is that of Kafka's protocol: in flexible versions lengths are unsigned varints of the
length plus one (KIP-482), and a nullable structure begins with a byte that says whether it is null.
"""
# pyright: basic

import struct
import typing
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Final

from .bounds import FrameRefused

SIZES: Final[Mapping[str, int]] = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "float64": 8,
    "uuid": 16,
}
"""The sizes of fixed-size types, in bytes."""
MOST_ITEMS: Final = 110_000
"""The maximum number of items and tagged fields in a request: 10,000 topics, 100,000 partitions.

Items of a fixed size, such as partition numbers in an array, are cheap and not counted.
"""
SHORT: Final = struct.Struct(">h")
LONG: Final = struct.Struct(">i")
LONGEST_VARINT: Final = 5
COMPACT_PRODUCE: Final = 9
"""The first flexible version: compact strings, and tags in the header."""
TRANSACTIONAL_PRODUCE: Final = 3
"""The first version that begins with the transactional id."""


class CountedFrame(bytes):
    """A frame, and the number of items that it may still have."""

    items_left = MOST_ITEMS


Walk = Callable[[CountedFrame, int], int]
"""Validates a value at a position in a frame, and returns the position after it."""


def check_lengths(kind: Any, frame: bytes, start: int) -> None:
    """Raise `FrameRefused` if a length or count in a message exceeds its frame or `MOST_ITEMS`."""
    try:
        end = _structure(kind)(CountedFrame(frame), start)
    except (IndexError, struct.error):
        raise FrameRefused("malformed", "it is cut off") from None
    if end > len(frame):
        raise FrameRefused("malformed", "it is cut off")


def end_of_header(frame: bytes, *, is_flexible: bool) -> int:
    """Return the position after a request's header with its client id; raises `FrameRefused`."""
    try:
        (size,) = SHORT.unpack_from(frame, 2 * SHORT.size + LONG.size)
        end = 3 * SHORT.size + LONG.size + max(0, size)
        return _tags(CountedFrame(frame), end, {}) if is_flexible else end
    except (IndexError, struct.error):
        raise FrameRefused("malformed", "it is cut off") from None


def expects_answer(version: int, data: bytes) -> bool:
    """Return whether a Produce with this beginning has a response: with `acks=0` it has none.

    Raises `FrameRefused`.
    """
    is_flexible = version >= COMPACT_PRODUCE
    try:
        at = end_of_header(data, is_flexible=is_flexible)
        if version >= TRANSACTIONAL_PRODUCE:
            at = _primitive("string", is_flexible=is_flexible)(CountedFrame(data), at)
        (acks,) = SHORT.unpack_from(data, at)
    except (IndexError, struct.error):
        raise FrameRefused("malformed", "a Produce without acks") from None
    return bool(acks)


@cache
def _structure(kind: Any) -> Walk:
    walks = [(each.metadata.get("tag"), _value(kind, each)) for each in fields(kind)]
    steps = [walk for tag, walk in walks if tag is None]
    tagged = {tag: walk for tag, walk in walks if tag is not None}

    def walk_fields(frame: CountedFrame, at: int) -> int:
        for step in steps:
            at = step(frame, at)
        return at

    def walk_all(frame: CountedFrame, at: int) -> int:
        return _tags(frame, walk_fields(frame, at), tagged)

    return walk_all if kind.__flexible__ else walk_fields


def _tags(frame: CountedFrame, at: int, walks: Mapping[int, Walk]) -> int:
    count, at = _varint(frame, at)
    for _ in range(_countable(count, frame, at)):
        tag, at = _varint(frame, at)
        size, at = _varint(frame, at)
        end = at + _fitting(size, frame, at)
        if tag in walks and walks[tag](frame, at) != end:
            raise FrameRefused("malformed", f"tag {tag} is not as long as it says")
        at = end
    return at


def _value(kind: Any, field: "Field[Any]") -> Walk:
    """Return the validator of a field."""
    inner, is_nullable = _without_none(field.type)
    is_array = typing.get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(typing.get_args(inner)[0])
    is_structure = is_dataclass(inner)
    if not is_structure:
        item = _primitive(field.metadata["kafka_type"], is_flexible=kind.__flexible__)
    elif is_nullable and not is_array:
        item = _nullable(inner)
    else:
        item = _structure(inner)
    if is_array:
        size = 0 if is_structure else SIZES.get(field.metadata["kafka_type"], 0)
        is_flexible = kind.__flexible__
        item = _array(item, size, field.name, is_flexible=is_flexible, is_nullable=is_nullable)
    return item


def _without_none(annotation: Any) -> tuple[Any, bool]:
    parts = typing.get_args(annotation)
    if NoneType not in parts:
        return annotation, False
    (inner,) = (each for each in parts if each is not NoneType)
    return inner, True


def _primitive(kafka_type: str, *, is_flexible: bool) -> Walk:
    if kafka_type in SIZES:
        size = SIZES[kafka_type]
        return lambda _, at: at + size
    if is_flexible:
        return _compact
    length = SHORT if kafka_type == "string" else LONG

    def walk(frame: CountedFrame, at: int) -> int:
        (size,) = length.unpack_from(frame, at)
        at += length.size
        return at + _fitting(max(0, size), frame, at)

    return walk


def _compact(frame: CountedFrame, at: int) -> int:
    size, at = _varint(frame, at)
    return at + _fitting(max(0, size - 1), frame, at)


def _array(item: Walk, size: int, name: str, *, is_flexible: bool, is_nullable: bool) -> Walk:
    """Return the validator of an array; `size` is that of an item in bytes, 0 if it varies."""

    def walk(frame: CountedFrame, at: int) -> int:
        if is_flexible:
            count, at = _varint(frame, at)
            count -= 1
        else:
            (count,) = LONG.unpack_from(frame, at)
            at += LONG.size
        if count < 0 and not is_nullable:
            raise FrameRefused("malformed", f"{name} is null")
        count = max(0, count)
        if size:
            return at + _fitting(count * size, frame, at)
        for _ in range(_countable(count, frame, at)):
            at = item(frame, at)
        return at

    return walk


def _nullable(kind: Any) -> Walk:
    def walk(frame: CountedFrame, at: int) -> int:
        is_there = frame[at] < 1 << 7  # -1 is null
        return _structure(kind)(frame, at + 1) if is_there else at + 1

    return walk


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    """Decode an unsigned varint; return it and the position after it."""
    byte = frame[at]
    if byte < 1 << 7:
        return byte, at + 1
    value = byte & 127
    for place in range(1, LONGEST_VARINT):
        byte = frame[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 1 << 7:
            return value, at + place + 1
    raise FrameRefused("malformed", "a length has more than five bytes")


def _countable(count: int, frame: CountedFrame, at: int) -> int:
    """Count items of at least one byte each; raises `FrameRefused` if there are too many."""
    frame.items_left -= _fitting(count, frame, at)
    if frame.items_left < 0:
        raise FrameRefused("too many items", f"more than {MOST_ITEMS}")
    return count


def _fitting(size: int, frame: bytes, at: int) -> int:
    if size > len(frame) - at:
        raise FrameRefused("malformed", "it counts more than it holds")
    return size
