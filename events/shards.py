"""Facts that name many resources, kept in shards, so that a small change writes little.

What is configured, the target, and what a member holds are each one fact, however many
connectors there are, and one connector more changes each of them. A large one is written as a
head, which says everything but the resources, and as shards with the resources of some
connectors each. A change writes the shards that it alters, and then the head, in one batch.
Each shard has a key of its own: what compaction leaves of each key is the whole fact.

To which shard a connector belongs is the writer's business: readers take all shards that are
there. The number of shards follows the size by linear hashing, a few shards at a time: no
change of size divides all of it anew. It grows with the root of the size, and so does a shard:
a change of one connector writes little, and a change of everything few records.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any, Final, NamedTuple
from zlib import crc32

from .keys import Key
from .model import Resource
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
from .shard_forms import FORMS, Form, Rows

Owner = tuple[type, Key]
"""The fact that shards belong to: the kind and the key of its head."""

NOTED: Final = (ConfiguredShard, TargetShard, CurrentShard, Tombstone)
LEAST_PER_SHARD: Final = 32
"""Resources for each shard; a fact with less than that has none."""

HEAD_OF: Final[Mapping[type, type]] = {
    ConfiguredShard: ConnectorsTasksMetadata,
    TargetShard: TargetAssignment,
    CurrentShard: CurrentAssignment,
}


class Laid(NamedTuple):
    """A record as a group evolves by it, and what is to be written for it, the head last."""

    whole: Record
    parts: list[Record]


@dataclass(slots=True)
class Shards:
    """The shards that a log holds, as far as it was read."""

    rows: dict[Owner, dict[int, Shard]] = field(default_factory=dict[Owner, dict[int, Shard]])
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
                self.wholes.pop(_owner_of(record), None)
            return record
        owner = _owner_of(record)
        form = FORMS[type(record)]
        if not form.size(record):
            record = form.join(record, self.rows.get(owner, {}))
        self.wholes[owner] = record
        return record

    def _note(self, record: Record) -> Record | None:
        if isinstance(record, Shard):
            key = _key_of_shard(record)
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


class _Before(NamedTuple):
    """How a fact lies in the log: its shards, and all that it says."""

    rows: Rows
    whole: Head | None


def lay_out(shards: Shards, records: Iterable[Record]) -> list[Laid]:
    """Return how records are to be written down, one after the other, in one batch.

    `shards` are those that the log holds; they stay as they are.
    """
    ahead: dict[Owner, _Before] = {}
    return [_laid_out(shards, ahead, record) for record in records]


def _laid_out(shards: Shards, ahead: dict[Owner, _Before], record: Record) -> Laid:
    kind = record.kind if isinstance(record, Tombstone) else type(record)
    if kind not in FORMS:
        return Laid(record, [record])
    owner = _owner_of(record)
    before = ahead.get(owner) or _Before(shards.rows.get(owner, {}), shards.wholes.get(owner))
    if not isinstance(record, HEADS):
        ahead[owner] = _Before({}, None)
        return Laid(record, [*_changes(before.rows, {}), record])
    form = FORMS[kind]
    count = shard_count(form.size(record))
    if not count:
        record = replace(record, shards=0) if record.shards else record
        ahead[owner] = _Before({}, None)
        return Laid(record, [*_changes(before.rows, {}), record])
    after = _rows_of(form, before, record, count)
    whole: Head = replace(record, shards=count, **_without_idle(record))
    ahead[owner] = _Before(after, whole)
    head: Head = replace(whole, **form.emptied)  # type: ignore[arg-type]
    return Laid(whole, [*_changes(before.rows, after), head])


def _without_idle(record: Head) -> dict[str, Any]:
    """Return a target's shares without those of who gets nothing: no shard has any of them."""
    if not isinstance(record, TargetAssignment):
        return {}
    return {"members": {name: share for name, share in record.members.items() if share}}


def _changes(before: Rows, after: Rows) -> Iterator[Record]:
    """Yield what leads from some shards to others, by number."""
    for number in sorted(before.keys() | after.keys()):
        was, now = before.get(number), after.get(number)
        if now is None:
            assert was is not None  # noqa: S101  (a number of either)
            yield Tombstone(type(was), _key_of_shard(was))
        elif now is not was and now != was:
            yield now


def _rows_of(form: Form, before: _Before, record: Head, count: int) -> Rows:
    """Return a fact's shards; those in which nothing changes are the very ones of before."""
    was, rows = before.whole, dict(before.rows)
    if was is None or was.shards != count:
        was, rows = None, {}
    changed: defaultdict[int, dict[str, list[Resource]]] = defaultdict(dict)
    for member_id, resources in form.differences(was, record):
        for number, found in _by_shard(resources, count).items():
            changed[number][member_id] = found
    for number, differences in changed.items():
        shard = form.shard(number, rows.get(number), record, differences)
        if shard is None:
            rows.pop(number, None)
        else:
            rows[number] = shard
    return rows


def _by_shard(resources: Iterable[Resource], count: int) -> dict[int, list[Resource]]:
    numbers: dict[str, int] = {}
    found: defaultdict[int, list[Resource]] = defaultdict(list)
    for resource in resources:
        name = resource[0]
        number = numbers.get(name)
        if number is None:
            number = numbers[name] = shard_of(name, count)
        found[number].append(resource)
    return found


def shard_count(size: int) -> int:
    """Return into how many shards a fact of so many resources goes; 0 for a small one."""
    return min(size // LEAST_PER_SHARD, 2 * isqrt(size))


def shard_of(connector: str, count: int) -> int:
    """Return which of so many shards holds what belongs to a connector (linear hashing)."""
    mask = (1 << (count - 1).bit_length()) - 1
    number = crc32(connector.encode()) & mask
    return number if number < count else number & (mask >> 1)


def _owner_of(record: Record) -> Owner:
    if isinstance(record, Tombstone):
        return record.kind, record.key
    return type(record), (record.member_id,) if isinstance(record, CurrentAssignment) else ()


def _key_of_shard(shard: Shard) -> Key:
    return (shard.member_id, shard.number) if isinstance(shard, CurrentShard) else (shard.number,)
