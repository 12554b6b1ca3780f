"""What the simple cooperative assignor does, and where it differs from the deferred one."""

from dataclasses import replace

from hypothesis import given

from fairlead.actors.assignors.built_in import counting
from fairlead.actors.assignors.built_in.counting import assign_at_once as assign
from fairlead.actors.messages.computing import Snapshot
from fairlead_tests.assignors.drawn import snapshots
from fairlead_tests.assignors.snapshots import (
    DEADLINE_MS,
    after,
    loss,
    member,
    outcome,
    snapshot,
    work,
)


def test_lost_work_goes_to_others_at_once_and_nothing_else_moves() -> None:
    crashed = snapshot("A A-0 B B-0", member("W1", "A A-0"), losses=(loss("W2", "B B-0"),))
    assert assign(crashed) == outcome({"W1": "A A-0 B B-0"})


def test_what_another_assignor_parked_goes_to_others_at_once() -> None:
    parked = dict.fromkeys(work("B B-0"), DEADLINE_MS)
    lost = (loss("W2", "B B-0"),)
    group = snapshot("A A-0 B B-0", member("W1", "A A-0"), losses=lost, parked=parked)
    assert assign(group) == outcome({"W1": "A A-0 B B-0"})


def test_who_returns_gets_a_level_share_and_not_what_it_had() -> None:
    lost = (loss("W2", "B-0 B-1", url="http://two"),)
    back = member("W9", url="http://two")
    returned = snapshot("A-0 B-0 B-1", member("W1", "A-0 B-0"), back, losses=lost)
    assert assign(returned) == outcome({"W1": "A-0 B-0", "W9": "B-1"})


def test_a_newcomer_gets_the_tail_of_the_list_in_one_step() -> None:
    everything = "A A-0 A-1 B B-0"
    joined = assign(snapshot(everything, member("W1", everything), member("W2")))
    assert joined == outcome({"W1": "A A-0 A-1", "W2": "B B-0"})


@given(snapshots())
def test_where_nothing_was_lost_it_does_as_the_deferred_one(group: Snapshot) -> None:
    whole = replace(group, losses=(), parked={})
    assert assign(whole) == counting.assign_deferred(whole)


@given(snapshots())
def test_nothing_is_parked_and_assigning_again_moves_nothing(group: Snapshot) -> None:
    made = assign(group)
    assert made.parked == {}
    assert assign(after(group, made)) == made


# The examples of the proposal, Design I.


def test_example_a_member_joins() -> None:
    has = (member("A", "T-1 T-4"), member("B", "T-2"), member("C", "T-3"))
    joined = snapshot("T-1 T-2 T-3 T-4", *has, member("D"))
    assert assign(joined) == outcome({"A": "T-1", "B": "T-2", "C": "T-3", "D": "T-4"})


def test_example_a_member_leaves() -> None:
    has = (member("A", "T-1"), member("B", "T-2"), member("C", "T-3"))
    left = snapshot("T-1 T-2 T-3 T-4", *has, losses=(loss("D", "T-4"),))
    assert assign(left) == outcome({"A": "T-1 T-4", "B": "T-2", "C": "T-3"})
