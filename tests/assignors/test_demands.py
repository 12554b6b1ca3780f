"""Work that demands tags or zones, with those assignors that deal out what is left."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.assignors.built_in import balanced, counting, incremental
from fairlead.actors.assignors.demands import Demand, demand_of
from fairlead.actors.messages.computing import ANY_WORK, Assignment, MemberView, Needs, Snapshot
from fairlead.events.placement import Abilities, encode_abilities
from fairlead_tests.assignors.drawn import ordered
from fairlead_tests.assignors.snapshots import member, one, snapshot, work

Assign = Callable[[Snapshot], Assignment]
GPU = Needs(tags=frozenset({"gpu"}))
IN_A = Needs(zones=frozenset({"a"}))

LEVEL = {
    counting.UNIFORM: counting.assign_uniformly,
    counting.RANGE: counting.assign_ranges,
    counting.DEFERRED: counting.assign_deferred,
    counting.SIMPLE: counting.assign_at_once,
    counting.EAGER: counting.assign_eagerly,
    incremental.NAME: incremental.assign,
}
EVERY = {**LEVEL, balanced.NAME: balanced.assign}
each_assignor = pytest.mark.parametrize("assign", LEVEL.values(), ids=LEVEL)
whichever = pytest.mark.parametrize("assign", EVERY.values(), ids=EVERY)


def worker(
    member_id: str, target: str = "", *tags: str, zone: str | None = None, **orders: object
) -> MemberView:
    said = encode_abilities(Abilities(1, frozenset(tags)))
    view = replace(member(member_id, target, metadata=said), worker=member_id, rack=zone)
    return replace(view, **orders)  # type: ignore[arg-type]


@each_assignor
def test_work_that_needs_tags_goes_to_who_has_all_of_them(assign: Assign) -> None:
    group = snapshot("A A-0 B", worker("W1", "A A-0"), worker("W2", "", "gpu"), worker("W3"))
    made = assign(replace(group, needs={"A": GPU}))
    assert made.members["W2"] >= work("A A-0")
    both = Needs(tags=frozenset({"gpu", "ssd"}))
    reason = "needs tag gpu and tag ssd: no worker that takes work meets this"
    made = assign(replace(group, needs={"A": both}))
    assert made.unplaceable == {one("A"): reason, one("A-0"): reason}


@whichever
def test_who_takes_only_work_with_tags_is_given_no_other(assign: Assign) -> None:
    only = encode_abilities(Abilities(1, frozenset({"gpu"}), tagged_only=True))
    picky = replace(worker("W1", "B"), metadata=only)
    group = snapshot("A A-0 B B-0 C", picky, worker("W2"))
    made = assign(replace(group, needs={"A": GPU, "B": ANY_WORK, "C": ANY_WORK}))
    assert made == Assignment({"W1": work("A A-0"), "W2": work("B B-0 C")})
    alone = snapshot("B", picky)
    reason = "needs a worker that takes work without tags: no worker that takes work meets this"
    assert assign(replace(alone, needs={"B": ANY_WORK})).unplaceable == {one("B"): reason}


@each_assignor
def test_work_that_needs_zones_goes_to_who_is_in_any_of_them(assign: Assign) -> None:
    group = snapshot("A B", worker("W1", "A B"), worker("W2", zone="a"), worker("W3", zone="c"))
    made = assign(replace(group, needs={"A": Needs(zones=frozenset({"a", "b"}))}))
    assert one("A") in made.members["W2"]
    made = assign(replace(group, needs={"A": Needs(zones=frozenset({"b", "d"}))}))
    reason = "needs zone b or d: no worker that takes work meets this"
    assert made.unplaceable == {one("A"): reason}


@each_assignor
def test_pins_and_needs_have_to_be_met_by_the_same_worker(assign: Assign) -> None:
    group = snapshot("A", worker("W1", "", "gpu"), worker("W2", "A"))
    asked = replace(group, needs={"A": GPU}, pins={one("A"): ("W2",)})
    reason = "needs tag gpu, pinned to W2: no worker that takes work meets this"
    assert assign(asked).unplaceable == {one("A"): reason}
    assert one("A") in assign(replace(asked, pins={one("A"): ("W1",)})).members["W1"]


@each_assignor
def test_work_stays_with_its_owner_if_that_one_meets_what_it_needs(assign: Assign) -> None:
    group = snapshot("A-0 A-1 A-2", worker("W1", "A-0 A-1", "gpu"), worker("W2", "", "gpu"))
    made = assign(replace(group, needs={"A": GPU}))
    assert made == Assignment({"W1": work("A-0 A-1"), "W2": work("A-2")})


@each_assignor
def test_work_of_several_demands_goes_to_the_least_loaded_that_meets_each(assign: Assign) -> None:
    w1, w2 = worker("W1", "", "gpu", zone="a"), worker("W2", "", "gpu")
    group = snapshot("A-0 A-1 B-0 B-1", w1, w2, worker("W3", "", zone="a"))
    made = assign(replace(group, needs={"A": GPU, "B": IN_A}))
    assert made == Assignment({"W1": work("A-0 B-1"), "W2": work("A-1"), "W3": work("B-0")})


@each_assignor
def test_a_cordoned_worker_gives_up_what_it_does_not_meet(assign: Assign) -> None:
    group = snapshot("A B", worker("W1", "A B", cordoned=True), worker("W2", "", "gpu"))
    made = assign(replace(group, needs={"A": GPU}))
    assert made == Assignment({"W1": work("B"), "W2": work("A")})


@each_assignor
def test_who_meets_a_need_but_takes_no_work_is_nobody(assign: Assign) -> None:
    cordoned, cold = worker("W1", "", "gpu", cordoned=True), worker("W2", "", "gpu")
    cold = replace(cold, metadata=encode_abilities(Abilities(0, frozenset({"gpu"}))))
    group = replace(snapshot("A", cordoned, cold, worker("W3")), needs={"A": GPU})
    reason = "needs tag gpu: no worker that takes work meets this"
    assert assign(group).unplaceable == {one("A"): reason}


def demanding(drawn: Snapshot, seed: int) -> Snapshot:
    """Return a group with work that needs tags or zones, and workers that have some."""
    dice = Random(seed)

    def labels() -> frozenset[str]:
        return frozenset(dice.sample("ab", dice.randrange(3)))

    members = {
        member_id: replace(
            drawn.members[member_id],
            rack=dice.choice([None, "a", "b"]),
            metadata=encode_abilities(Abilities(dice.randrange(3), labels())),
        )
        for member_id in sorted(drawn.members)
    }
    needs = {each: Needs(labels(), labels()) for each in dice.sample("ABC", dice.randrange(4))}
    return replace(drawn, members=members, needs=needs)


@given(group=st.builds(demanding, ordered(), st.integers(0, 999)))
def test_nobody_is_given_what_it_does_not_meet_and_all_has_one_place(group: Snapshot) -> None:
    for name, assign in EVERY.items():
        made = assign(group)
        places = [each for share in made.members.values() for each in share]
        places += [*made.parked, *made.unplaceable]
        assert sorted(places) == sorted(group.configured), name
        for member_id, share in made.members.items():
            view = group.members[member_id]
            assert all(demand_of(group, each).is_met(view) for each in share), name


@whichever
def test_only_who_is_named_is_asked_and_of_workers_alike_only_one(
    assign: Assign, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    is_met = Demand.is_met

    def noted(demand: Demand, view: MemberView) -> bool:
        asked.append(view.member_id)
        return is_met(demand, view)

    crew = [worker(f"W{n}", "", *(["gpu"] if n < 3 else [])) for n in range(9)]
    group = replace(snapshot("A B", *crew), needs={"A": GPU}, pins={one("B"): ("W7", "W8")})
    monkeypatch.setattr(Demand, "is_met", noted)
    made = assign(group)
    assert (made.members["W0"], made.members["W7"]) == (work("A"), work("B"))
    assert sorted(asked) == ["W0", "W3", "W7", "W8"]


def test_a_demand_names_twenty_of_a_kind_at_most() -> None:
    names = tuple(f"w{n:02}" for n in range(30))
    demand = Demand(names, Needs(frozenset(names), frozenset({"a", "b"})))
    told = names[:20]
    assert str(demand) == (
        f"needs {' and '.join(f'tag {each}' for each in told)} and 10 more and zone a or b,"
        f" pinned to {', '.join(told)} and 10 more"
    )
    assert (
        str(Demand((), Needs(zones=frozenset(names))))
        == f"needs zone {' or '.join(told)} or 10 more"
    )
