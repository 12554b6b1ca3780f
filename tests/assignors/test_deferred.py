"""What the assignors that defer do in the cases that the protocol names."""

from dataclasses import replace

import pytest

from fairlead.actors.assignors.built_in import counting
from fairlead.actors.messages.computing import Assignment, MemberView
from fairlead.events.placement import COLD, WARM
from fairlead_tests.assignors.deferring import Assign, each_assignor
from fairlead_tests.assignors.snapshots import (
    DEADLINE_MS,
    NOW_MS,
    loss,
    member,
    one,
    outcome,
    snapshot,
    work,
)


@each_assignor
def test_the_first_member_gets_everything(assign: Assign) -> None:
    given_to_one = assign(snapshot("A A-0 A-1 B B-0", member("W1")))
    assert given_to_one == outcome({"W1": "A A-0 A-1 B B-0"})


def test_a_newcomer_gets_the_tail_of_the_list_in_one_step() -> None:
    everything = "A A-0 A-1 B B-0"
    joined = counting.assign_deferred(snapshot(everything, member("W1", everything), member("W2")))
    assert joined == outcome({"W1": "A A-0 A-1", "W2": "B B-0"})


@each_assignor
def test_work_of_a_member_that_left_is_dealt_and_nothing_else_moves(assign: Assign) -> None:
    left = assign(snapshot("A A-0 A-1 B B-0", member("W1", "A A-0"), member("W3", "A-1")))
    assert left == outcome({"W1": "A A-0 B-0", "W3": "A-1 B"})


@each_assignor
def test_without_members_everything_is_unplaceable(assign: Assign) -> None:
    lost = (loss("W1", "A A-0"),)
    nobody = assign(snapshot("A A-0", losses=lost))
    assert nobody == Assignment(
        members={}, unplaceable={one("A"): "no members", one("A-0"): "no members"}
    )


@each_assignor
def test_without_work_members_have_empty_entries(assign: Assign) -> None:
    assert assign(snapshot("", member("W1", "A A-0"))) == outcome({"W1": ""})


@each_assignor
def test_a_crash_parks_what_was_lost_and_moves_nothing(assign: Assign) -> None:
    crashed = snapshot("A A-0 B B-0", member("W1", "A A-0"), losses=(loss("W2", "B B-0"),))
    assert assign(crashed) == outcome({"W1": "A A-0"}, parked="B B-0")


@each_assignor
def test_new_work_is_dealt_while_lost_work_is_parked(assign: Assign) -> None:
    crashed = snapshot("A A-0 B B-0 C C-0", member("W1", "A A-0"), losses=(loss("W2", "B B-0"),))
    assert assign(crashed) == outcome({"W1": "A A-0 C C-0"}, parked="B B-0")


@each_assignor
def test_a_newcomer_gets_none_of_the_parked_work_but_a_share_of_what_runs(assign: Assign) -> None:
    lost = (loss("W2", "B B-0 B-1", url="http://two"),)
    w1 = member("W1", "A A-0 A-1")
    joined = snapshot("A A-0 A-1 B B-0 B-1", w1, member("W3", url="http://three"), losses=lost)
    assert assign(joined) == outcome({"W1": "A A-0", "W3": "A-1"}, parked="B B-0 B-1")


@each_assignor
@pytest.mark.parametrize(
    "back",
    [
        member("W2", url="http://elsewhere"),
        member("W9", url="http://two"),
        member("W9", instance_id="two", url="http://elsewhere"),
    ],
    ids=["member id", "url", "instance id"],
)
def test_who_returns_gets_its_own_back_before_any_newcomer(
    assign: Assign, back: MemberView
) -> None:
    lost = (loss("W2", "B B-0", instance_id="two", url="http://two"),)
    parked = dict.fromkeys(work("B B-0"), DEADLINE_MS)
    w1, w0 = member("W1", "A A-0", url="http://one"), member("W0", url="http://zero")
    returned = snapshot("A A-0 B B-0", w0, w1, back, losses=lost, parked=parked)
    assert assign(returned) == outcome({"W0": "", "W1": "A A-0", back.member_id: "B B-0"})


@each_assignor
def test_who_returns_keeps_of_its_own_what_the_balance_permits(assign: Assign) -> None:
    lost = (loss("W2", "B-0 B-1 B-2", url="http://two"),)
    back = member("W9", url="http://two")
    returned = snapshot("A-0 B-0 B-1 B-2", member("W1", "A-0"), back, losses=lost)
    assert assign(returned) == outcome({"W1": "A-0 B-2", "W9": "B-0 B-1"})


@each_assignor
def test_no_instance_id_and_no_url_match_nobody(assign: Assign) -> None:
    crashed = snapshot("A B", member("W1", "A"), member("W9"), losses=(loss("W2", "B"),))
    assert assign(crashed) == outcome({"W1": "A", "W9": ""}, parked="B")


@each_assignor
def test_lost_work_does_not_wait_for_a_worker_that_returned_cold_while_another_is_warm(
    assign: Assign,
) -> None:
    lost = (loss("W2", "B", url="http://two"), loss("W3", "C", url="http://three"))
    back = member("W9", url="http://two", metadata=COLD)
    cold = snapshot("A B C", member("W1", "A"), back, losses=lost)
    assert assign(cold) == outcome({"W1": "A B", "W9": ""}, parked="C")
    warm = replace(cold, members={**cold.members, "W9": replace(back, metadata=WARM)})
    assert assign(warm) == outcome({"W1": "A", "W9": "B"}, parked="C")


@each_assignor
def test_lost_work_that_returned_cold_goes_on_waiting_where_no_warm_worker_may_run_it(
    assign: Assign,
) -> None:
    lost = (loss("W2", "B C", url="http://two"),)
    back = member("W9", url="http://two", metadata=COLD)
    cold = snapshot("A B C", member("W1", "A"), back, losses=lost)
    pinned = replace(cold, pins={one("B"): ("http://two",)})
    assert assign(pinned) == outcome({"W1": "A C", "W9": ""}, parked="B")


@each_assignor
def test_where_nobody_is_warm_lost_work_waits_for_nobody_warm(assign: Assign) -> None:
    lost = (loss("W2", "B", url="http://two"),)
    back = member("W9", url="http://two", metadata=COLD)
    cold = snapshot("A B", member("W1", "A", metadata=COLD), back, losses=lost)
    assert assign(cold) == outcome({"W1": "A", "W9": "B"})


@each_assignor
def test_who_returned_cold_is_given_its_share_as_a_newcomer_once_it_is_warm(
    assign: Assign,
) -> None:
    had = "A A-0 A-1 B B-0 B-1"
    w1 = member("W1", had)
    warm = snapshot(had, w1, member("W9", url="http://two", metadata=WARM))
    shares = assign(warm).members
    assert sorted(map(len, shares.values())) == [3, 3]
    assert shares["W1"] < w1.target, "only what levels the two moves"


@each_assignor
def test_what_has_fired_is_dealt_and_not_parked_again(assign: Assign) -> None:
    parked = dict.fromkeys(work("B B-0"), DEADLINE_MS)
    lost = (loss("W2", "B B-0"),)
    w1 = member("W1", "A A-0")
    fired = snapshot("A A-0 B B-0", w1, losses=lost, parked=parked, fired="B B-0")
    assert assign(fired) == outcome({"W1": "A A-0 B B-0"})


@each_assignor
def test_a_deadline_that_has_come_parks_nothing(assign: Assign) -> None:
    due = snapshot("A B", member("W1", "A"), losses=(loss("W2", "B", deadline_ms=NOW_MS),))
    assert assign(due) == outcome({"W1": "A B"})


@each_assignor
def test_parked_work_keeps_its_deadline_when_others_are_lost_as_well(assign: Assign) -> None:
    first, second = DEADLINE_MS - 1000, DEADLINE_MS
    losses = (loss("W2", "B", deadline_ms=first), loss("W3", "B C", deadline_ms=second))
    crashed = snapshot("A B C", member("W1", "A"), losses=losses, parked={one("B"): first})
    assert assign(crashed) == Assignment(
        members={"W1": work("A")}, parked={one("B"): first, one("C"): second}
    )


@each_assignor
def test_of_overlapping_losses_each_gives_its_own_to_who_returned(assign: Assign) -> None:
    losses = (loss("W2", "B", url="http://two"), loss("W3", "C", url="http://three"))
    back = member("W9", url="http://three")
    returned = snapshot("A B C", member("W1", "A"), back, losses=losses)
    assert assign(returned) == outcome({"W1": "A", "W9": "C"}, parked="B")


@each_assignor
@pytest.mark.parametrize("step", [1, -1])
def test_what_was_lost_twice_waits_for_the_later_deadline(assign: Assign, step: int) -> None:
    losses = (loss("W2", "B", deadline_ms=DEADLINE_MS - 1000), loss("W3", "B"))[::step]
    assert assign(snapshot("A B", member("W1", "A"), losses=losses)) == outcome(
        {"W1": "A"}, parked="B"
    )


@each_assignor
@pytest.mark.parametrize("step", [1, -1])
def test_what_was_lost_twice_goes_to_who_lost_it_last(assign: Assign, step: int) -> None:
    losses = (loss("W2", "B", deadline_ms=DEADLINE_MS - 1000), loss("W3", "B"))[::step]
    returned = snapshot("A B", member("W1", "A"), member("W2"), member("W3"), losses=losses)
    assert assign(returned) == outcome({"W1": "A", "W2": "", "W3": "B"})


@each_assignor
def test_lost_work_that_someone_present_has_is_not_parked(assign: Assign) -> None:
    crashed = snapshot("A B", member("W1", "A", owned="A B"), losses=(loss("W2", "A B"),))
    assert assign(crashed) == outcome({"W1": "A B"})


@each_assignor
def test_lost_work_that_is_no_longer_configured_is_forgotten(assign: Assign) -> None:
    lost = (loss("W2", "B B-0"),)
    parked = dict.fromkeys(work("B B-0"), DEADLINE_MS)
    deleted = snapshot("A", member("W1", "A"), losses=lost, parked=parked)
    assert assign(deleted) == outcome({"W1": "A"})


@each_assignor
def test_the_target_wins_where_two_claim(assign: Assign) -> None:
    w1, w2 = member("W1", "A-0", owned="A-0 A-1"), member("W2", "A-1", owned="")
    assert assign(snapshot("A-0 A-1", w1, w2)) == outcome({"W1": "A-0", "W2": "A-1"})


@each_assignor
def test_what_nobody_is_to_have_stays_where_it_runs(assign: Assign) -> None:
    w1, w2 = member("W1", "A-0", owned="A-0"), member("W2", "", owned="A-1")
    assert assign(snapshot("A-0 A-1", w1, w2)) == outcome({"W1": "A-0", "W2": "A-1"})


@each_assignor
def test_a_member_of_capacity_0_gives_up_what_it_has(assign: Assign) -> None:
    w1, w2 = member("W1", "A A-0", metadata=COLD), member("W2", "B", metadata=WARM)
    assert assign(snapshot("A A-0 B", w1, w2)) == outcome({"W1": "", "W2": "A A-0 B"})


@each_assignor
def test_where_all_have_capacity_0_all_count(assign: Assign) -> None:
    w1, w2 = member("W1", "A A-0 A-1", metadata=COLD), member("W2", metadata=COLD)
    assert assign(snapshot("A A-0 A-1", w1, w2)) == outcome({"W1": "A A-0", "W2": "A-1"})


@each_assignor
def test_tasks_of_one_connector_are_spread(assign: Assign) -> None:
    w1, w2 = member("W1", "A-0 C-0"), member("W2", "B-0 D-0")
    dealt = assign(snapshot("A-0 C-0 B-0 D-0 A-1 B-1", w1, w2))
    assert dealt == outcome({"W1": "A-0 C-0 B-1", "W2": "B-0 D-0 A-1"})


@each_assignor
def test_a_task_just_dealt_counts_when_the_next_of_its_connector_is_dealt(assign: Assign) -> None:
    w1, w2 = member("W1"), member("W2", "B-0")
    assert assign(snapshot("A-0 A-1 B-0", w1, w2)) == outcome({"W1": "A-0", "W2": "A-1 B-0"})


@each_assignor
def test_who_runs_anew_has_what_its_dying_seat_is_left_with_and_nobody_else_moves(
    assign: Assign,
) -> None:
    old = member("W1", "A-0 A-1", url="http://one")
    new = replace(member("W0", url="http://one"), joined_epoch=2)
    made = assign(snapshot("A-0 A-1 B-0 B-1", old, new, member("W2", "B-0 B-1")))
    assert made.members == {"W0": work("A-0 A-1"), "W1": work(""), "W2": work("B-0 B-1")}


@each_assignor
def test_a_dying_seat_keeps_its_work_until_who_runs_anew_is_warm(assign: Assign) -> None:
    old = member("W1", "A-0", url="http://one")
    new = replace(member("W0", url="http://one", metadata=COLD), joined_epoch=2)
    made = assign(snapshot("A-0 B-0", old, new, member("W2", "B-0")))
    assert made.members == {"W0": work(""), "W1": work("A-0"), "W2": work("B-0")}


# The examples of the proposal, Design II.


@each_assignor
def test_example_a_member_leaves_and_nobody_is_given_its_work_before_the_time(
    assign: Assign,
) -> None:
    has = (member("A", "T-1"), member("B", "T-2"), member("C", "T-3"))
    left = snapshot("T-1 T-2 T-3 T-4", *has, losses=(loss("D", "T-4"),))
    assert assign(left) == outcome({"A": "T-1", "B": "T-2", "C": "T-3"}, parked="T-4")
    over = replace(left, now_ms=DEADLINE_MS)
    assert assign(over) == outcome({"A": "T-1 T-4", "B": "T-2", "C": "T-3"})


@each_assignor
def test_example_a_member_bounces_and_has_what_it_had(assign: Assign) -> None:
    has = (member("A", "T-1"), member("B", "T-2"), member("C", "T-3"))
    lost = (loss("D", "T-4", url="http://d"),)
    back = member("E", url="http://d")
    bounced = snapshot("T-1 T-2 T-3 T-4", *has, back, losses=lost)
    assert assign(bounced) == outcome({"A": "T-1", "B": "T-2", "C": "T-3", "E": "T-4"})
