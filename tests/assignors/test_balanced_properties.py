"""What the default assignor promises, held against all that could be assigned instead."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.assignors.demands import demand_of
from fairlead.actors.messages.computing import MemberView, Snapshot
from fairlead.events.model import Resource, Resources
from fairlead.events.placement import Abilities, encode_abilities
from fairlead_tests.assignors.drawn import ordered
from fairlead_tests.assignors.drawn_placement import (
    capacity,
    demanding,
    emptied,
    groups,
    had,
    of_kind,
    places,
    weighed,
)
from fairlead_tests.assignors.snapshots import after, member, snapshot

KINDS = (False, True)
NOBODY = member("")
EMPTY = snapshot("")
Places = Mapping[Resource, str]

anything = st.one_of(
    groups(),
    groups().flatmap(weighed),
    groups(alike=True),
    groups(alike=True).flatmap(weighed),
    ordered().flatmap(lambda group: demanding(group) if group.configured else st.just(group)),
)


def allowed(group: Snapshot, resource: Resource) -> list[MemberView]:
    demand = demand_of(group, resource)
    return [view for view in group.members.values() if demand.is_met(view)]


def could_be(group: Snapshot, kind: Resources) -> Iterator[Places]:
    """Yield all that could be assigned of a kind."""
    listed = sorted(kind)
    who = [[view.member_id for view in allowed(group, each)] for each in listed]
    return (dict(zip(listed, choice, strict=True)) for choice in product(*who))


def loads_of(group: Snapshot, where: Places) -> tuple[int, ...]:
    counts = Counter(where.values())
    return tuple(counts[member_id] for member_id in sorted(group.members))


def moves(group: Snapshot, where: Places) -> int:
    before = had(group)
    return sum(before.get(each, at) != at for each, at in where.items())


def improved(loads: tuple[int, ...], capacities: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the loads after one gift that would leave both better than the giver was."""
    for giver, receiver in product(range(len(loads)), repeat=2):
        ahead = loads[giver] * capacities[receiver] - (loads[receiver] + 1) * capacities[giver]
        if giver != receiver and ahead > 0:
            after_gift = [*loads]
            after_gift[giver] -= 1
            after_gift[receiver] += 1
            yield tuple(after_gift)


@given(groups(members=3, tasks=2))
def test_shares_are_level_as_demands_permit_and_nothing_level_moves_less(group: Snapshot) -> None:
    made = assign(group)
    capacities = [capacity(group.members[each]) for each in sorted(group.members)]
    for tasks in KINDS:
        kind = of_kind(group.configured.difference(made.unplaceable), tasks=tasks)
        all_of_them = [*could_be(group, kind)]
        possible = {loads_of(group, each) for each in all_of_them}
        level = {each for each in possible if possible.isdisjoint(improved(each, capacities))}
        where = {each: at for each, at in places(made.members).items() if each in kind}
        assert loads_of(group, where) in level
        least = min(moves(group, each) for each in all_of_them if loads_of(group, each) in level)
        assert moves(group, where) == least


def unequal(group: Snapshot) -> Snapshot:
    """Return a group with workers of unequal capacities."""
    members = {
        view.member_id: replace(view, metadata=encode_abilities(Abilities(1 + place % 3)))
        for place, view in enumerate(group.members.values())
    }
    return replace(group, members=members)


@given(groups(alike=True))
def test_without_demands_nobody_could_give_one_and_leave_both_better(group: Snapshot) -> None:
    group = unequal(group)
    made = assign(group)
    capacities = [capacity(view) for view in group.members.values()]
    for tasks in KINDS:
        shares = (of_kind(made.members[each], tasks=tasks) for each in group.members)
        assert not [*improved(tuple(map(len, shares)), capacities)]


@given(groups(), st.integers(2, 1000), st.integers(1, 1000))
def test_what_all_weighs_the_same_is_shared_out_as_if_it_weighed_one(
    group: Snapshot, tasks: int, connectors: int
) -> None:
    weights = {each: tasks if each.is_task else connectors for each in group.configured}
    assert assign(replace(group, weights=weights)) == assign(group)


@given(groups().flatmap(weighed))
def test_nobody_is_ahead_of_another_by_more_than_the_heaviest_it_could_give(
    group: Snapshot,
) -> None:
    made = assign(group)
    for tasks in KINDS:
        shares = {each: of_kind(made.members[each], tasks=tasks) for each in group.members}
        loads = {
            each: sum(group.weights.get(resource, 1) for resource in share)
            for each, share in shares.items()
        }
        for giver, share in shares.items():
            for receiver, view in group.members.items():
                weights = [
                    group.weights.get(each, 1) for each in share if view in allowed(group, each)
                ]
                mine, theirs = capacity(group.members[giver]), capacity(view)
                more = (loads[receiver] + max(weights, default=0)) * mine
                assert giver == receiver or not weights or more >= loads[giver] * theirs


@given(anything)
def test_everything_configured_has_exactly_one_place(group: Snapshot) -> None:
    made = assign(group)
    found = Counter(each for share in made.members.values() for each in share)
    found.update(made.parked.keys())
    found.update(made.unplaceable.keys())
    assert found == Counter(group.configured)
    assert made.members.keys() == group.members.keys()


@given(anything)
def test_no_demand_is_broken_and_what_anybody_may_run_is_placed(group: Snapshot) -> None:
    made = assign(group)
    for resource, at in places(made.members).items():
        assert demand_of(group, resource).is_met(group.members[at])
    crew = [
        view
        for view in group.members.values()
        if not view.cordoned and not view.draining and view.member_epoch >= 0
    ]
    for resource, reason in made.unplaceable.items():
        assert reason
        assert not [view for view in allowed(group, resource) if view in crew and warm(crew, view)]


def warm(crew: Sequence[MemberView], view: MemberView) -> bool:
    return capacity(view) > 0 or not any(map(capacity, crew))


@given(anything)
def test_what_was_assigned_stays_when_it_is_assigned_again(group: Snapshot) -> None:
    group = replace(group, losses=(), parked={})
    made = assign(group)
    assert assign(after(group, made)) == made


@given(anything, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(group: Snapshot, dice: random.Random) -> None:
    shuffled = replace(
        group,
        configured=frozenset(dice.sample(sorted(group.configured), len(group.configured))),
        members=dict(dice.sample(list(group.members.items()), len(group.members))),
        losses=tuple(dice.sample(group.losses, len(group.losses))),
        weights=dict(dice.sample(list(group.weights.items()), len(group.weights))),
        pins=dict(dice.sample(list(group.pins.items()), len(group.pins))),
        needs=dict(dice.sample(list(group.needs.items()), len(group.needs))),
    )
    assert assign(shuffled) == assign(group)


@given(groups(alike=False), st.permutations(["m0", "m1", "m2", "m3"]))
def test_member_ids_do_not_matter_where_workers_have_names(
    group: Snapshot, ids: Sequence[str]
) -> None:
    renamed = dict(zip(["m0", "m1", "m2", "m3"], ids, strict=True))
    members = {
        renamed[each]: replace(view, member_id=renamed[each])
        for each, view in group.members.items()
    }
    made = assign(group).members
    assert assign(replace(group, members=members)).members == {
        renamed[each]: share for each, share in made.items()
    }


@given(groups(alike=True), st.data())
def test_when_one_leaves_only_its_own_work_moves(group: Snapshot, data: st.DataObject) -> None:
    group = unequal(group)
    settled = after(group, assign(group))
    leaver = data.draw(st.sampled_from(sorted(group.members)))
    rest = {each: view for each, view in settled.members.items() if each != leaver}
    made = assign(replace(settled, members=rest))
    assert all(view.target <= made.members[each] for each, view in rest.items())


@given(groups().flatmap(weighed))
def test_who_changes_nothing_has_the_very_share_that_it_had(group: Snapshot) -> None:
    settled = after(group, assign(group))
    made = assign(settled)
    assert all(made.members[each] is view.target for each, view in settled.members.items())


@given(st.integers(1, 4), st.integers(1, 3), st.lists(st.integers(0, 9), max_size=6))
def test_from_scratch_the_tasks_of_a_connector_are_even_over_zones_and_workers(
    zones: int, in_each: int, sizes: list[int]
) -> None:
    everything = frozenset(
        Resource(f"c{number}", task) for number, size in enumerate(sizes) for task in range(size)
    )
    crew = [
        replace(view, rack=f"z{zone}", worker=f"w{zone}-{seat}", member_id=f"m{seat}-{zone}")
        for zone, seat in product(range(zones), range(in_each))
        for view in [emptied(NOBODY)]
    ]
    group = replace(EMPTY, configured=everything, members={each.member_id: each for each in crew})
    made = assign(group)
    for number in range(len(sizes)):
        on = {
            each: sum(task.connector == f"c{number}" for task in made.members[each])
            for each in group.members
        }
        assert max(on.values()) - min(on.values()) <= 1
        per_zone = Counter({f"z{zone}": 0 for zone in range(zones)})
        for each, count in on.items():
            per_zone[str(group.members[each].rack)] += count
        assert max(per_zone.values()) - min(per_zone.values()) <= 1
