"""A large fact lies in parts: a small change writes little, and nothing of it is lost."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.events.catalogue import key_of
from fairlead.events.entries.codec import encode
from fairlead.events.evolve import evolve, evolve_copy
from fairlead.events.group import Group
from fairlead.events.model import MemberState, Resource
from fairlead.events.record_parts import RecordParts, lay_out, part_count, part_of
from fairlead.events.records import (
    ConfiguredPart,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    CurrentPart,
    Head,
    Record,
    TargetAssignment,
    TargetPart,
    Tombstone,
)

RESOURCES = st.frozensets(
    st.builds(Resource, st.integers(0, 60).map("c{}".format), st.integers(-1, 3)), max_size=120
)


def spread(resource: Resource, number: int) -> int:
    return 7 * int(resource.connector[1:]) + resource.task + number


def configured(resources: frozenset[Resource], _: int) -> Head:
    return ConnectorsTasksMetadata(resources)


def target(resources: frozenset[Resource], number: int) -> Head:
    members: dict[str, frozenset[Resource]] = {}
    for turn, name in enumerate(("W1", "W2", "W3")):
        members[name] = frozenset(each for each in resources if spread(each, number) % 4 == turn)
    left_out = resources.difference(*members.values())
    placed = {name: share for name, share in members.items() if share}
    return TargetAssignment(number, placed, unplaceable=dict.fromkeys(left_out, "no room"))


def current(resources: frozenset[Resource], number: int) -> Head:
    pending = {each: number for each in resources if spread(each, number) % 5 == 0}
    assigned = dict.fromkeys(resources - pending.keys(), number)
    return CurrentAssignment("W1", number, 0, MemberState.UNREVOKED, assigned, pending)


def laid_out(found: RecordParts, record: Record) -> list[Record]:
    (laid,) = lay_out(found, [record])
    return laid.parts


def take_all(found: RecordParts, records: Sequence[Record]) -> list[Record]:
    return [whole for each in records if (whole := found.assemble(each)) is not None]


@pytest.mark.parametrize("fact", [configured, target, current])
@given(steps=st.lists(RESOURCES, min_size=1, max_size=6))
@settings(max_examples=40)
def test_whatever_a_fact_becomes_it_is_read_whole_also_from_a_compacted_log(
    fact: Callable[[frozenset[Resource], int], Head], steps: list[frozenset[Resource]]
) -> None:
    found = RecordParts()
    log: list[Record] = []
    record = fact(frozenset(), 0)
    for number, resources in enumerate(steps, 1):
        record = fact(resources, number)
        parts = laid_out(found, record)
        (whole,) = take_all(found, parts)
        assert isinstance(whole, Head)
        assert whole == replace(record, parts=whole.parts)
        log += parts
        latest: dict[object, Record] = {}
        for each in log:
            of = each.kind if isinstance(each, Tombstone) else type(each)
            latest.pop((of, key_of(each)), None)
            latest[of, key_of(each)] = each
        left = [each for each in latest.values() if not isinstance(each, Tombstone)]
        compacted = RecordParts()
        assert take_all(compacted, left)[-1] == whole
        assert compacted == found
    kind: type = type(record)
    gone = Tombstone(kind, key_of(record))
    assert take_all(found, laid_out(found, gone)) == [gone]
    assert found == RecordParts(), "nothing of it is left"


def many(count: int) -> frozenset[Resource]:
    return frozenset(Resource(f"c{number}", task) for number in range(count) for task in (-1, 0))


@pytest.mark.parametrize("count", [300, 3_000])
def test_one_connector_more_or_less_writes_a_part_and_what_makes_room(count: int) -> None:
    shares = {"W1": many(count), "W2": frozenset[Resource]()}
    more = shares | {"W2": frozenset({Resource("new")})}
    for before, after in ((shares, more), (more, shares)):
        found = RecordParts()
        take_all(found, laid_out(found, TargetAssignment(1, before)))
        parts = laid_out(found, TargetAssignment(2, after))
        assert len(parts) <= 1 + 1 + 2 * 2
        assert sum(len(encode(each).value or b"") for each in parts) < 5_000


def test_one_part_more_takes_its_connectors_from_one_part() -> None:
    names = [f"c{number}" for number in range(2_000)]
    for count in range(2, 200):
        was = {name: part_of(name, count) for name in names}
        moved = [name for name in names if part_of(name, count + 1) != was[name]]
        assert {part_of(name, count + 1) for name in moved} <= {count}
        assert len({was[name] for name in moved}) <= 1


def test_parts_are_as_many_as_keeps_small_changes_and_large_ones_cheap() -> None:
    assert [part_count(size) for size in (0, 1, 31)] == [0, 0, 0]
    assert [part_count(size) for size in (32, 600, 6_000, 100_000)] == [1, 18, 154, 632]
    counts = [part_count(size) for size in range(20_000)]
    assert all(0 <= more - less <= 2 for less, more in pairwise(counts[32:]))


@pytest.mark.parametrize("fact", [configured, target, current])
def test_a_small_fact_is_one_record_of_the_first_version(
    fact: Callable[[frozenset[Resource], int], Head],
) -> None:
    record = fact(many(5), 1)
    assert laid_out(RecordParts(), record) == [record]
    assert encode(record).version == 1


def test_who_reads_a_part_sees_of_what_it_is() -> None:
    parts = laid_out(RecordParts(), current(many(20), 1))
    assert [type(each) for each in parts[:-1]] == [CurrentPart] * (len(parts) - 1)
    assert encode(parts[-1]).version == 2
    head = parts[-1]
    assert isinstance(head, CurrentAssignment)
    assert (head.parts, head.assigned, head.pending) == (1, {}, {})
    assert {type(each) for each in laid_out(RecordParts(), configured(many(20), 1))[:-1]} == {
        ConfiguredPart
    }
    assert {type(each) for each in laid_out(RecordParts(), target(many(20), 1))[:-1]} == {
        TargetPart
    }


def test_what_is_only_weighed_leaves_the_parts_as_they_are() -> None:
    group = Group("connect")
    for part in laid_out(group.record_parts, configured(many(50), 0)):
        evolve(group, part, group.end)
    before = copy(group.record_parts)
    evolve_copy(group, [ConnectorsTasksMetadata(frozenset())])
    assert group.record_parts == before
