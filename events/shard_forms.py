"""How each kind of fact that may lie in shards goes into them, and comes out of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from .model import NOTHING, Resource, Resources
from .records import (
    ConfiguredShard,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    CurrentShard,
    Head,
    Shard,
    TargetAssignment,
    TargetShard,
)

Rows = Mapping[int, Shard]
"""The shards of one fact by number, those without any resource left out."""
Differences = Iterable[tuple[str, Iterable[Resource]]]
"""Resources of which another thing is said now, by the member that gets or loses them."""
Changed = Mapping[str, Iterable[Resource]]
"""Those of them that go into one shard."""


class Form(NamedTuple):
    """How a kind of fact goes into shards and out of them."""

    size: Callable[[Any], int]
    """How many resources the fact names."""
    differences: Callable[[Any, Any], Differences]
    """What differs between an earlier state, None for nothing, and a later one."""
    shard: Callable[[int, Any, Any, Changed], Shard | None]
    """A shard as it was, with what changed taken from the later state; None if it is empty."""
    join: Callable[[Any, Rows], Head]
    """A head with what all its shards say."""
    emptied: Mapping[str, object]
    """What its head says instead of the resources."""


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


def _size_of_configured(record: ConnectorsTasksMetadata) -> int:
    return len(record.configured)


def _size_of_target(record: TargetAssignment) -> int:
    return sum(map(len, record.members.values())) + len(record.unplaceable)


def _size_of_current(record: CurrentAssignment) -> int:
    return len(record.assigned) + len(record.pending)


FORMS: Final[Mapping[type, Form]] = {
    ConnectorsTasksMetadata: Form(
        _size_of_configured,
        _differences_configured,
        _shard_configured,
        _join_configured,
        {"configured": NOTHING},
    ),
    TargetAssignment: Form(
        _size_of_target,
        _differences_target,
        _shard_target,
        _join_target,
        {"members": {}, "unplaceable": {}},
    ),
    CurrentAssignment: Form(
        _size_of_current,
        _differences_current,
        _shard_current,
        _join_current,
        {"assigned": {}, "pending": {}},
    ),
}
"""By kind of head."""
