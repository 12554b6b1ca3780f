"""Facts that name many resources, as they are written: a small change writes little (LOG.md §8).

A change writes the shards that it alters, and then the head, in one batch. Each shard has a key
of its own: what compaction leaves of each key is the whole fact.

The number of shards follows the size by linear hashing, a few shards at a time: no change of size
divides all of it anew. It grows with the root of the size, and so does a shard: a change of one
connector writes little, and a change of everything few records.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import isqrt
from typing import Any, Final, NamedTuple
from zlib import crc32

from ..model import NOTHING, Resource, Resources
from ..records import (
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
from ..shards import Owner, Rows, Shards, key_of_shard, owner_of, size_of

LEAST_PER_SHARD: Final = 32
"""Resources for each shard; a fact with less than that has none."""

Differences = Iterable[tuple[str, Iterable[Resource]]]
"""Resources of which another thing is said now, by the member that gets or loses them."""
Changed = Mapping[str, Iterable[Resource]]
"""Those of them that go into one shard."""


class Layout(NamedTuple):
    """A record as a group evolves by it, and what is to be written for it, the head last."""

    whole: Record
    parts: list[Record]


class _Form(NamedTuple):
    """How facts of one class go into shards."""

    differences: Callable[[Any, Any], Differences]
    """What differs between an earlier state, None for nothing, and a later one."""

    shard: Callable[[int, Any, Any, Changed], Shard | None]
    """A shard as it was, with what changed taken from the later state; None if it is empty."""

    emptied: Mapping[str, object]
    """What the head says instead of the resources."""


class _Before(NamedTuple):
    """How a fact lies in the log: its shards, and all that it says."""

    rows: Rows
    whole: Head | None


def lay_out(shards: Shards, records: Iterable[Record]) -> list[Layout]:
    """Return how records are to be written down, one after the other, in one batch.

    `shards` are those that the log holds; they stay as they are.
    """
    ahead: dict[Owner, _Before] = {}
    return [_lay_out_one(shards, ahead, record) for record in records]


def _lay_out_one(shards: Shards, ahead: dict[Owner, _Before], record: Record) -> Layout:
    kind = record.kind if isinstance(record, Tombstone) else type(record)
    if kind not in _FORMS:
        return Layout(record, [record])
    owner = owner_of(record)
    before = ahead.get(owner) or _Before(shards.rows.get(owner, {}), shards.wholes.get(owner))
    if not isinstance(record, HEADS):
        ahead[owner] = _Before({}, None)
        return Layout(record, [*_changes(before.rows, {}), record])
    form = _FORMS[kind]
    count = shard_count(size_of(record))
    if not count:
        record = replace(record, shards=0) if record.shards else record
        ahead[owner] = _Before({}, None)
        return Layout(record, [*_changes(before.rows, {}), record])
    after = _rows_of(form, before, record, count)
    whole: Head = replace(record, shards=count, **_without_idle(record))
    ahead[owner] = _Before(after, whole)
    head: Head = replace(whole, **form.emptied)  # type: ignore[arg-type]
    return Layout(whole, [*_changes(before.rows, after), head])


def _without_idle(record: Head) -> dict[str, Any]:
    """Return a target's shares without the empty ones: no shard holds any of them."""
    if not isinstance(record, TargetAssignment):
        return {}
    return {"members": {name: share for name, share in record.members.items() if share}}


def _changes(before: Rows, after: Rows) -> Iterator[Record]:
    """Yield what leads from some shards to others, by number."""
    for number in sorted(before.keys() | after.keys()):
        was, now = before.get(number), after.get(number)
        if now is None:
            assert was is not None  # noqa: S101  (a number of either)
            yield Tombstone(type(was), key_of_shard(was))
        elif now is not was and now != was:
            yield now


def _rows_of(form: _Form, before: _Before, record: Head, count: int) -> Rows:
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


def _differences_configured(
    was: ConnectorsTasksMetadata | None, now: ConnectorsTasksMetadata
) -> Differences:
    yield "", (was.configured if was else NOTHING) ^ now.configured


def _shard_configured(
    number: int, was: ConfiguredShard | None, now: ConnectorsTasksMetadata, changed: Changed
) -> ConfiguredShard | None:
    found = was.configured.union(changed[""]) if was else changed[""]
    configured = now.configured.intersection(found)
    return ConfiguredShard(number, configured) if configured else None


def _differences_target(was: TargetAssignment | None, now: TargetAssignment) -> Differences:
    before: Mapping[str, Resources] = was.members if was else {}
    for member_id in before.keys() | now.members.keys():
        had, has = before.get(member_id, NOTHING), now.members.get(member_id, NOTHING)
        if had is not has:
            yield member_id, had ^ has
    yield "", _changed_keys(was.unplaceable if was else {}, now.unplaceable)


def _shard_target(
    number: int, was: TargetShard | None, now: TargetAssignment, changed: Changed
) -> TargetShard | None:
    if was is None and "" not in changed:  # the most of them, where everything is new
        return TargetShard(number, {each: frozenset(found) for each, found in changed.items()})
    had: Mapping[str, Resources] = was.members if was else {}
    members: dict[str, Resources] = {}
    for member_id in had.keys() | changed.keys():
        found = had.get(member_id, NOTHING).union(changed.get(member_id, ()))
        if share := now.members.get(member_id, NOTHING) & found:
            members[member_id] = share
    left_out = {*changed.get("", ()), *(was.unplaceable if was else ())}
    unplaceable = {each: now.unplaceable[each] for each in left_out if each in now.unplaceable}
    return TargetShard(number, members, unplaceable) if members or unplaceable else None


def _differences_current(was: CurrentAssignment | None, now: CurrentAssignment) -> Differences:
    changed = _changed_keys(was.assigned if was else {}, now.assigned)
    yield "", changed | _changed_keys(was.pending if was else {}, now.pending)


def _shard_current(
    number: int, was: CurrentShard | None, now: CurrentAssignment, changed: Changed
) -> CurrentShard | None:
    found = {*changed[""], *was.assigned, *was.pending} if was else changed[""]
    assigned = {each: now.assigned[each] for each in found if each in now.assigned}
    pending = {each: now.pending[each] for each in found if each in now.pending}
    return CurrentShard(now.member_id, number, assigned, pending) if assigned or pending else None


def _changed_keys(was: Mapping[Resource, object], now: Mapping[Resource, object]) -> set[Resource]:
    if not was:
        return set(now)
    return set() if was == now else {each for each, _ in was.items() ^ now.items()}


_FORMS: Final[Mapping[type, _Form]] = {
    ConnectorsTasksMetadata: _Form(
        _differences_configured, _shard_configured, {"configured": NOTHING}
    ),
    TargetAssignment: _Form(_differences_target, _shard_target, {"members": {}, "unplaceable": {}}),
    CurrentAssignment: _Form(_differences_current, _shard_current, {"assigned": {}, "pending": {}}),
}
"""By class of head."""
