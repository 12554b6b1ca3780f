"""What the assignors that defer promise for groups of any shape."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.messages.computing import Assignment, LossView, Snapshot
from fairlead.events.model import NOTHING, Resource, Resources
from fairlead.events.placement import WARM
from fairlead_tests.assignors.deferring import DEFERRING
from fairlead_tests.assignors.drawn import snapshots, successors, takers
from fairlead_tests.assignors.snapshots import DEADLINE_MS, NOW_MS, after


def holder(group: Snapshot, resource: Resource) -> str | None:
    """Return who has the resource: by target, by what it owns, or by whom it follows."""
    for has in ([m for m in takers(group) if resource in m.target], takers(group)):
        for each in has:
            if resource in each.target or resource in each.owned:
                return each.member_id
    for old, successor in sorted(successors(group).items()):
        if resource in group.members[old].target | group.members[old].owned:
            return successor.member_id
    return None


def kinds(resources: Resources) -> tuple[Resources, Resources]:
    tasks = frozenset(resource for resource in resources if resource.is_task)
    return resources - tasks, tasks


def moves(where: Mapping[Resource, str], had: Mapping[Resource, str | None]) -> int:
    return sum(had[resource] not in {None, member_id} for resource, member_id in where.items())


def placed(assignment: Assignment) -> dict[Resource, str]:
    return {each: member_id for member_id, has in assignment.members.items() for each in has}


@given(snapshots())
def test_everything_configured_has_exactly_one_place(group: Snapshot) -> None:
    for assign in DEFERRING.values():
        made = assign(group)
        places = Counter(each for has in made.members.values() for each in has)
        places.update(made.parked.keys())
        places.update(made.unplaceable.keys())
        assert places == Counter(group.configured)
        assert made.members.keys() == group.members.keys()


@given(snapshots())
def test_members_that_can_take_work_hold_within_one_of_each_kind(group: Snapshot) -> None:
    for assign in DEFERRING.values():
        made = assign(group)
        able = {each.member_id for each in takers(group)}
        for pair in zip(*(kinds(made.members[each]) for each in able), strict=True):
            sizes = [len(has) for has in pair]
            assert max(sizes) - min(sizes) <= 1
        assert not any(has for each, has in made.members.items() if each not in able)


@given(snapshots())
def test_assigning_again_moves_nothing(group: Snapshot) -> None:
    for assign in DEFERRING.values():
        made = assign(group)
        assert assign(after(group, made)) == made
        targeted = {
            each: replace(view, target=made.members[each]) for each, view in group.members.items()
        }
        assert assign(replace(group, members=targeted, parked=made.parked)) == made


@given(snapshots(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(group: Snapshot, dice: random.Random) -> None:
    members = dice.sample(list(group.members.items()), len(group.members))
    losses = dice.sample(group.losses, len(group.losses))
    parked = dice.sample(list(group.parked.items()), len(group.parked))
    shuffled = replace(group, members=dict(members), losses=tuple(losses), parked=dict(parked))
    for assign in DEFERRING.values():
        assert repr(assign(shuffled).parked) == repr(assign(group).parked)
        assert assign(shuffled) == assign(group)


@given(snapshots(most_members=3, most_tasks=2))
def test_no_level_assignment_moves_less(group: Snapshot) -> None:
    group = replace(group, losses=(), parked={})
    for assign in DEFERRING.values():
        made = placed(assign(group))
        able = [each.member_id for each in takers(group)]
        for kind in kinds(group.configured):
            had = {resource: holder(group, resource) for resource in kind}
            least = min(
                moves(where, had)
                for choice in product(able, repeat=len(kind))
                for where in [dict(zip(sorted(kind), choice, strict=True))]
                if max(map(choice.count, able)) - min(map(choice.count, able)) <= 1
            )
            assert moves({each: made[each] for each in kind}, had) == least


@given(snapshots(), st.data())
def test_when_one_leaves_only_its_own_work_moves(group: Snapshot, data: st.DataObject) -> None:
    warm = {each: replace(view, metadata=WARM, url="") for each, view in group.members.items()}
    group = replace(group, members=warm, losses=(), parked={})
    for assign in DEFERRING.values():
        settled = after(group, assign(group))
        leaver = data.draw(st.sampled_from(sorted(group.members)))
        rest = {each: view for each, view in settled.members.items() if each != leaver}
        made = assign(replace(settled, members=rest))
        assert all(view.target <= made.members[each] for each, view in rest.items())


@given(snapshots(), st.data())
def test_free_work_goes_to_the_least_loaded_then_fewest_of_its_connector_then_lowest_id(
    group: Snapshot, data: st.DataObject
) -> None:
    warm = {each: replace(view, metadata=WARM, url="") for each, view in group.members.items()}
    group = replace(group, members=warm, losses=(), parked={})
    for assign in DEFERRING.values():
        settled = after(group, assign(group))
        stay = data.draw(st.sets(st.sampled_from(sorted(warm)), min_size=1))
        rest = {each: settled.members[each] for each in stay}
        expected = {each: set(view.target) for each, view in rest.items()}
        for kind in kinds(group.configured.difference(*expected.values())):
            for resource in sorted(kind):
                expected[min(expected, key=lambda each: rank(expected[each], resource, each))].add(
                    resource
                )
        assert assign(replace(settled, members=rest)).members == expected


def rank(has: set[Resource], resource: Resource, member_id: str) -> tuple[int, int, str]:
    alike = [each for each in has if each.is_task == resource.is_task]
    return len(alike), sum(each.connector == resource.connector for each in alike), member_id


@given(snapshots(), st.data())
def test_a_crash_moves_nothing_and_a_return_restores_it(
    group: Snapshot, data: st.DataObject
) -> None:
    warm = {
        each: replace(view, metadata=WARM, url=f"http://{each}", instance_id=None)
        for each, view in group.members.items()
    }
    group = replace(group, members=warm, losses=(), parked={}, fired=NOTHING)
    for assign in DEFERRING.values():
        settled = after(group, assign(group))
        gone = settled.members[data.draw(st.sampled_from(sorted(warm)))]
        rest = {each: view for each, view in settled.members.items() if each != gone.member_id}
        lost = LossView(gone.member_id, None, gone.url, gone.target, DEADLINE_MS)
        crashed = replace(settled, members=rest, losses=(lost,))
        waiting = assign(crashed)
        if rest:
            assert waiting == Assignment(
                members={each: view.target for each, view in rest.items()},
                parked=dict.fromkeys(gone.target, DEADLINE_MS),
            )
        back = replace(gone, member_id="W9", target=NOTHING, owned=NOTHING)
        returned = replace(crashed, members={**rest, "W9": back}, parked=waiting.parked)
        assert assign(returned) == Assignment(
            members={**{each: view.target for each, view in rest.items()}, "W9": gone.target}
        )


@given(snapshots())
def test_only_lost_or_parked_work_before_its_deadline_is_parked(group: Snapshot) -> None:
    for assign in DEFERRING.values():
        made = assign(group)
        lost = frozenset[Resource]().union(
            group.parked, *(each.resources for each in group.losses if each.deadline_ms > NOW_MS)
        )
        held = frozenset[Resource]().union(*(m.target | m.owned for m in group.members.values()))
        assert made.parked.keys() <= (lost & group.configured) - group.fired - held
        assert all(deadline > NOW_MS for deadline in made.parked.values())
