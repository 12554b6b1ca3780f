"""Entries of many groups in one log: the group's id stands in front of each key (LOG.md §8).

Small groups share a pair of logs. An entry of theirs is that of a group's own log but for its key,
which begins with the group's id, ended by NUL: all that the view has of a group can be scanned.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ..log.frame import Entry, NewEntry
from ..log.tables import LogKind
from .codec import CONTROL, OFFSETS

SHARED_CONTROL: Final = LogKind("shared-control", "shared-offsets", CONTROL.foreign)
SHARED_OFFSETS: Final = LogKind("shared-offsets", "shared-control", OFFSETS.foreign)

LONGEST_GROUP_ID: Final = 255
"""How long the id of a group may be that shares a log, in bytes of UTF-8."""


def flaw_in_group_id(group_id: str) -> str:
    """Return why a group of this id could not be told from others in a log, or nothing."""
    if not group_id:
        return "the group id is empty"
    try:
        is_short = len(group_id.encode()) <= LONGEST_GROUP_ID
    except UnicodeEncodeError:  # a lone surrogate
        return f"the group id {group_id[:40]!a} is not encodable"
    if not is_short:
        return f"the group id {group_id[:40]!a}… is longer than {LONGEST_GROUP_ID} bytes"
    return f"the group id {group_id!a} holds a NUL" if "\0" in group_id else ""


def group_prefix(group_id: str) -> bytes:
    """Return what the keys of a group begin with."""
    return f"{group_id}\0".encode()


def in_group(group_id: str, entry: NewEntry) -> NewEntry:
    """Return an entry of a group as it is appended to a log that it shares."""
    return entry._replace(key=group_prefix(group_id) + entry.key)


def by_group(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    """Return the entries of a shared log as those of each group, in the same order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        name, _, key = entry.key.partition(b"\0")
        found.setdefault(name.decode(), []).append(entry._replace(key=key))
    return found
