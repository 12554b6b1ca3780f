"""The assignors `uniform` and `range`: by rules, and by what must hold of any group."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.actors.consumer.assignors.range import assign_ranges
from fairlead.actors.consumer.assignors.uniform import assign_uniformly
from fairlead.actors.group.computing.install import flaw_in
from fairlead.actors.messages.computing import Assignment, MemberView, Snapshot
from fairlead.events.model import NOTHING, Resource, Resources

NAMES = "abc"


def view(member_id: str, topics: str, target: Resources = NOTHING) -> MemberView:
    return MemberView(
        *(member_id, 1, None, "", None, 0, 0, b"", NOTHING, target), topics=frozenset(topics)
    )


def snapshot(topics: Mapping[str, int], *members: MemberView) -> Snapshot:
    """A group that shares out topics with so many partitions, as far as anybody wants them."""
    wanted = {name for each in members for name in each.topics or ()}
    configured = frozenset(
        Resource(name, number)
        for name in topics
        if name in wanted
        for number in range(topics[name])
    )
    views = {each.member_id: each for each in members}
    return Snapshot(2, 1, "", b"", configured, views, (), {}, NOTHING, 0)


@st.composite
def snapshots(draw: st.DrawFn, most: int = 5, partitions: int = 7) -> Snapshot:
    """Any group, with whatever the last target gave, the departed included."""
    topics = {name: draw(st.integers(1, partitions)) for name in NAMES}
    resources = [Resource(name, number) for name in NAMES for number in range(topics[name] + 1)]
    count = draw(st.integers(1, most))
    owners = [draw(st.integers(0, count)) for _ in resources]
    subscriptions = st.sets(st.sampled_from(NAMES)).map("".join)
    is_alike = draw(st.booleans())
    alike = draw(subscriptions)
    members = [
        view(
            f"m{number}",
            alike if is_alike else draw(subscriptions),
            frozenset(
                each for each, owner in zip(resources, owners, strict=True) if owner == number
            ),
        )
        for number in range(count)
    ]
    return snapshot(topics, *members)


def loads(assignment: Assignment) -> list[int]:
    return sorted(map(len, assignment.members.values()))


@given(snapshots())
def test_every_partition_goes_to_one_member_that_subscribes_to_its_topic(group: Snapshot) -> None:
    for assign in (assign_uniformly, assign_ranges):
        assignment = assign(group)
        assert (flaw_in(assignment, group), assignment.unplaceable) == ("", {})


@given(snapshots(most=3, partitions=2))
@settings(max_examples=60, deadline=None)
def test_no_other_assignment_is_more_equal_than_the_uniform_one(group: Snapshot) -> None:
    resources = sorted(group.configured)
    takers = [
        [
            each
            for each, member in group.members.items()
            if resource.connector in (member.topics or ())
        ]
        for resource in resources
    ]
    costs = (sum(given.count(each) ** 2 for each in group.members) for given in product(*takers))
    assert sum(load**2 for load in loads(assign_uniformly(group))) == min(costs)


@given(snapshots())
def test_where_all_subscribe_to_the_same_nobody_has_two_more_and_each_keeps_its_share(
    group: Snapshot,
) -> None:
    members = {each: replace(view, topics=frozenset(NAMES)) for each, view in group.members.items()}
    group = replace(group, members=members)
    assignment = assign_uniformly(group)
    least = len(group.configured) // len(members)
    assert max(loads(assignment)) - min(loads(assignment)) <= 1
    for member_id, share in assignment.members.items():
        had = members[member_id].target & group.configured
        assert len(share & had) >= min(len(had), least)


@given(snapshots())
def test_a_uniform_assignment_stays_as_it_is_while_the_group_does(group: Snapshot) -> None:
    assignment = assign_uniformly(group)
    members = {
        each: replace(view, target=assignment.members[each]) for each, view in group.members.items()
    }
    assert assign_uniformly(replace(group, members=members)) == assignment


@given(snapshots())
def test_a_range_is_a_stretch_and_none_is_longer_than_another_by_more_than_one(
    group: Snapshot,
) -> None:
    for topic in NAMES:
        stretches = [
            sorted(each.task for each in share if each.connector == topic)
            for member_id, share in assign_ranges(group).members.items()
            if topic in (group.members[member_id].topics or ())
        ]
        assert all(each == [*range(each[0], each[0] + len(each))] for each in stretches if each)
        lengths = {*map(len, stretches)}
        assert not lengths or max(lengths) - min(lengths) <= 1


def test_ranges_of_topics_that_are_alike_are_cut_alike() -> None:
    group = snapshot({"a": 5, "b": 5}, view("m2", "ab"), view("m1", "ab"))
    shares = assign_ranges(group).members
    for topic in "ab":
        assert {each.task for each in shares["m1"] if each.connector == topic} == {0, 1, 2}


def test_a_load_is_levelled_by_way_of_a_member_between_two() -> None:
    held = frozenset(Resource("a", number) for number in range(6))
    group = snapshot({"a": 6, "b": 2}, view("m1", "a", held), view("m2", "ab"), view("m3", "b"))
    assert loads(assign_uniformly(group)) == [2, 3, 3]


def test_partitions_of_the_departed_are_dealt_and_the_others_keep_theirs() -> None:
    mine = frozenset({Resource("a", 3), Resource("a", 0)})
    group = snapshot({"a": 4}, view("m1", "a", mine), view("m2", "a"))
    assert assign_uniformly(group).members == {"m1": mine, "m2": group.configured - mine}
