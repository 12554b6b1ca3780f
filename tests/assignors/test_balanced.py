"""What the default assignor does in particular."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import pytest
from benchmarks.bench_assignors import (
    PLAIN,
    TAGGED,
    WEIGHTED,
    bytes_per_task,
    group,
    grown,
    settled,
)

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.messages.computing import Assignment, MemberView, Needs, Snapshot
from fairlead.events.model import NOTHING, Resource
from fairlead.events.placement import Abilities, encode_abilities
from fairlead_tests import TESTS
from fairlead_tests.assignors.snapshots import DEADLINE_MS, loss, member, one, snapshot, work


def worker(
    name: str,
    target: str = "",
    *tags: str,
    zone: str | None = None,
    capacity: int = 1,
    **orders: object,
) -> MemberView:
    said = encode_abilities(Abilities(capacity, frozenset(tags)))
    view = replace(member(name, target, metadata=said), worker=name, rack=zone)
    return replace(view, **orders)  # type: ignore[arg-type]


def shares(group: Snapshot, weights: Mapping[str, int] | None = None) -> dict[str, str]:
    """Return who gets what, with these weights, in the short form."""
    weighed = {one(word): weight for word, weight in (weights or {}).items()}
    made = assign(replace(group, weights=weighed))
    assert not made.parked
    assert not made.unplaceable
    return {name: " ".join(map(str, sorted(share))) for name, share in sorted(made.members.items())}


GPU = Needs(tags=frozenset({"gpu"}))


# Capacities.


def test_who_has_twice_the_capacity_gets_twice_as_much() -> None:
    group = snapshot("A-0 A-1 A-2 A-3 A-4 A-5", worker("W1", capacity=2), worker("W2"))
    assert shares(group) == {"W1": "A-0 A-2 A-3 A-5", "W2": "A-1 A-4"}


def test_a_larger_capacity_takes_work_over_from_who_is_fuller_for_it() -> None:
    group = snapshot("A-0 A-1 A-2 A-3", worker("W1", "A-0 A-1 A-2 A-3"), worker("W2", capacity=3))
    assert shares(group) == {"W1": "A-0", "W2": "A-1 A-2 A-3"}


def test_a_worker_that_is_not_warm_gets_nothing_unless_nobody_is() -> None:
    cold, warm = worker("W1", "A-0", capacity=0), worker("W2")
    assert shares(snapshot("A-0 A-1", cold, warm)) == {"W1": "", "W2": "A-0 A-1"}
    other = worker("W2", capacity=0)
    assert shares(snapshot("A-0 A-1", cold, other)) == {"W1": "A-0", "W2": "A-1"}


# Weights.


def test_heavy_work_counts_for_as_many_as_it_weighs() -> None:
    group = snapshot("A-0 A-1 A-2 A-3", worker("W1"), worker("W2"))
    assert shares(group, {"A-0": 3}) == {"W1": "A-0", "W2": "A-1 A-2 A-3"}


def test_who_is_ahead_gives_the_heaviest_that_does_not_turn_the_tables() -> None:
    group = snapshot("A-0 A-1 A-2 A-3", worker("W1", "A-0 A-1 A-2 A-3"), worker("W2"))
    assert shares(group, {"A-0": 4, "A-1": 3, "A-2": 2}) == {"W1": "A-1 A-2 A-3", "W2": "A-0"}


def test_where_all_would_turn_the_tables_the_lightest_goes() -> None:
    group = snapshot("A-0 A-1 B-0", worker("W1", "A-0 A-1"), worker("W2", "B-0"))
    assert shares(group, {"A-0": 5, "A-1": 4, "B-0": 3}) == {"W1": "A-0", "W2": "A-1 B-0"}


def test_one_giant_makes_nobody_move() -> None:
    small = [f"B-{number}" for number in range(20)]
    group = snapshot(
        " ".join(["A-0", *small]), worker("W1", " ".join(["A-0", *small[:10]])),
        worker("W2", " ".join(small[10:])),
    )  # fmt: skip
    made = assign(replace(group, weights={one("A-0"): 30}))
    assert {each: view.target for each, view in group.members.items()} == made.members


def test_weights_of_tasks_do_not_count_among_connectors() -> None:
    group = snapshot("A B A-0 B-0", worker("W1"), worker("W2"))
    assert shares(group, {"A-0": 9}) == {"W1": "A A-0", "W2": "B B-0"}


def test_where_all_weighs_a_lot_it_is_as_if_it_weighed_nothing_special() -> None:
    group = snapshot("A-0 A-1 A-2 A-3", worker("W1", "A-0 A-1 A-2 A-3"), worker("W2"))
    heavy = {f"A-{task}": 1_000 for task in range(4)}
    assert shares(group, heavy) == shares(group) == {"W1": "A-0 A-1", "W2": "A-2 A-3"}


def test_where_all_weighs_the_same_it_is_as_level_as_demands_permit() -> None:
    ready, other = worker("W0", "", "gpu", capacity=2), worker("W2", capacity=2)
    group = snapshot("A-0 B-0", worker("W1", "A-0 B-0", "gpu"), ready, other)
    group = replace(group, needs={"B": GPU})
    heavy = {"A-0": 5, "B-0": 5}
    assert shares(group, heavy) == shares(group) == {"W0": "B-0", "W1": "", "W2": "A-0"}


# Spread.


def test_free_work_goes_where_fewest_of_its_connector_are_in_the_zone() -> None:
    w1, w2 = worker("W1", "A-0 B-0", zone="a"), worker("W2", "C-0 C-1", zone="b")
    assert shares(snapshot("A-0 A-1 B-0 C-0 C-1", w1, w2)) == {"W1": "A-0 B-0", "W2": "A-1 C-0 C-1"}


def test_free_work_goes_where_fewest_of_its_connector_are_on_the_worker() -> None:
    w1, w2 = worker("W1", "A-0 B-0"), worker("W2", "C-0 C-1")
    assert shares(snapshot("A-0 A-1 B-0 C-0 C-1", w1, w2)) == {"W1": "A-0 B-0", "W2": "A-1 C-0 C-1"}


def test_the_zone_counts_before_the_worker() -> None:
    w1, w2 = worker("W1", "A-0 A-1", zone="a"), worker("W2", "B-0 B-1", zone="a")
    w3 = worker("W3", "A-2 B-2", zone="b")
    group = snapshot("A-0 A-1 A-2 A-3 B-0 B-1 B-2", w1, w2, w3)
    assert shares(group) == {"W1": "A-0 A-1", "W2": "B-0 B-1", "W3": "A-2 A-3 B-2"}


def test_balance_counts_before_the_spread() -> None:
    w1, w2 = worker("W1", "A-0 A-1", zone="a"), worker("W2", "B-0 B-1 B-2", zone="b")
    assert shares(snapshot("A-0 A-1 A-2 B-0 B-1 B-2", w1, w2))["W1"] == "A-0 A-1 A-2"


def test_the_spread_alone_moves_nothing() -> None:
    w1, w2 = worker("W1", "A-0 A-1", zone="a"), worker("W2", "B-0 B-1", zone="b")
    assert shares(snapshot("A-0 A-1 B-0 B-1", w1, w2)) == {"W1": "A-0 A-1", "W2": "B-0 B-1"}


def test_who_has_to_give_gives_what_is_furthest_above_its_even_part_in_the_zone() -> None:
    w1, w2 = worker("W1", "A-0 B-0 C-0", zone="a"), worker("W2", "A-1 B-1 D-0", zone="a")
    w3 = worker("W3", "C-1 D-1 B-2", zone="b")
    group = snapshot("A-0 A-1 B-0 B-1 B-2 C-0 C-1 D-0 D-1", w1, w2, w3, worker("W4", zone="b"))
    assert shares(group) == {"W1": "A-0 B-0 C-0", "W2": "B-1 D-0", "W3": "B-2 C-1", "W4": "A-1 D-1"}


def test_who_has_to_give_gives_what_it_has_most_of_and_of_that_the_last() -> None:
    everything = "A-0 A-1 B-0 B-1 B-2 C-0"
    group = snapshot(everything, worker("W1", everything), worker("W2"))
    assert shares(group) == {"W1": "A-0 B-0 C-0", "W2": "A-1 B-1 B-2"}


def test_what_a_cordoned_worker_keeps_counts_for_the_spread_of_its_zone() -> None:
    w1 = worker("W1", "A-0", zone="a", cordoned=True)
    group = snapshot("A-0 A-1", w1, worker("W2", zone="a"), worker("W3", zone="b"))
    assert shares(group) == {"W1": "A-0", "W2": "", "W3": "A-1"}


def test_new_work_is_dealt_to_the_zones_in_turns() -> None:
    crew = [worker(f"W{number}", zone="aab"[number % 3]) for number in range(6)]
    made = shares(snapshot("A-0 A-1 A-2", *crew))
    assert made == {"W0": "A-0", "W1": "A-2", "W2": "A-1", "W3": "", "W4": "", "W5": ""}


# Names.


def test_the_names_of_workers_settle_what_nothing_else_does() -> None:
    later = replace(worker("W1"), member_id="m2")
    earlier = replace(worker("W2"), member_id="m1")
    assert shares(snapshot("A-0", later, earlier)) == {"m1": "", "m2": "A-0"}


# Demands.


def test_a_chain_of_gifts_relieves_who_can_give_to_nobody_that_needs_it() -> None:
    w1, w2 = worker("W1", "A-0 A-1 A-2", "gpu"), worker("W2", "B-0 B-1", "gpu")
    group = snapshot("A-0 A-1 A-2 B-0 B-1", w1, w2, worker("W3"))
    gpu = replace(group, needs={"A": GPU})
    assert shares(gpu) == {"W1": "A-0 A-1", "W2": "A-2 B-0", "W3": "B-1"}


def test_what_only_few_may_run_makes_room_where_it_has_to_go() -> None:
    w1, w2 = worker("W1", "B-0 B-1", "gpu"), worker("W2", "B-2 B-3")
    group = snapshot("A-0 A-1 B-0 B-1 B-2 B-3", w1, w2)
    assert shares(replace(group, needs={"A": GPU})) == {"W1": "A-0 A-1 B-0", "W2": "B-1 B-2 B-3"}


def test_work_stays_at_home_where_another_can_take_the_odd_one() -> None:
    pins = {one("A-0"): ("W2",), one("A-4"): ("W0",), one("A-5"): ("W0", "W1")}
    w0, w1 = worker("W0", "A-0 A-4 A-5"), worker("W1", "A-2 A-3", capacity=3)
    group = snapshot("A-0 A-1 A-2 A-3 A-4 A-5", w0, w1, worker("W2", capacity=2))
    assert shares(replace(group, pins=pins)) == {
        "W0": "A-4", "W1": "A-2 A-3 A-5", "W2": "A-0 A-1",
    }  # fmt: skip


def test_demands_hold_for_weighed_work_and_bound_who_can_relieve_whom() -> None:
    w1, w2 = worker("W1", "A-0 A-1 A-2 A-3", "gpu"), worker("W2", "", "gpu")
    group = replace(snapshot("A-0 A-1 A-2 A-3", w1, w2, worker("W3")), needs={"A": GPU})
    assert shares(group, {"A-0": 3}) == {"W1": "A-1 A-2 A-3", "W2": "A-0", "W3": ""}


def test_a_cordoned_worker_gives_up_what_it_may_not_run() -> None:
    w1 = worker("W1", "A-0 B-0", cordoned=True)
    group = replace(snapshot("A-0 B-0", w1, worker("W2", "", "gpu")), needs={"A": GPU})
    assert assign(group) == Assignment({"W1": work("B-0"), "W2": work("A-0")})


def test_what_nobody_may_run_is_unplaceable_and_all_else_is_levelled() -> None:
    group = snapshot("A-0 B-0 B-1", worker("W1", "A-0 B-0 B-1"), worker("W2"))
    assert assign(replace(group, needs={"A": GPU})) == Assignment(
        {"W1": work("B-0"), "W2": work("B-1")},
        unplaceable={one("A-0"): "needs tag gpu: no worker that takes work meets this"},
    )


def test_a_demand_that_everybody_meets_is_none() -> None:
    w1, w2 = worker("W1", "A-0 A-1", zone="a"), worker("W2", zone="a")
    asked = replace(snapshot("A-0 A-1", w1, w2), needs={"A": Needs(zones=frozenset("a"))})
    assert shares(asked) == {"W1": "A-0", "W2": "A-1"}


def test_lost_work_with_a_demand_waits_as_well() -> None:
    lost = (loss("W2", "A-0", url="http://two"),)
    group = replace(snapshot("A-0 B-0", worker("W1", "B-0"), losses=lost), needs={"A": GPU})
    assert assign(group) == Assignment({"W1": work("B-0")}, {one("A-0"): DEADLINE_MS})


# Chance.


def test_the_order_in_which_sets_happen_to_be_does_not_matter() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-m", "fairlead_tests.assignors.entangled"],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(TESTS)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in range(1, 5)
    }  # fmt: skip
    assert len(told) == 1
    assert "W5" in told.pop()


# Size.


@pytest.mark.parametrize("case", [PLAIN, WEIGHTED, TAGGED])
def test_assigning_takes_at_most_200_bytes_per_task_beside_its_input(case: str) -> None:
    full = group(100, case)
    assert bytes_per_task(full) <= 200
    assert bytes_per_task(grown(settled(full), case)) <= 200


@pytest.mark.parametrize("pins", [1, 3])
def test_many_different_pins_are_no_burden(pins: int) -> None:
    names = [f"W{number:03}" for number in range(200)]
    tasks = [Resource("A", task) for task in range(2_000)]
    asked = {
        task: tuple(names[(task.task * 7 + place * 31) % 200] for place in range(pins))
        for task in tasks
    }
    crew = [replace(worker(name), target=NOTHING, owned=NOTHING) for name in names]
    made = assign(replace(snapshot(frozenset(tasks), *crew), pins=asked))
    assert {len(share) for share in made.members.values()} == {10}
    assert all(at in asked[task] for at, share in made.members.items() for task in share)
