"""Entries to write, and the resulting state."""
# pyright: basic

from collections.abc import Iterable
from typing import Any

import msgpack

from fairlead.events.log.frame import Entry, NewEntry

TIME_MS = 1_700_000_000_000
MEMBER = 5
TASK = 17


def packed(value: object) -> bytes:
    return bytes(msgpack.packb(value) or b"")


def unpacked(value: bytes) -> Any:
    return msgpack.unpackb(value)


def member(name: str, value: object) -> NewEntry:
    return NewEntry(MEMBER, 1, name.encode(), packed(value))


def gone(name: str) -> NewEntry:
    return NewEntry(MEMBER, 1, name.encode(), None)


def read_back(offset: int, entry: NewEntry) -> Entry:
    return Entry(offset, entry.type, entry.version, entry.key, TIME_MS, entry.value)


def fold(entries: Iterable[Entry]) -> dict[tuple[int, bytes], bytes]:
    state: dict[tuple[int, bytes], bytes] = {}
    for entry in entries:
        if entry.value is None:
            state.pop((entry.type, entry.key), None)
        else:
            state[entry.type, entry.key] = entry.value
    return state
