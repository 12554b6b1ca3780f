"""Evolves a group by records, which is the only way to change a group.

The effect of each record, and of its tombstone, is in `folds.py`; `settle` ends a replay.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import fields
from typing import Any, Final

from . import folds
from .catalogue import CATALOGUE
from .group import Group
from .records import Record, Tombstone


def evolve(group: Group, record: Record, offset: int) -> None:
    """Change the group by the record at this log offset.

    Parts take effect with their head. Raises KeyError for a record of the offset log.
    """
    group.end = offset + 1
    whole = group.record_parts.assemble(record)
    if whole is not None:
        FOLDS[type(whole)](group, whole)


def evolve_copy(group: Group, records: Iterable[Record]) -> Group:
    """Return a copy of the group, evolved by these records; costs the size of the group."""
    ahead = Group(**{each.name: copy(getattr(group, each.name)) for each in fields(Group)})
    for record in records:
        evolve(ahead, record, ahead.end)
    return ahead


def settle(group: Group) -> None:
    """Drop the target's shares of members that are gone.

    A live fold has none. A compacted log can have them: the tombstone that dropped the share may be
    trimmed while the target record, which is older, stays.
    """
    for member_id in group.target_of.keys() - group.members.keys():
        folds.drop_share(group, member_id)


def _bury(group: Group, tombstone: Tombstone) -> None:
    BURIALS[tombstone.kind](group, *tombstone.key)


FOLDS: Final[Mapping[type, Callable[[Group, Any], None]]] = {
    Tombstone: _bury,
    **{row.record: row.fold for row in CATALOGUE if row.fold},
}
BURIALS: Final[Mapping[type, Callable[..., None]]] = {
    row.record: row.bury for row in CATALOGUE if row.bury
}
