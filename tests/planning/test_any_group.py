"""Whatever a group has gone through: a plan can be made for it, and it adds up."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.events.model import GroupState
from fairlead.runtime.planning.changes import (
    Change,
    ConnectorDeleted,
    ConnectorScaled,
    ConnectorsPut,
    PlannedConfig,
    WorkerDrained,
    WorkerRemoved,
    WorkersJoined,
    make_change,
)
from fairlead.runtime.planning.compare import make_plan
from fairlead.runtime.planning.dry_run import DryRun, PlanError
from fairlead.runtime.planning.report import ExpectedDowntimes
from fairlead.runtime.planning.sandbox import built_in_assignors
from fairlead.runtime.simulation.invariants.group import consistent
from fairlead_tests.life import DEEDS, NUMBERS, OPENING, Life

ASSIGNORS = built_in_assignors()
DAYS = st.lists(
    st.tuples(
        st.sampled_from(sorted(DEEDS)), st.integers(0, NUMBERS - 1), st.integers(0, NUMBERS - 1)
    ),
    max_size=25,
)
PUT = st.builds(PlannedConfig, st.sampled_from("AG"), st.just({"n": "9"}), st.integers(1, 4))
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(WorkersJoined, st.integers(1, 3)),
    st.builds(WorkerDrained, st.sampled_from(("W0", "W1", "http://n0"))),
    st.builds(WorkerRemoved, st.sampled_from(("W0", "W1", "W2"))),
    st.lists(PUT, min_size=1, max_size=2).map(tuple).map(ConnectorsPut),
    st.builds(ConnectorScaled, st.sampled_from("AB"), st.integers(1, 6)),
    st.builds(ConnectorDeleted, st.sampled_from("AB")),
)


@given(DAYS, st.lists(CHANGES, min_size=1, max_size=3))
def test_a_plan_adds_up_and_leaves_the_group_as_it_is(
    days: list[tuple[str, int, int]], changes: list[Change]
) -> None:
    coordinator = Life().lead([*OPENING, *days])
    group, now_ms = coordinator.group, coordinator.now_ms
    end = group.end
    try:
        plan = make_plan(group, changes, ASSIGNORS, ExpectedDowntimes(), now_ms)
    except PlanError:
        return
    dry_run = DryRun(group, ASSIGNORS, now_ms)
    list(dry_run.settle())
    for change in changes:
        list(make_change(dry_run, change))
        consistent(dry_run.group)
    after = dry_run.group
    placed = sum(each.after.connectors + each.after.tasks for each in plan.workers if each.after)
    assert placed + len(plan.parked) + len(plan.unplaceable) == len(after.configured)
    assert plan.stays + len(plan.moves) + len(plan.starts) == placed
    assert after.state in {GroupState.STABLE, GroupState.EMPTY, GroupState.RECONCILING}
    coordinator.witness.see(group, [])
    assert group.end == end
