"""How operators' orders stand with each of the built-in assignors."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.assignors.built_in import balanced, counting, incremental
from fairlead.actors.messages.computing import Assignment, MemberView, Snapshot
from fairlead.events.model import Resources
from fairlead.events.placement import COLD, WARM
from fairlead_tests.assignors.drawn import ordered
from fairlead_tests.assignors.snapshots import DEADLINE_MS, loss, member, one, snapshot, work

Assign = Callable[[Snapshot], Assignment]
NOBODY = "no worker takes work: all are cordoned, drained or away"

WAITING: Mapping[str, Assign] = {
    balanced.NAME: balanced.assign,
    counting.UNIFORM: counting.assign_uniformly,
    counting.RANGE: counting.assign_ranges,
    counting.DEFERRED: counting.assign_deferred,
    incremental.NAME: incremental.assign,
}
"""Those that park what was lost."""

EVERY: Mapping[str, Assign] = {
    **WAITING,
    counting.SIMPLE: counting.assign_at_once,
    counting.EAGER: counting.assign_eagerly,
}
each_assignor = pytest.mark.parametrize("assign", WAITING.values(), ids=WAITING)
any_assignor = pytest.mark.parametrize("assign", EVERY.values(), ids=EVERY)


def worker(member_id: str, target: str = "", **orders: object) -> MemberView:
    return replace(member(member_id, target), worker=member_id, **orders)  # type: ignore[arg-type]


@each_assignor
def test_who_is_cordoned_keeps_what_it_has_and_gets_nothing_new(assign: Assign) -> None:
    w1, w2 = worker("W1", "A A-0 A-1", cordoned=True), worker("W2")
    made = assign(snapshot("A A-0 A-1 B B-0", w1, w2))
    assert made == Assignment({"W1": work("A A-0 A-1"), "W2": work("B B-0")})


@each_assignor
def test_who_is_drained_gives_up_all_and_who_is_cordoned_takes_none_of_it(assign: Assign) -> None:
    w1, w2 = worker("W1", "A A-0", draining=True, cordoned=True), worker("W2", cordoned=True)
    made = assign(snapshot("A A-0", w1, w2, worker("W3")))
    assert made == Assignment({"W1": work(""), "W2": work(""), "W3": work("A A-0")})


@each_assignor
def test_what_is_drained_and_nobody_can_take_is_unplaceable_and_says_so(assign: Assign) -> None:
    w1, w2 = worker("W1", "A", draining=True), worker("W2", "B", cordoned=True)
    made = assign(snapshot("A B C", w1, w2))
    assert made == Assignment(
        {"W1": work(""), "W2": work("B")}, unplaceable={one("A"): NOBODY, one("C"): NOBODY}
    )


@each_assignor
def test_who_is_away_for_a_while_keeps_what_it_has_and_gets_nothing_new(assign: Assign) -> None:
    w1, w2 = worker("W1", "A", member_epoch=-2), worker("W2")
    assert assign(snapshot("A B C", w1, w2)) == Assignment({"W1": work("A"), "W2": work("B C")})


@each_assignor
def test_a_worker_that_returns_cordoned_is_still_waited_for(assign: Assign) -> None:
    lost = (loss("W9", "B", url="http://two"),)
    back = replace(worker("W2", cordoned=True), url="http://two")
    made = assign(snapshot("A B", worker("W1", "A"), back, losses=lost))
    assert made == Assignment({"W1": work("A"), "W2": work("")}, {one("B"): DEADLINE_MS})


@each_assignor
def test_pinned_work_runs_on_a_worker_that_its_pins_name(assign: Assign) -> None:
    group = snapshot("A B C", worker("W1", "A B C"), worker("W2"))
    made = assign(replace(group, pins={one("A"): ("W2", "W8"), one("B"): ("W2",)}))
    assert made.members["W2"] >= work("A B")
    assert not made.unplaceable


@each_assignor
def test_pinned_work_stays_with_who_has_it_if_that_one_may(assign: Assign) -> None:
    group = snapshot("A B", worker("W1", "A"), worker("W2", "B"))
    made = assign(replace(group, pins={one("A"): ("W2", "W1"), one("B"): ("W1", "W2")}))
    assert made == Assignment({"W1": work("A"), "W2": work("B")})


@each_assignor
def test_work_whose_pins_name_nobody_present_is_unplaceable_and_says_so(assign: Assign) -> None:
    group = replace(snapshot("A B", worker("W1", "A B")), pins={one("B"): ("W7", "W8")})
    reason = "pinned to W7, W8: no worker that takes work meets this"
    assert assign(group) == Assignment({"W1": work("A")}, unplaceable={one("B"): reason})


@each_assignor
def test_a_cordoned_worker_gives_up_what_is_pinned_to_others(assign: Assign) -> None:
    group = snapshot("A B", worker("W1", "A B", cordoned=True), worker("W2"))
    made = assign(replace(group, pins={one("B"): ("W2",)}))
    assert made == Assignment({"W1": work("A"), "W2": work("B")})


@each_assignor
@pytest.mark.parametrize(
    "keeper", [worker("W2", cordoned=True), worker("W2", member_epoch=-2)], ids=["cordoned", "away"]
)
def test_what_is_pinned_to_who_runs_it_stays_there_though_it_was_to_go_elsewhere(
    assign: Assign, keeper: MemberView
) -> None:
    w1, w2 = worker("W1", "A"), replace(keeper, owned=work("A"))
    group = replace(snapshot("A", w1, w2), pins={one("A"): ("W2",)})
    assert assign(group) == Assignment({"W1": work(""), "W2": work("A")})


@each_assignor
def test_of_two_who_run_it_and_are_cordoned_who_may_keeps_it(assign: Assign) -> None:
    w1, w2 = (worker(each, "", owned=work("A"), cordoned=True) for each in ("W1", "W2"))
    group = replace(snapshot("A", w1, w2), pins={one("A"): ("W2",)})
    assert assign(group) == Assignment({"W1": work(""), "W2": work("A")})


def test_pinned_work_counts_in_the_levels() -> None:
    group = snapshot("A-0 A-1 A-2 A-3 B-0 B-1", worker("W1"), worker("W2"))
    pinned = replace(group, pins=dict.fromkeys(work("A-0 A-1"), ("W1",)))
    for assign in (balanced.assign, counting.assign_uniformly):
        made = assign(pinned)
        assert [len(made.members[each]) for each in ("W1", "W2")] == [3, 3]
        assert made.members["W1"] >= work("A-0 A-1")


def test_who_has_most_keeps_the_odd_one_pinned_work_included() -> None:
    w1, w2 = worker("W1", "A-1 C-2"), worker("W2", "A-0 B-0 B-2")
    pinned = replace(snapshot("A-0 A-1 B-0 B-2 C-2", w1, w2), pins={one("A-0"): ("W2",)})
    for assign in (
        counting.assign_deferred,
        counting.assign_at_once,
        counting.assign_uniformly,
        incremental.assign,
    ):
        assert assign(pinned) == Assignment({"W1": w1.target, "W2": w2.target})


# Of groups of any shape; each is drawn once for all assignors.


def allowed(group: Snapshot, member_id: str, share: Resources) -> bool:
    name = group.members[member_id].worker
    return all(name in group.pins.get(resource, (name,)) for resource in share)


@given(group=ordered())
def test_everything_configured_has_exactly_one_place(group: Snapshot) -> None:
    for name, assign in EVERY.items():
        made = assign(group)
        places = Counter(each for has in made.members.values() for each in has)
        places.update(made.parked.keys())
        places.update(made.unplaceable.keys())
        assert places == Counter(group.configured), name
        assert made.members.keys() == group.members.keys(), name
        assert all(made.unplaceable.values()), name


@given(group=ordered())
def test_orders_are_kept_whatever_else_is_the_case(group: Snapshot) -> None:
    for name, assign in EVERY.items():
        made = assign(group)
        for member_id, share in made.members.items():
            view = group.members[member_id]
            assert allowed(group, member_id, share), name
            if view.draining:
                assert not share, name
            elif view.cordoned or view.member_epoch < 0:
                assert share <= view.target | view.owned, name


@given(group=ordered(), dice=st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(group: Snapshot, dice: random.Random) -> None:
    members = dice.sample(list(group.members.items()), len(group.members))
    losses = dice.sample(group.losses, len(group.losses))
    shuffled = replace(group, members=dict(members), losses=tuple(losses))
    for name, assign in EVERY.items():
        assert assign(shuffled) == assign(group), name


@any_assignor
def test_lost_work_goes_to_who_is_warm_and_not_to_its_worker_that_came_back_cold(
    assign: Assign,
) -> None:
    lost = loss("W3", "B B-0", url="http://w3")
    cold = member("W9", url="http://w3", metadata=COLD)
    w1 = member("W1", "A A-0", metadata=WARM)
    made = assign(snapshot("A A-0 B B-0", w1, cold, losses=(lost,)))
    assert made.members == {"W1": work("A A-0 B B-0"), "W9": work("")}
    assert made.parked == {}
