"""Facts that name many resources, kept in shards, so that a small change writes little.

What is configured, the target, and what a member holds are each one fact for ever growing
groups, and one connector more changes each of them. A large one is written as a head, which
says everything but the resources, and as shards with the resources of some connectors each.
A change writes the shards that it alters, and then the head, in one batch. Each shard has a
key of its own: what is left of each key after compaction is the whole fact.

To which shard a connector belongs is the writer's business: readers take all shards that are
there. The number of shards follows the size by linear hashing, one shard at a time: no change
of size divides all of it anew. It grows with the root of the size, and so does a shard: a
change of one connector writes little, and a change of everything few records.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any, Final, NamedTuple
from zlib import crc32

from .keys import Key
from .model import NOTHING, Grants, Resource, Resources
from .records import (
    ConfiguredShard,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    CurrentShard,
    Record,
    Shard,
    TargetAssignment,
    TargetShard,
    Tombstone,
)

Rows = Mapping[int, Shard]
"""The shards of one fact by number, those without any resource left out."""
Owner = tuple[type, Key]
"""The fact that shards belong to: the kind and the key of its head."""

HEADS: Final = (ConnectorsTasksMetadata, TargetAssignment, CurrentAssignment)
NOTED: Final = (ConfiguredShard, TargetShard, CurrentShard, Tombstone)
LEAST_PER_SHARD: Final = 8
"""Resources for each shard; a fact with less than two shards' worth has none."""

HEAD_OF: Final[Mapping[type, type]] = {
    ConfiguredShard: ConnectorsTasksMetadata,
    TargetShard: TargetAssignment,
    CurrentShard: CurrentAssignment,
}


class _Form(NamedTuple):
    """How a kind of fact goes into shards and out of them."""

    size: Callable[[Any], int]
    split: Callable[[Any, int], Rows]
    join: Callable[[Any, Rows], Record]
    emptied: Mapping[str, object]
    """What its head says instead of the resources."""


@dataclass(slots=True)
class Shards:
    """The shards that a log holds, as far as it was read; copies may share rows."""

    rows: dict[Owner, dict[int, Shard]] = field(default_factory=dict[Owner, dict[int, Shard]])

    def take(self, record: Record) -> Record | None:
        """Return a record of the log whole; None for a shard, whose head is yet to come."""
        if isinstance(record, HEADS):
            if not record.shards:
                return record
            return FORMS[type(record)].join(record, self.rows.get(_owner_of(record), {}))
        return self._note(record) if isinstance(record, NOTED) else record

    def _note(self, record: Record) -> Record | None:
        if isinstance(record, Shard):
            key = _key_of_shard(record)
            owner = HEAD_OF[type(record)], key[:-1]
            self.rows.setdefault(owner, {})[record.number] = record
        elif isinstance(record, Tombstone) and record.kind in HEAD_OF:
            self._drop((HEAD_OF[record.kind], record.key[:-1]), int(record.key[-1]))
        else:
            return record
        return None

    def _drop(self, owner: Owner, number: int) -> None:
        rows = self.rows.get(owner, {})
        rows.pop(number, None)
        if not rows:
            self.rows.pop(owner, None)


def lay_out(shards: Shards, records: Iterable[Record]) -> list[tuple[Record, list[Record]]]:
    """Return each record with those that are to be written for it, the head the last of them.

    `shards` are those that the log holds; they stay as they are.
    """
    ahead: dict[Owner, Rows] = {}
    return [(record, _laid_out(shards, ahead, record)) for record in records]


def _laid_out(shards: Shards, ahead: dict[Owner, Rows], record: Record) -> list[Record]:
    kind = record.kind if isinstance(record, Tombstone) else type(record)
    if kind not in FORMS:
        return [record]
    owner = _owner_of(record)
    before = ahead.get(owner, shards.rows.get(owner, {}))
    form = FORMS[kind]
    count = 0 if isinstance(record, Tombstone) else shard_count(form.size(record))
    after: Rows = form.split(record, count) if count else {}
    ahead[owner] = after
    changed = sorted(number for number, row in after.items() if before.get(number) != row)
    parts: list[Record] = [after[number] for number in changed]
    gone = sorted(before.keys() - after.keys())
    parts += (Tombstone(type(before[number]), _key_of_shard(before[number])) for number in gone)
    return [*parts, _head(record, count)]


def _head(record: Record, count: int) -> Record:
    """Return the record as the log is to have it: without its resources if they lie in shards."""
    if not isinstance(record, HEADS) or not (count or record.shards):
        return record
    emptied = FORMS[type(record)].emptied if count else {}
    return replace(record, **emptied, shards=count)  # type: ignore[arg-type]


def shard_count(size: int) -> int:
    """Return into how many shards a fact of so many resources goes; 0 for a small one."""
    count = min(size // LEAST_PER_SHARD, 4 * isqrt(size))
    return count if count > 1 else 0


def shard_of(connector: str, count: int) -> int:
    """Return which of so many shards holds what belongs to a connector (linear hashing)."""
    spread = crc32(connector.encode())
    doubled = 1 << (count - 1).bit_length()
    number = spread % doubled
    return number if number < count else spread % (doubled >> 1)


def _owner_of(record: Record) -> Owner:
    if isinstance(record, Tombstone):
        return record.kind, record.key
    return type(record), (record.member_id,) if isinstance(record, CurrentAssignment) else ()


def _key_of_shard(shard: Shard) -> Key:
    return (shard.member_id, shard.number) if isinstance(shard, CurrentShard) else (shard.number,)


def _by_shard(resources: Iterable[Resource], count: int) -> dict[int, list[Resource]]:
    numbers: dict[str, int] = {}
    found: defaultdict[int, list[Resource]] = defaultdict(list)
    for resource in resources:
        name = resource.connector
        number = numbers.get(name)
        if number is None:
            number = numbers[name] = shard_of(name, count)
        found[number].append(resource)
    return found


def _split_configured(record: ConnectorsTasksMetadata, count: int) -> Rows:
    return {
        number: ConfiguredShard(number, frozenset(found))
        for number, found in _by_shard(record.configured, count).items()
    }


def _split_target(record: TargetAssignment, count: int) -> Rows:
    members: defaultdict[int, dict[str, Resources]] = defaultdict(dict)
    for member_id, share in record.members.items():
        for number, found in _by_shard(share, count).items():
            members[number][member_id] = frozenset(found)
    left_out = _by_shard(record.unplaceable, count)
    return {
        number: TargetShard(
            number,
            members.get(number, {}),
            {each: record.unplaceable[each] for each in left_out.get(number, ())},
        )
        for number in members.keys() | left_out.keys()
    }


def _split_current(record: CurrentAssignment, count: int) -> Rows:
    assigned = _by_shard(record.assigned, count)
    pending = _by_shard(record.pending, count)

    def part(grants: Grants, found: Iterable[Resource]) -> Grants:
        return {each: grants[each] for each in found}

    return {
        number: CurrentShard(
            record.member_id,
            number,
            part(record.assigned, assigned.get(number, ())),
            part(record.pending, pending.get(number, ())),
        )
        for number in assigned.keys() | pending.keys()
    }


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


FORMS: Final[Mapping[type, _Form]] = {
    ConnectorsTasksMetadata: _Form(
        lambda record: len(record.configured),
        _split_configured,
        _join_configured,
        {"configured": NOTHING},
    ),
    TargetAssignment: _Form(
        lambda record: sum(map(len, record.members.values())) + len(record.unplaceable),
        _split_target,
        _join_target,
        {"members": {}, "unplaceable": {}},
    ),
    CurrentAssignment: _Form(
        lambda record: len(record.assigned) + len(record.pending),
        _split_current,
        _join_current,
        {"assigned": {}, "pending": {}},
    ),
}
"""By kind of head."""
