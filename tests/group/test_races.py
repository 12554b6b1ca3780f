"""What may happen between Prepare and Install, and what becomes of the target (PROTOCOL §5)."""

from dataclasses import replace

import pytest
from coordinator import COMPUTE, JOIN, Coordinator, resource, resources

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.group.state.soft_state import Computation
from fairlead.actors.messages.computing import Assignment, Install, InstallReply, Snapshot
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.orders import Expect
from fairlead.actors.messages.timers import ExpireSession, TimeOutAssignor
from fairlead.actors.messages.work import DeleteConnector
from fairlead.events.records import TargetAssignment

DELAY_MS = 300_000
HUGE = 1 << 70
"""A number that no log can hold."""
STATIC = replace(JOIN, instance_id="i", url="http://s")


@pytest.fixture
def coordinator() -> Coordinator:
    """W1, that computes, and S of the instance i, both settled over the connectors A to D."""
    coordinator = Coordinator()
    coordinator.configure("A B C D")
    coordinator.join("W1")
    coordinator.join("S", STATIC)
    coordinator.settle()
    return coordinator


def disturbed(coordinator: Coordinator) -> Snapshot:
    """Have a target become due, and W1 fetch what it needs for it."""
    coordinator.join("W9")
    return coordinator.prepare("W1")


def leave(coordinator: Coordinator, member_id: str, epoch: int = -1) -> None:
    instance_id = coordinator.member(member_id).metadata.instance_id
    coordinator.heartbeat(Heartbeat("connect", member_id, epoch, "1", instance_id=instance_id))


def test_what_was_computed_for_a_replaced_static_member_goes_to_who_replaced_it(
    coordinator: Coordinator,
) -> None:
    snapshot = disturbed(coordinator)
    leave(coordinator, "S", -2)
    coordinator.join("S2", replace(STATIC, incarnation="2"))
    made = assign(snapshot)
    assert coordinator.install("W1", snapshot, made) == InstallReply(Error.NONE)
    assert coordinator.group.target_of == {
        "W1": made.members["W1"],
        "W9": made.members["W9"],
        "S2": made.members["S"],
    }


def test_who_left_and_joined_anew_by_the_same_instance_id_replaced_nobody(
    coordinator: Coordinator,
) -> None:
    snapshot = disturbed(coordinator)
    leave(coordinator, "S")
    coordinator.join("S2", STATIC)
    coordinator.install("W1", snapshot)
    assert coordinator.group.target_of.keys() == {"W1", "W9"}


def test_a_static_member_that_is_away_keeps_its_share_and_gets_nothing_new(
    coordinator: Coordinator,
) -> None:
    had = coordinator.group.target_of["S"]
    leave(coordinator, "S", -2)
    leave(coordinator, "W1")
    coordinator.join("W2")
    coordinator.compute()
    assert coordinator.group.target_of == {"S": had, "W2": resources("A B C D") - had}


def test_prepare_again_hands_out_the_group_as_it_is_by_then(coordinator: Coordinator) -> None:
    first = disturbed(coordinator)
    coordinator.join("W8")
    second = coordinator.prepare("W1")
    assert (first.group_epoch, second.group_epoch) == (3, 4)
    assert first.members.keys() | {"W8"} == second.members.keys()
    assert coordinator.install("W1", first).error is Error.UNKNOWN_MEMBER_ID
    assert coordinator.install("W1", second).error is Error.NONE


def test_prepare_again_at_the_same_epoch_hands_out_the_same_snapshot(
    coordinator: Coordinator,
) -> None:
    first = disturbed(coordinator)
    leave(coordinator, "S", -2)
    coordinator.join("S2", replace(STATIC, incarnation="2"))
    coordinator.now_ms += 2_000
    second = coordinator.prepare("W1")
    assert (second, second.snapshot_id) == (first, first.snapshot_id)


@pytest.mark.parametrize("newer", [False, True], ids=["the first", "the second"])
def test_of_two_prepares_of_one_epoch_each_result_is_judged_by_its_own_snapshot(
    coordinator: Coordinator, *, newer: bool
) -> None:
    first = disturbed(coordinator)
    moves = replace(assign(first), again_at_ms=first.now_ms + 1_000)
    leave(coordinator, "S", -2)
    coordinator.join("S2", replace(STATIC, incarnation="2"))
    coordinator.now_ms += 2_000
    second = coordinator.prepare("W1")
    snapshot, made = (second, assign(second)) if newer else (first, moves)
    assert coordinator.install("W1", snapshot, made) == InstallReply(Error.NONE)
    assert coordinator.group.target_of["S2"] == made.members["S"]


def chosen(coordinator: Coordinator) -> Computation:
    """The computation in flight."""
    assert coordinator.soft.computation is not None
    return coordinator.soft.computation


def test_a_result_of_an_earlier_computation_at_the_same_epoch_is_dropped(
    coordinator: Coordinator,
) -> None:
    coordinator.join("W9", replace(JOIN, instance_id="nine"))
    coordinator.carry_out(TimeOutAssignor(chosen(coordinator).number))
    first = coordinator.prepare("S")
    coordinator.carry_out(TimeOutAssignor(chosen(coordinator).number))
    assert chosen(coordinator).member_id == "W9"
    leave(coordinator, "W9", -2)
    second = coordinator.prepare("S")
    assert first.group_epoch == second.group_epoch
    nonsense = Assignment({"S": first.configured}, version=HUGE)
    assert coordinator.install("S", first, nonsense).error is Error.UNKNOWN_MEMBER_ID
    assert coordinator.group.target.error == ""
    assert coordinator.install("S", second).error is Error.NONE


def test_what_was_deleted_meanwhile_is_neither_placed_nor_parked_nor_unplaceable(
    coordinator: Coordinator,
) -> None:
    lost = coordinator.group.target_of["S"]
    kept = coordinator.group.target_of["W1"]
    coordinator.carry_out(ExpireSession("S"))
    snapshot = coordinator.prepare("W1")
    (one, two), (mine, deleted) = sorted(lost), sorted(kept)
    for each in (two, deleted, one):
        coordinator.carry_out(DeleteConnector("connect", each.connector))
    made = Assignment({"W1": frozenset({mine})}, {one: DELAY_MS, two: DELAY_MS}, {deleted: "no"})
    assert coordinator.install("W1", snapshot, made) == InstallReply(Error.NONE)
    group = coordinator.group
    assert (group.target_of, group.target.unplaceable) == ({"W1": frozenset({mine})}, {})
    assert (group.schedule.parked, group.losses) == ({}, {})


def test_nothing_is_parked_for_longer_than_its_loss_allows(coordinator: Coordinator) -> None:
    lost = coordinator.group.target_of["S"]
    coordinator.carry_out(ExpireSession("S"))
    snapshot = coordinator.prepare("W1")
    made = assign(snapshot)
    assert made.parked == dict.fromkeys(lost, DELAY_MS)
    longer = replace(made, parked=dict.fromkeys(lost, DELAY_MS + 1))
    message = f"{min(lost)} is parked for 1 ms longer than its loss allows"
    reply = coordinator.install("W1", snapshot, longer)
    kept = "the target stays as it was: correct the assignor before the next attempt"
    assert reply == InstallReply(Error.INVALID_ASSIGNMENT, f"{message}; {kept}")
    assert coordinator.group.target.error == message


def test_an_operators_deadline_of_meanwhile_is_the_later_word(coordinator: Coordinator) -> None:
    lost = coordinator.group.target_of["S"]
    coordinator.carry_out(ExpireSession("S"))
    snapshot = coordinator.prepare("W1")
    coordinator.carry_out(Expect("connect", "i", 900_000))
    coordinator.install("W1", snapshot)
    assert coordinator.group.schedule.parked == dict.fromkeys(lost, 900_000)


def test_the_deadline_that_an_operator_set_allows_as_much(coordinator: Coordinator) -> None:
    lost = coordinator.group.target_of["S"]
    coordinator.carry_out(ExpireSession("S"))
    coordinator.carry_out(Expect("connect", "i", 900_000))
    snapshot = coordinator.prepare("W1")
    assert coordinator.install("W1", snapshot) == InstallReply(Error.NONE)
    assert coordinator.group.schedule.parked == dict.fromkeys(lost, 900_000)


def test_a_failed_attempt_keeps_nothing_that_was_deleted(coordinator: Coordinator) -> None:
    snapshot = disturbed(coordinator)
    nowhere = dict.fromkeys(snapshot.configured, "no")
    coordinator.install("W1", snapshot, Assignment({}, unplaceable=nowhere))
    coordinator.join("W8")
    coordinator.carry_out(DeleteConnector("connect", "A"))
    snapshot = coordinator.prepare("W1")
    epoch = coordinator.current("W1").member_epoch
    failed = Install("connect", "W1", epoch, snapshot.group_epoch, None, "no luck")
    (record,) = coordinator.carry_out(failed).records
    assert isinstance(record, TargetAssignment)
    assert record.unplaceable == dict.fromkeys(resources("B C D"), "no")


def test_an_attempt_that_failed_for_an_older_epoch_is_followed_by_the_next_at_once(
    coordinator: Coordinator,
) -> None:
    snapshot = disturbed(coordinator)
    coordinator.join("W8")
    coordinator.install("W1", snapshot, Assignment({}))
    group = coordinator.group
    assert (group.target.failures, group.assignment_epoch, group.group_epoch) == (1, 3, 4)
    assert coordinator.beat("W1").error is COMPUTE
    coordinator.compute()
    assert (group.target.failures, group.target.retry_at_ms) == (0, 0)


def test_after_a_restart_the_snapshot_is_gone_and_the_same_member_may_be_asked_again(
    coordinator: Coordinator,
) -> None:
    snapshot = disturbed(coordinator)
    coordinator.restart()
    reply = coordinator.install("W1", snapshot)
    assert reply.error is Error.UNKNOWN_MEMBER_ID
    assert coordinator.beat("S").error is COMPUTE, "by then the lowest member id is the choice"
    coordinator.compute()
    coordinator.settle()
    assert resource("A") in coordinator.group.target_owner
