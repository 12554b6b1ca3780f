"""The two logs of a group, and the group rebuilt from entries of its control log.

A group is rebuilt from entries, or from what compaction left of them.
All of these tell of the same group, to the last index: every entry; of the entries before
any offset only the latest of each key, with or without tombstones, and all entries from
there on; only the latest of each key everywhere. A tombstone may go once no value of its
key is left before it, since what it does beyond its key is made good: the one record that
speaks of other keys is the target, and `settle` drops its shares of members that have no seat.
A member that was there before and came back says so itself (`joined_epoch`, `succession`). Not
allowed are a value that outlives its tombstone, a key without its latest value, another order.
Only the count of unknown records depends on how many of them are left.
"""

from collections.abc import Iterable
from typing import Final, get_args

from .. import records
from ..catalogue import BY_NUMBER, TYPE_OF
from ..evolve import evolve, settle
from ..group import Group
from ..log.frame import Entry
from ..log.tables import LogKind
from .codec import decode

_ALL = frozenset(BY_NUMBER)
_OFFSETS = frozenset(TYPE_OF[each].number for each in get_args(records.OffsetRecord))

CONTROL: Final = LogKind("control", "offsets", _OFFSETS)
OFFSETS: Final = LogKind("offsets", "control", _ALL - _OFFSETS)


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
