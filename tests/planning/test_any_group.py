"""Whatever a group has gone through: a plan can be made for it, and it adds up."""

from hypothesis import given, settings
from hypothesis import strategies as st
from invariants import consistent
from life import DEEDS, NUMBERS, OPENING, Life

from fairlead.actors.planning.changes import (
    AddWorkers,
    Change,
    DeleteConnector,
    DrainWorker,
    PutConnector,
    RemoveWorker,
    Scale,
)
from fairlead.actors.planning.rehearsal import CannotPlan, Rehearsal
from fairlead.actors.planning.rehearse import rehearse
from fairlead.events.model import GroupState
from fairlead.projections.moves import Measured
from fairlead.runtime.planning.assignors import built_in_assignors
from fairlead.runtime.planning.make import make_plan

ASSIGNORS = built_in_assignors()
DAYS = st.lists(
    st.tuples(
        st.sampled_from(sorted(DEEDS)), st.integers(0, NUMBERS - 1), st.integers(0, NUMBERS - 1)
    ),
    max_size=25,
)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(AddWorkers, st.integers(1, 3)),
    st.builds(DrainWorker, st.sampled_from(("W0", "W1", "http://n0"))),
    st.builds(RemoveWorker, st.sampled_from(("W0", "W1", "W2"))),
    st.builds(PutConnector, st.sampled_from("AG"), st.just({"n": "9"}), st.integers(1, 4)),
    st.builds(Scale, st.sampled_from("AB"), st.integers(1, 6)),
    st.builds(DeleteConnector, st.sampled_from("AB")),
)


@settings(max_examples=60, deadline=None)
@given(DAYS, st.lists(CHANGES, min_size=1, max_size=3))
def test_a_plan_adds_up_and_leaves_the_group_as_it_is(
    days: list[tuple[str, int, int]], changes: list[Change]
) -> None:
    coordinator = Life().lead([*OPENING, *days])
    group, now_ms = coordinator.group, coordinator.now_ms
    end = group.end
    try:
        plan = make_plan(group, changes, ASSIGNORS, Measured({}, None), now_ms)
    except CannotPlan:
        return
    rehearsal = Rehearsal(group, ASSIGNORS, now_ms)
    list(rehearsal.rest())
    for change in changes:
        list(rehearse(rehearsal, change))
        consistent(rehearsal.group)
    after = rehearsal.group
    placed = sum(each.after.connectors + each.after.tasks for each in plan.workers if each.after)
    assert placed + len(plan.parked) + len(plan.unplaceable) == len(after.configured)
    assert plan.stays + len(plan.moves) + len(plan.starts) == placed
    assert after.state in {GroupState.STABLE, GroupState.EMPTY, GroupState.RECONCILING}
    coordinator.witness.see(group, [])
    assert group.end == end
