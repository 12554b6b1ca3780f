"""Whether what a request counts fits into its frame: kio makes room for whatever a frame counts.

Its readers are native code: where there is no room they end the process, and no exception tells
so. Thus a request is walked through by its schema before: each length and count must be within
what is left of the frame, each item takes a byte at least, and nothing is null that may not be.

The number of items is limited as well: a frame of 1 MiB has room for 340,000 of the smallest
structures, and decoding these would block the event loop for a second.

The forms of values are those of Kafka's protocol: in flexible versions lengths are unsigned
varints, one more than what they count (KIP-482), and a structure that may be null begins with a
byte that tells whether it is.
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
"""Of what is as long in each request, in bytes."""
MOST_ITEMS: Final = 110_000
"""How many items and tagged fields a request may have: 10,000 topics with 100,000 partitions.

Items of a fixed size, such as partition numbers in an array, cost little and are not counted.
"""
SHORT: Final = struct.Struct(">h")
LONG: Final = struct.Struct(">i")
LONGEST_VARINT: Final = 5
COMPACT_PRODUCE: Final = 9
"""The version from which on its strings are compact and its header has tags."""
TRANSACTIONAL_PRODUCE: Final = 3
"""The version from which on the id of a transaction stands in front."""


class CountedFrame(bytes):
    """A frame, and how many items it may still have."""

    items_left = MOST_ITEMS


Walk = Callable[[CountedFrame, int], int]
"""Goes over a value that begins somewhere in a frame, and returns where the next one does."""


def check_lengths(kind: Any, frame: bytes, start: int) -> None:
    """Raise `FrameRefused` unless all that a message of a class counts is within its frame.

    It may have `MOST_ITEMS` items at most.
    """
    try:
        end = _structure(kind)(CountedFrame(frame), start)
    except (IndexError, struct.error):
        raise FrameRefused("malformed", "it is cut off") from None
    if end > len(frame):
        raise FrameRefused("malformed", "it is cut off")


def end_of_header(frame: bytes, *, is_flexible: bool) -> int:
    """Return where a request's header ends, which has the client's id; raises `FrameRefused`."""
    try:
        (size,) = SHORT.unpack_from(frame, 2 * SHORT.size + LONG.size)
        end = 3 * SHORT.size + LONG.size + max(0, size)
        return _tags(CountedFrame(frame), end, {}) if is_flexible else end
    except (IndexError, struct.error):
        raise FrameRefused("malformed", "it is cut off") from None


def expects_answer(version: int, data: bytes) -> bool:
    """Tell whether a Produce, which begins so, is answered: with `acks=0` a broker says nothing.

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
    told = [(each.metadata.get("tag"), _value(kind, each)) for each in fields(kind)]
    steps = [walk for tag, walk in told if tag is None]
    tagged = {tag: walk for tag, walk in told if tag is not None}

    def walk_fields(frame: CountedFrame, at: int) -> int:
        for step in steps:
            at = step(frame, at)
        return at

    def walk_all(frame: CountedFrame, at: int) -> int:
        return _tags(frame, walk_fields(frame, at), tagged)

    return walk_all if kind.__flexible__ else walk_fields


def _tags(frame: CountedFrame, at: int, known: Mapping[int, Walk]) -> int:
    count, at = _varint(frame, at)
    for _ in range(_countable(count, frame, at)):
        tag, at = _varint(frame, at)
        size, at = _varint(frame, at)
        end = at + _fitting(size, frame, at)
        if tag in known and known[tag](frame, at) != end:
            raise FrameRefused("malformed", f"tag {tag} is not as long as it says")
        at = end
    return at


def _value(kind: Any, field: "Field[Any]") -> Walk:
    """Return what goes over a field."""
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


def _without_none(told: Any) -> tuple[Any, bool]:
    parts = typing.get_args(told)
    if NoneType not in parts:
        return told, False
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
    """Return what goes over an array; its items have this size in bytes, 0 if it varies."""

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
        is_there = frame[at] < 1 << 7  # -1 tells that it is null
        return _structure(kind)(frame, at + 1) if is_there else at + 1

    return walk


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint, and where it ends."""
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
    """Return a number of items, each of a byte at least; raises `FrameRefused` for too many."""
    frame.items_left -= _fitting(count, frame, at)
    if frame.items_left < 0:
        raise FrameRefused("too many items", f"more than {MOST_ITEMS}")
    return count


def _fitting(size: int, frame: bytes, at: int) -> int:
    if size > len(frame) - at:
        raise FrameRefused("malformed", "it counts more than it holds")
    return size
