"""Facts that name many resources: a head and its parts are one record (LOG.md §8).

What is configured, the target, and what a member holds are each one fact, however many
connectors there are. A large one lies in the log as a *head*, which says everything but the
resources, and as *parts* with the resources of some connectors each. In one batch the parts come
first, then their head. Each part has a key of its own: what compaction leaves of each key is the
whole fact.

Reading: `RecordParts.assemble` keeps the parts that come by, and makes each head whole. It takes
all parts that are there, in whatever way the writer has divided the connectors.

Writing: `lay_out` compares a fact with what the log holds of it, and writes the parts that differ,
then the head. The number of parts follows the size by linear hashing, a few parts at a time: no
change of size divides all of it anew. It grows with the root of the size, and so does a part: a
change of one connector writes little, and a change of everything few records.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any, Final, NamedTuple
from zlib import crc32

from .model import NOTHING, Key, Resource, Resources
from .records import (
    HEADS,
    ConfiguredPart,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    CurrentPart,
    Head,
    Record,
    RecordPart,
    TargetAssignment,
    TargetPart,
    Tombstone,
)

HeadKey = tuple[type, Key]
"""The fact that parts belong to: the class and the key of its head."""

Parts = Mapping[int, RecordPart]
"""The parts of one fact by number, those without any resource left out."""

KEPT: Final = (ConfiguredPart, TargetPart, CurrentPart, Tombstone)

HEAD_OF: Final[Mapping[type, type]] = {
    ConfiguredPart: ConnectorsTasksMetadata,
    TargetPart: TargetAssignment,
    CurrentPart: CurrentAssignment,
}


@dataclass(slots=True)
class RecordParts:
    """The parts of records in a log, as far as it was read."""

    by_head: dict[HeadKey, dict[int, RecordPart]] = field(
        default_factory=dict[HeadKey, dict[int, RecordPart]]
    )
    """The parts of each fact, by number."""
    wholes: dict[HeadKey, Head] = field(default_factory=dict[HeadKey, Head])
    """What the parts of each fact, and its head, say together."""

    def assemble(self, record: Record) -> Record | None:
        """Reassemble a record from its parts; None for a part, since the head follows.

        A complete head is returned as it is.
        """
        if isinstance(record, HEADS):
            return self._complete(record)
        return self._keep(record) if isinstance(record, KEPT) else record

    def __copy__(self) -> "RecordParts":
        """Return a copy that can be fed other records than this."""
        by_head = {key: {**parts} for key, parts in self.by_head.items()}
        return RecordParts(by_head, {**self.wholes})

    def _complete(self, record: Head) -> Head:
        if not record.parts:
            if self.wholes:
                self.wholes.pop(head_key_of(record), None)
            return record
        key = head_key_of(record)
        if not size_of(record):
            record = JOINS[type(record)](record, self.by_head.get(key, {}))
        self.wholes[key] = record
        return record

    def _keep(self, record: Record) -> Record | None:
        if isinstance(record, RecordPart):
            key = HEAD_OF[type(record)], key_of_part(record)[:-1]
            self.by_head.setdefault(key, {})[record.number] = record
        elif isinstance(record, Tombstone) and record.kind in HEAD_OF:
            self._drop((HEAD_OF[record.kind], record.key[:-1]), int(record.key[-1]))
        else:
            if isinstance(record, Tombstone):
                self.wholes.pop((record.kind, record.key), None)
            return record
        return None

    def _drop(self, key: HeadKey, number: int) -> None:
        parts = self.by_head.get(key, {})
        parts.pop(number, None)
        if not parts:
            self.by_head.pop(key, None)


def size_of(record: Head) -> int:
    """Return how many resources a fact names."""
    if isinstance(record, ConnectorsTasksMetadata):
        return len(record.configured)
    if isinstance(record, TargetAssignment):
        return sum(map(len, record.members.values())) + len(record.unplaceable)
    return len(record.assigned) + len(record.pending)


def head_key_of(record: Record) -> HeadKey:
    """Return the fact that a head, or a tombstone of one, is about."""
    if isinstance(record, Tombstone):
        return record.kind, record.key
    return type(record), (record.member_id,) if isinstance(record, CurrentAssignment) else ()


def key_of_part(part: RecordPart) -> Key:
    """Return the key of a part: that of its head, and its number."""
    return (part.member_id, part.number) if isinstance(part, CurrentPart) else (part.number,)


def _join_configured(record: ConnectorsTasksMetadata, parts: Parts) -> ConnectorsTasksMetadata:
    configured = (each.configured for each in parts.values() if isinstance(each, ConfiguredPart))
    return replace(record, configured=NOTHING.union(*configured))


def _join_target(record: TargetAssignment, parts: Parts) -> TargetAssignment:
    shares: defaultdict[str, list[Resource]] = defaultdict(list)
    unplaceable: dict[Resource, str] = {}
    for each in parts.values():
        if isinstance(each, TargetPart):
            for member_id, share in each.members.items():
                shares[member_id] += share
            unplaceable.update(each.unplaceable)
    members = {member_id: frozenset(share) for member_id, share in shares.items()}
    return replace(record, members=members, unplaceable=unplaceable)


def _join_current(record: CurrentAssignment, parts: Parts) -> CurrentAssignment:
    assigned: dict[Resource, int] = {}
    pending: dict[Resource, int] = {}
    for each in parts.values():
        if isinstance(each, CurrentPart):
            assigned.update(each.assigned)
            pending.update(each.pending)
    return replace(record, assigned=assigned, pending=pending)


JOINS: Final[Mapping[type, Callable[[Any, Parts], Head]]] = {
    ConnectorsTasksMetadata: _join_configured,
    TargetAssignment: _join_target,
    CurrentAssignment: _join_current,
}
"""By class of head: gives it what all its parts say."""

LEAST_PER_PART: Final = 32
"""Resources for each part; a fact with less than that has none."""

Differences = Iterable[tuple[str, Iterable[Resource]]]
"""Resources of which another thing is said now, by the member that gets or loses them."""
Changed = Mapping[str, Iterable[Resource]]
"""Those of them that go into one part."""


class Layout(NamedTuple):
    """A record, and the entries to write for it, the head last."""

    whole: Record
    parts: list[Record]


class _PartRule(NamedTuple):
    """The rules by which records of one class are split into parts."""

    differences: Callable[[Any, Any], Differences]
    """What differs between an earlier state, None for nothing, and a later one."""

    part: Callable[[int, Any, Any, Changed], RecordPart | None]
    """A part as it was, with what changed taken from the later state; None if it is empty."""

    emptied: Mapping[str, object]
    """What the head says instead of the resources."""


class _Before(NamedTuple):
    """A record as it is in the log: its parts, and its whole content."""

    parts: Parts
    whole: Head | None


def lay_out(in_log: RecordParts, records: Iterable[Record]) -> list[Layout]:
    """Return each record of a batch with the entries to write for it, the parts first.

    `in_log` are the parts that the log holds; they stay as they are.
    """
    ahead: dict[HeadKey, _Before] = {}
    return [_lay_out_one(in_log, ahead, record) for record in records]


def _lay_out_one(in_log: RecordParts, ahead: dict[HeadKey, _Before], record: Record) -> Layout:
    kind = record.kind if isinstance(record, Tombstone) else type(record)
    if kind not in _PART_RULES:
        return Layout(record, [record])
    key = head_key_of(record)
    before = ahead.get(key) or _Before(in_log.by_head.get(key, {}), in_log.wholes.get(key))
    if not isinstance(record, HEADS):
        ahead[key] = _Before({}, None)
        return Layout(record, [*_changes(before.parts, {}), record])
    rule = _PART_RULES[kind]
    count = part_count(size_of(record))
    if not count:
        record = replace(record, parts=0) if record.parts else record
        ahead[key] = _Before({}, None)
        return Layout(record, [*_changes(before.parts, {}), record])
    after = _parts_of(rule, before, record, count)
    whole: Head = replace(record, parts=count, **_without_idle(record))
    ahead[key] = _Before(after, whole)
    head: Head = replace(whole, **rule.emptied)  # type: ignore[arg-type]
    return Layout(whole, [*_changes(before.parts, after), head])


def _without_idle(record: Head) -> dict[str, Any]:
    """Return a target's shares without the empty ones: no part holds any of them."""
    if not isinstance(record, TargetAssignment):
        return {}
    return {"members": {name: share for name, share in record.members.items() if share}}


def _changes(before: Parts, after: Parts) -> Iterator[Record]:
    """Yield the parts that differ between two versions, and tombstones of those that are gone."""
    for number in sorted(before.keys() | after.keys()):
        was, now = before.get(number), after.get(number)
        if now is None:
            assert was is not None  # noqa: S101  (a number of either)
            yield Tombstone(type(was), key_of_part(was))
        elif now is not was and now != was:
            yield now


def _parts_of(rule: _PartRule, before: _Before, record: Head, count: int) -> Parts:
    """Return a record's parts; unchanged ones are the same objects as before."""
    was, parts = before.whole, dict(before.parts)
    if was is None or was.parts != count:
        was, parts = None, {}
    changed: defaultdict[int, dict[str, list[Resource]]] = defaultdict(dict)
    for member_id, resources in rule.differences(was, record):
        for number, listed in _by_part(resources, count).items():
            changed[number][member_id] = listed
    for number, differences in changed.items():
        part = rule.part(number, parts.get(number), record, differences)
        if part is None:
            parts.pop(number, None)
        else:
            parts[number] = part
    return parts


def _by_part(resources: Iterable[Resource], count: int) -> dict[int, list[Resource]]:
    numbers: dict[str, int] = {}
    listed: defaultdict[int, list[Resource]] = defaultdict(list)
    for resource in resources:
        name = resource[0]
        number = numbers.get(name)
        if number is None:
            number = numbers[name] = part_of(name, count)
        listed[number].append(resource)
    return listed


def part_count(size: int) -> int:
    """Return the number of parts of a record with this many resources; 0 for a small one."""
    return min(size // LEAST_PER_PART, 2 * isqrt(size))


def part_of(connector: str, count: int) -> int:
    """Return the number of the part that holds a connector's resources (linear hashing)."""
    mask = (1 << (count - 1).bit_length()) - 1
    number = crc32(connector.encode()) & mask
    return number if number < count else number & (mask >> 1)


def _differences_configured(
    was: ConnectorsTasksMetadata | None, now: ConnectorsTasksMetadata
) -> Differences:
    yield "", (was.configured if was else NOTHING) ^ now.configured


def _part_configured(
    number: int, was: ConfiguredPart | None, now: ConnectorsTasksMetadata, changed: Changed
) -> ConfiguredPart | None:
    in_part = was.configured.union(changed[""]) if was else changed[""]
    configured = now.configured.intersection(in_part)
    return ConfiguredPart(number, configured) if configured else None


def _differences_target(was: TargetAssignment | None, now: TargetAssignment) -> Differences:
    before: Mapping[str, Resources] = was.members if was else {}
    for member_id in before.keys() | now.members.keys():
        had, has = before.get(member_id, NOTHING), now.members.get(member_id, NOTHING)
        if had is not has:
            yield member_id, had ^ has
    yield "", _changed_keys(was.unplaceable if was else {}, now.unplaceable)


def _part_target(
    number: int, was: TargetPart | None, now: TargetAssignment, changed: Changed
) -> TargetPart | None:
    if was is None and "" not in changed:  # the most of them, where everything is new
        return TargetPart(number, {each: frozenset(new) for each, new in changed.items()})
    had: Mapping[str, Resources] = was.members if was else {}
    members: dict[str, Resources] = {}
    for member_id in had.keys() | changed.keys():
        in_part = had.get(member_id, NOTHING).union(changed.get(member_id, ()))
        if share := now.members.get(member_id, NOTHING) & in_part:
            members[member_id] = share
    left_out = {*changed.get("", ()), *(was.unplaceable if was else ())}
    unplaceable = {each: now.unplaceable[each] for each in left_out if each in now.unplaceable}
    return TargetPart(number, members, unplaceable) if members or unplaceable else None


def _differences_current(was: CurrentAssignment | None, now: CurrentAssignment) -> Differences:
    changed = _changed_keys(was.assigned if was else {}, now.assigned)
    yield "", changed | _changed_keys(was.pending if was else {}, now.pending)


def _part_current(
    number: int, was: CurrentPart | None, now: CurrentAssignment, changed: Changed
) -> CurrentPart | None:
    in_part = {*changed[""], *was.assigned, *was.pending} if was else changed[""]
    assigned = {each: now.assigned[each] for each in in_part if each in now.assigned}
    pending = {each: now.pending[each] for each in in_part if each in now.pending}
    return CurrentPart(now.member_id, number, assigned, pending) if assigned or pending else None


def _changed_keys(was: Mapping[Resource, object], now: Mapping[Resource, object]) -> set[Resource]:
    if not was:
        return set(now)
    return set() if was == now else {each for each, _ in was.items() ^ now.items()}


_PART_RULES: Final[Mapping[type, _PartRule]] = {
    ConnectorsTasksMetadata: _PartRule(
        _differences_configured, _part_configured, {"configured": NOTHING}
    ),
    TargetAssignment: _PartRule(
        _differences_target, _part_target, {"members": {}, "unplaceable": {}}
    ),
    CurrentAssignment: _PartRule(
        _differences_current, _part_current, {"assigned": {}, "pending": {}}
    ),
}
"""By class of head."""
