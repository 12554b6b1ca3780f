"""What the incremental assignor of Connect promises, whatever has happened to the group."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.assignors.classic.incremental import (
    Increments,
    LeaderMemory,
    Round,
    RoundTime,
    assign,
)
from fairlead.actors.assignors.classic.loads import (
    KINDS,
    Loads,
    deal_eagerly,
    find_surplus,
    hand_out,
    kind_of,
    of_kind,
    remove_loads,
    union,
)
from fairlead.events.model import CONNECTOR, Resource, Resources
from fairlead_tests.assignors.configured import resources_of
from fairlead_tests.conformance.rounds import Workers

WORKERS = ("W1", "W10", "W2", "W3")
MAX_DELAYS_MS = (0, 1, 1_000, 300_000)
TICK = {"advance_clock_ms": 1}
ITEMS = [Resource(connector, task) for connector in "ABC" for task in range(CONNECTOR, 3)]

loads = st.dictionaries(
    st.sampled_from(WORKERS), st.lists(st.sampled_from(ITEMS), unique=True), min_size=1
)
events = st.one_of(
    st.sampled_from(WORKERS).map(lambda worker: {"toggle": worker}),
    st.sampled_from([1, 40, 75_000, 300_000]).map(lambda ms: {"advance_clock_ms": ms}),
    st.tuples(st.sampled_from("ABC"), st.integers(-1, 4)).map(lambda pair: {"configure": pair}),
    st.just({"new_leader_assignor": True}),
    st.tuples(st.sampled_from(WORKERS), st.sampled_from(["A", "A-0", "B-2"])).map(
        lambda pair: {"claim": pair}
    ),
)
told_rounds = st.lists(
    st.tuples(st.lists(events, max_size=3), st.booleans(), st.booleans()), max_size=8
)


class Group(Workers):
    """Workers to whom things happen only where they can happen."""

    def meet(self, event: Any) -> None:
        match event:
            case {"toggle": worker} if worker not in self.loads:
                super().meet({"add_workers": [worker]})
            case {"toggle": worker}:
                super().meet({"remove_workers": [worker]} if len(self.loads) > 1 else TICK)
            case {"configure": (name, -1)}:
                self.task_counts.pop(name, None)
            case {"configure": (name, tasks)}:
                super().meet({"set_task_count": {name: tasks}})
            case {"claim": (worker, name)}:
                super().meet({"worker_claims": {worker: [name]}} if worker in self.loads else TICK)
            case _:
                super().meet(event)


def play(told: list[tuple[list[dict[str, Any]], bool, bool]], max_delay_ms: int) -> Group:
    """Return a group in the middle of anything."""
    group = Group({"connectors": {"A": 3, "B": 3}, "workers": ["W2"]}, max_delay_ms)
    for happens, is_delivered, is_mismatched in told:
        for event in happens:
            group.meet(event)
        group.rebalance(is_delivered=is_delivered, is_mismatched=is_mismatched)
    return group


def settle(group: Group) -> None:
    """Let time pass until nothing is left to do."""
    for _ in range(12):
        group.meet({"advance_clock_ms": group.max_delay_ms})
        increments = group.rebalance()
        if not changes(increments) and not increments.delay_ms and not group.memory.revoked:
            return
    raise AssertionError(f"no rest: {group.memory} {group.loads}")


def changes(increments: Increments) -> Resources:
    return union(increments.assigned) | union(increments.revoked)


def the_round(group: Group) -> Round:
    return Round(
        resources_of(group.task_counts),
        group.loads,
        group.generation + 1,
        group.generation,
        RoundTime(group.now_ms, group.max_delay_ms),
    )


groups = st.builds(play, told_rounds, st.sampled_from(MAX_DELAYS_MS))


@given(groups)
def test_a_group_comes_to_rest_with_all_of_its_work_run_once_and_level(group: Group) -> None:
    settle(group)
    configured = resources_of(group.task_counts)
    assert Counter(each for load in group.loads.values() for each in load) == Counter(configured)
    for tasks in KINDS:
        sizes = [len(load) for load in kind_of(group.loads, tasks=tasks).values()]
        assert max(sizes) - min(sizes) <= 1


@given(groups)
def test_at_rest_a_round_changes_nothing_and_remembers_nothing_new(group: Group) -> None:
    settle(group)
    before = group.memory
    increments = group.rebalance()
    assert (changes(increments), increments.delay_ms) == (frozenset(), 0)
    assert group.memory == replace(before, generation=before.generation + 1)


@given(groups)
def test_nothing_is_given_out_that_anybody_still_has_or_twice(group: Group) -> None:
    had = union(group.loads)
    given_out = Counter(
        resource for load in group.rebalance().assigned.values() for resource in load
    )
    assert not had & given_out.keys()
    assert set(given_out.values()) <= {1}
    assert given_out.keys() <= resources_of(group.task_counts)


@given(groups)
def test_only_what_a_worker_has_is_revoked_from_it(group: Group) -> None:
    _, increments = assign(group.memory, the_round(group))
    for worker, gone in increments.revoked.items():
        assert len(gone) == len(set(gone))
        assert set(gone) <= set(group.loads[worker])


@given(groups, st.randoms(use_true_random=False))
def test_the_same_round_has_the_same_result_in_whatever_order_it_is_told(
    group: Group, dice: random.Random
) -> None:
    told = the_round(group)
    shuffled = dict(dice.sample(list(told.reported.items()), len(told.reported)))
    assert assign(group.memory, replace(told, reported=shuffled)) == assign(group.memory, told)


def test_a_group_at_rest_has_as_much_each_as_if_all_were_dealt_anew() -> None:
    group = Group({"connectors": {"A": 3, "B": 4}, "workers": ["W1", "W2", "W3"]}, 0)
    settle(group)
    anew = deal_eagerly(resources_of(group.task_counts), group.loads.keys())
    for tasks in KINDS:
        assert sizes(group.loads, tasks=tasks) == sizes(anew, tasks=tasks)


def sizes(loads: Loads, *, tasks: bool) -> list[int]:
    return sorted(len(load) for load in kind_of(loads, tasks=tasks).values())


def test_whoever_leads_next_remembers_nothing_and_gives_lost_work_out_at_once() -> None:
    group = play([([{"toggle": "W1"}], True, False)], 300_000)
    settle(group)
    group.meet({"toggle": "W1"})
    assert group.rebalance().delay_ms == 300_000
    group.memory = LeaderMemory()
    increments = group.rebalance()
    assert (increments.delay_ms, union(group.loads)) == (
        0,
        resources_of(group.task_counts),
    )


def test_the_backoff_begins_anew_after_a_round_that_had_nothing_to_level() -> None:
    group = Workers({"connectors": {"A": 24}, "workers": ["W1"]}, 300_000)
    delays_ms = [
        group.play({"events": [event]}).delay_ms
        for event in (
            {"add_workers": ["W2"]},
            TICK,
            {"add_workers": ["W3"]},
            {"add_workers": ["W4"]},
            {"advance_clock_ms": 40},
            TICK,
            {"add_workers": ["W5"]},
            {"add_workers": ["W6"]},
        )
    ]
    assert delays_ms == [0, 0, 0, 40, 0, 0, 0, 40]


@given(loads, st.lists(st.sampled_from(ITEMS), unique=True))
def test_work_is_handed_out_as_by_sorting_the_workers_again_after_every_turn(
    loads: dict[str, list[Resource]], items: list[Resource]
) -> None:
    expected: dict[str, list[Resource]] = {worker: [] for worker in loads}
    for tasks in KINDS:
        counts = {worker: len(of_kind(load, tasks=tasks)) for worker, load in loads.items()}
        order = sorted(counts, key=lambda worker: (counts[worker], worker))
        remaining = of_kind(items, tasks=tasks)
        while remaining:
            lowest = [worker for worker in order if counts[worker] == counts[order[0]]]
            for worker in lowest[: len(remaining)]:
                expected[worker].append(remaining.pop(0))
                counts[worker] += 1
            order.sort(key=counts.__getitem__)
    assert hand_out(items, loads) == expected


@given(loads)
def test_who_gives_up_its_surplus_keeps_the_tail_of_what_it_has_and_no_more_than_its_part(
    loads: dict[str, list[Resource]],
) -> None:
    configured = frozenset(ITEMS)
    over = find_surplus(configured, loads)
    kept = remove_loads(loads, over)
    for tasks in KINDS:
        total = len(of_kind(configured, tasks=tasks))
        part, odd = divmod(total, len(loads))
        for worker, load in kind_of(kept, tasks=tasks).items():
            before = of_kind(loads[worker], tasks=tasks)
            assert list(load) == before[len(before) - len(load) :]
            assert len(load) == len(before) or len(load) in {part, part + 1}
        assert sum(len(load) > part for load in kind_of(kept, tasks=tasks).values()) <= odd
