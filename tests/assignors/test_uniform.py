"""What the uniform assignor does, and where it differs from the default one."""

from hypothesis import given

from fairlead.actors.assignors.built_in.counting import assign_uniformly as assign
from fairlead.actors.messages.computing import Snapshot
from fairlead_tests.assignors.drawn import snapshots, takers
from fairlead_tests.assignors.snapshots import after, loss, member, outcome, snapshot


def test_connectors_and_tasks_count_alike() -> None:
    dealt = assign(snapshot("A A-0 B", member("W1"), member("W2")))
    assert dealt == outcome({"W1": "A B", "W2": "A-0"})


def test_who_has_work_keeps_it_as_far_as_the_levels_permit() -> None:
    w1, w2 = member("W1", "A A-0 A-1 B B-0"), member("W2")
    assert assign(snapshot("A A-0 A-1 B B-0", w1, w2)) == outcome(
        {"W1": "A A-0 A-1", "W2": "B B-0"}
    )


def test_a_departure_moves_nothing_that_runs() -> None:
    left = assign(snapshot("A A-0 A-1 B B-0", member("W1", "A A-0"), member("W3", "A-1 B")))
    assert left == outcome({"W1": "A A-0 B-0", "W3": "A-1 B"})


def test_lost_work_waits_and_nothing_else_moves() -> None:
    crashed = snapshot("A A-0 B B-0", member("W1", "A A-0"), losses=(loss("W2", "B B-0"),))
    assert assign(crashed) == outcome({"W1": "A A-0"}, parked="B B-0")


def test_lost_work_returns_with_who_lost_it() -> None:
    lost = (loss("W2", "B B-0", url="http://two"),)
    back = member("W9", url="http://two")
    returned = snapshot("A A-0 B B-0", member("W1", "A A-0"), back, losses=lost)
    assert assign(returned) == outcome({"W1": "A A-0", "W9": "B B-0"})


@given(snapshots())
def test_assigning_again_moves_nothing(group: Snapshot) -> None:
    made = assign(group)
    assert assign(after(group, made)) == made


@given(snapshots())
def test_of_everything_members_hold_within_one_of_each_other(group: Snapshot) -> None:
    made = assign(group)
    sizes = [len(made.members[each.member_id]) for each in takers(group)]
    assert max(sizes) - min(sizes) <= 1
