"""Entries of many groups in one log: the group's id stands in front of each key (LOG.md §8).

Small groups share a pair of logs. An entry of theirs is that of a group's own log but for its key,
which begins with the group's id, ended by NUL: all that the view has of a group can be scanned.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol
from zlib import crc32

from ..catalogue import entry_key
from ..commits import ConsumerOffset, PendingOffset
from ..log.frame import KEY_BYTES_MAX, Entry, NewEntry
from ..log.tables import LogKind
from ..records import Record
from .codec import CONTROL, OFFSETS, MalformedRecordError, UnwritableRecordError, encode

SHARED_CONTROL: Final = LogKind("shared-control", "shared-offsets", CONTROL.foreign)
SHARED_OFFSETS: Final = LogKind("shared-offsets", "shared-control", OFFSETS.foreign)

LONGEST_GROUP_ID: Final = 255
"""How long the id of a group may be that shares a log, in bytes of UTF-8."""

_OF: Final = " of "


def flaw_in_group_id(group_id: str) -> str:
    """Return why a group of this id could not be told from others in a shared log, or ""."""
    if not group_id:
        return "the group id is empty"
    try:
        is_short = len(group_id.encode()) <= LONGEST_GROUP_ID
    except UnicodeEncodeError:  # a lone surrogate
        return f"the group id {group_id[:40]!a} is not encodable"
    if not is_short:
        return f"the group id {group_id[:40]!a}… is longer than {LONGEST_GROUP_ID} bytes"
    return f"the group id {group_id!a} holds a NUL" if "\0" in group_id else ""


def shard_of_group(group_id: str, count: int) -> int:
    """Return which of so many shards has a group (PROTOCOL §15)."""
    return crc32(group_id.encode(errors="surrogatepass")) % count


def name_shard(number: int, count: int) -> str:
    """Return the log id of a shard, which includes the number of shards."""
    return f"shard {number}{_OF}{count}"


def count_of_shards(log_id: str) -> int | None:
    """Return the number of shards in a shard's log id; None if the id has none."""
    count = log_id.rpartition(_OF)[2]
    return int(count) if count.isdecimal() and int(count) else None


def group_prefix(group_id: str) -> bytes:
    """Return the key prefix of a group."""
    return f"{group_id}\0".encode()


def in_group(group_id: str, entry: NewEntry) -> NewEntry:
    """Return an entry of a group in its form for a shared log."""
    return entry._replace(key=group_prefix(group_id) + entry.key)


def encode_in_group(group_id: str, record: Record) -> NewEntry:
    """Return a record of a group as an entry of a log that it shares.

    Raises `UnwritableRecordError`, also where its id and the record's key are too long together.
    """
    entry = in_group(group_id, encode(record))
    if len(entry.key) > KEY_BYTES_MAX:
        raise UnwritableRecordError(
            f"the key of a {type(record).__name__} has {len(entry.key)} bytes with its group's id,"
            f" and may have {KEY_BYTES_MAX}: nothing was changed"
        )
    return entry


class Latest(Protocol):
    """The latest entry of each key of a log."""

    def get(self, kind: int, key: bytes) -> Entry | None:
        """Return the latest entry of a type and key; None if there is none, or it was deleted."""
        ...

    def scan(self, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        """Return the latest entries of a type with this key prefix, none deleted."""
        ...


class GroupPart:
    """One group's part of a shared log, with the group's own keys."""

    def __init__(self, log: Latest, group_id: str) -> None:
        self._log, self._prefix = log, group_prefix(group_id)

    def get(self, kind: int, key: bytes) -> Entry | None:
        """Return the latest entry of a type and key; None if there is none, or it was deleted."""
        found = self._log.get(kind, self._prefix + key)
        return None if found is None else found._replace(key=key)

    def scan(self, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        """Return the latest entries of a type with this key prefix, none deleted."""
        found = self._log.scan(kind, self._prefix + key_prefix)
        return [each._replace(key=each.key[len(self._prefix) :]) for each in found]


def split_key(entry: Entry) -> tuple[str, bytes]:
    """Return the id of the group of an entry of a shared log, and its key within the group.

    Raises `MalformedRecordError` for an id that is no UTF-8.
    """
    name, _, key = entry.key.partition(b"\0")
    try:
        return name.decode(), key
    except UnicodeDecodeError as error:
        raise MalformedRecordError(
            f"offset {entry.offset} has a key that begins with no group id ({error}); "
            "all before it is intact: restore a backup, or export and repair"
        ) from error


def groups_with_offsets(log: Latest) -> Iterable[str]:
    """Return the ids of the groups that have committed or pending offsets in a shared log.

    Raises `MalformedRecordError`, as `by_group`.
    """
    found = *log.scan(*entry_key(ConsumerOffset)), *log.scan(*entry_key(PendingOffset))
    return dict.fromkeys(split_key(each)[0] for each in found)


def by_group(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    """Return the entries of a shared log by group, in the same order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        group_id, key = split_key(entry)
        found.setdefault(group_id, []).append(entry._replace(key=key))
    return found
