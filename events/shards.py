"""Facts that name many resources, as they are read: head and shards are one whole (LOG.md §8).

What is configured, the target, and what a member holds are each one fact, however many
connectors there are. A large one lies in the log as a head, which says everything but the
resources, and as shards with the resources of some connectors each. In one batch the shards come
first, then their head.

To which shard a connector belongs is the writer's business (`entries/shard_layout.py`): all shards
that are there are taken.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from .model import NOTHING, Key, Resource
from .records import (
    HEADS,
    ConfiguredShard,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    CurrentShard,
    Head,
    Record,
    Shard,
    TargetAssignment,
    TargetShard,
    Tombstone,
)

Owner = tuple[type, Key]
"""The fact that shards belong to: the class and the key of its head."""

Rows = Mapping[int, Shard]
"""The shards of one fact by number, those without any resource left out."""

NOTED: Final = (ConfiguredShard, TargetShard, CurrentShard, Tombstone)

HEAD_OF: Final[Mapping[type, type]] = {
    ConfiguredShard: ConnectorsTasksMetadata,
    TargetShard: TargetAssignment,
    CurrentShard: CurrentAssignment,
}


@dataclass(slots=True)
class Shards:
    """The shards that a log holds, as far as it was read."""

    rows: dict[Owner, dict[int, Shard]] = field(default_factory=dict[Owner, dict[int, Shard]])
    """The shards of each fact, by number."""
    wholes: dict[Owner, Head] = field(default_factory=dict[Owner, Head])
    """What the shards of each fact, and its head, say together."""

    def take(self, record: Record) -> Record | None:
        """Return a record of the log whole; None for a shard, whose head is yet to come.

        A head that was made whole already is taken as it is.
        """
        if isinstance(record, HEADS):
            return self._take_head(record)
        return self._note(record) if isinstance(record, NOTED) else record

    def __copy__(self) -> "Shards":
        """Return a copy that may take other records than this."""
        return Shards({owner: {**rows} for owner, rows in self.rows.items()}, {**self.wholes})

    def _take_head(self, record: Head) -> Head:
        if not record.shards:
            if self.wholes:
                self.wholes.pop(owner_of(record), None)
            return record
        owner = owner_of(record)
        if not size_of(record):
            record = JOINS[type(record)](record, self.rows.get(owner, {}))
        self.wholes[owner] = record
        return record

    def _note(self, record: Record) -> Record | None:
        if isinstance(record, Shard):
            key = key_of_shard(record)
            owner = HEAD_OF[type(record)], key[:-1]
            self.rows.setdefault(owner, {})[record.number] = record
        elif isinstance(record, Tombstone) and record.kind in HEAD_OF:
            self._drop((HEAD_OF[record.kind], record.key[:-1]), int(record.key[-1]))
        else:
            if isinstance(record, Tombstone):
                self.wholes.pop((record.kind, record.key), None)
            return record
        return None

    def _drop(self, owner: Owner, number: int) -> None:
        rows = self.rows.get(owner, {})
        rows.pop(number, None)
        if not rows:
            self.rows.pop(owner, None)


def size_of(record: Head) -> int:
    """Return how many resources a fact names."""
    if isinstance(record, ConnectorsTasksMetadata):
        return len(record.configured)
    if isinstance(record, TargetAssignment):
        return sum(map(len, record.members.values())) + len(record.unplaceable)
    return len(record.assigned) + len(record.pending)


def owner_of(record: Record) -> Owner:
    """Return the fact that a head, or a tombstone of one, is about."""
    if isinstance(record, Tombstone):
        return record.kind, record.key
    return type(record), (record.member_id,) if isinstance(record, CurrentAssignment) else ()


def key_of_shard(shard: Shard) -> Key:
    """Return the key of a shard: that of its head, and its number."""
    return (shard.member_id, shard.number) if isinstance(shard, CurrentShard) else (shard.number,)


def _join_configured(record: ConnectorsTasksMetadata, rows: Rows) -> ConnectorsTasksMetadata:
    found = (row.configured for row in rows.values() if isinstance(row, ConfiguredShard))
    return replace(record, configured=NOTHING.union(*found))


def _join_target(record: TargetAssignment, rows: Rows) -> TargetAssignment:
    shares: defaultdict[str, list[Resource]] = defaultdict(list)
    unplaceable: dict[Resource, str] = {}
    for row in rows.values():
        if isinstance(row, TargetShard):
            for member_id, share in row.members.items():
                shares[member_id] += share
            unplaceable.update(row.unplaceable)
    members = {member_id: frozenset(share) for member_id, share in shares.items()}
    return replace(record, members=members, unplaceable=unplaceable)


def _join_current(record: CurrentAssignment, rows: Rows) -> CurrentAssignment:
    assigned: dict[Resource, int] = {}
    pending: dict[Resource, int] = {}
    for row in rows.values():
        if isinstance(row, CurrentShard):
            assigned.update(row.assigned)
            pending.update(row.pending)
    return replace(record, assigned=assigned, pending=pending)


JOINS: Final[Mapping[type, Callable[[Any, Rows], Head]]] = {
    ConnectorsTasksMetadata: _join_configured,
    TargetAssignment: _join_target,
    CurrentAssignment: _join_current,
}
"""By class of head: gives it what all its shards say."""
