"""At rest the declarative assignors leave each worker with as much as Connect's own does.

Where the classic one needs rounds of revoking and giving out, these have a target; who has
which resource may differ, how many each worker has of each kind may not.
"""
# pyright: basic

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.assignors.built_in import balanced, counting, incremental
from fairlead.actors.messages.computing import Assignment, Snapshot
from fairlead.events.model import CONNECTOR, Resource
from fairlead_tests.assignors.configured import resources_of
from fairlead_tests.assignors.snapshots import after, member, snapshot
from fairlead_tests.conformance.assignor_cases import read_assignor_cases
from fairlead_tests.conformance.chosen import conformance_dir
from fairlead_tests.conformance.rounds import Workers, counts

LONGEST_MS = 300_000
TURNS = 20
WORKERS = ("W1", "W2", "W3", "W10")
ITEMS = [Resource(connector, task) for connector in "ABC" for task in range(CONNECTOR, 4)]
Sizes = tuple[list[int], list[int]]


def in_steps(group: Snapshot) -> Assignment:
    """Return what many rounds of the incremental assignor lead to, two moves in each."""
    made = incremental.assign(group, 2, 1_000)
    while made.again_at_ms:
        group = after(group, made)
        made = incremental.assign(group, 2, 1_000)
    return made


each_assignor = pytest.mark.parametrize(
    "assign",
    [
        balanced.assign,
        counting.assign_deferred,
        counting.assign_at_once,
        in_steps,
        counting.assign_eagerly,
    ],
    ids=[balanced.NAME, counting.DEFERRED, counting.SIMPLE, incremental.NAME, counting.EAGER],
)


def sizes_of(shares: Iterable[Iterable[Resource]]) -> Sizes:
    """Return how many connectors and how many tasks the workers have, each kind sorted."""
    connectors, tasks = zip(*map(counts, shares), strict=True)
    return sorted(connectors), sorted(tasks)


def as_seen(workers: Workers) -> Snapshot:
    """Return the workers as an assignor with a target sees them."""
    configured = resources_of(workers.task_counts)
    members = (member(worker, frozenset(load)) for worker, load in workers.loads.items())
    return snapshot(configured, *members)


def at_rest(workers: Workers) -> Sizes:
    """Let the classic assignor go on until nobody has anything to give up, take, or wait for."""
    for _ in range(TURNS):
        workers.meet({"advance_clock_ms": LONGEST_MS})
        made = workers.rebalance()
        idle = not any((*made.assigned.values(), *made.revoked.values()))
        if idle and not made.delay_ms and not workers.memory.revoked:
            return sizes_of(workers.loads.values())
    raise AssertionError(f"no rest: {workers.memory} {workers.loads}")


@each_assignor
def test_after_the_rounds_of_each_case_the_workers_end_up_with_as_much(
    assign: Callable[[Snapshot], Assignment], request: pytest.FixtureRequest
) -> None:
    folder = conformance_dir(request.config)
    cases = [each for each in read_assignor_cases(folder) if each.section == "incremental_rounds"]
    if not cases:
        pytest.skip(f"{folder} holds no rounds")
    for case in cases:
        workers = Workers(case.told["initial"], case.told["max_delay_ms"])
        for told in case.told["rounds"]:
            workers.play(told)
        if workers.loads:
            shares = assign(as_seen(workers)).members.values()
            assert sizes_of(shares) == at_rest(workers), case.case_id


@each_assignor
@given(
    loads=st.dictionaries(
        st.sampled_from(WORKERS), st.lists(st.sampled_from(ITEMS), unique=True), min_size=1
    ),
    task_counts=st.dictionaries(st.sampled_from("ABC"), st.integers(0, 6)),
)
def test_whoever_has_what_the_workers_end_up_with_as_much(
    assign: Callable[[Snapshot], Assignment],
    loads: dict[str, list[Resource]],
    task_counts: dict[str, int],
) -> None:
    initial: dict[str, Any] = {"connectors": task_counts, "workers": list(loads)}
    workers = Workers(initial, LONGEST_MS)
    configured = resources_of(task_counts)
    workers.loads = {
        worker: [each for each in load if each in configured] for worker, load in loads.items()
    }
    shares = assign(as_seen(workers)).members.values()
    assert sizes_of(shares) == at_rest(workers)
