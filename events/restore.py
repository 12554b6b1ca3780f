"""A group rebuilt from entries of its log."""

from collections.abc import Iterable

from .codec import decode
from .evolve import evolve, settle
from .group import Group
from .log.frame import Entry


def restore(group_id: str, entries: Iterable[Entry], end: int) -> Group:
    """Return the group that the latest entry of each key, in offset order, tells of.

    `end` is the end of the log that they were read from. Raises what `decode` raises.
    """
    group = Group(group_id)
    fold(group, entries)
    settle(group)
    group.end = end
    return group


def fold(group: Group, entries: Iterable[Entry]) -> None:
    """Fold entries into a group; those of an unknown type are skipped and counted."""
    for entry in entries:
        record = decode(entry)
        if record is None:
            group.unknown_records += 1
            group.end = entry.offset + 1
        else:
            evolve(group, record, entry.offset)
