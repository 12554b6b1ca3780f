"""What may happen between Prepare and Install, and what becomes of the target (PROTOCOL §5)."""

from dataclasses import replace

import pytest

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.group.state.soft_state import Computation
from fairlead.actors.messages.commands import ExpireSession, TimeOutAssignor
from fairlead.actors.messages.computing import Assignment, Install, InstallReply, Snapshot
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import DeleteConnector, Expect
from fairlead.events.records import TargetAssignment
from fairlead_tests.decider import COMPUTE, JOIN, Decider, resource, resources

DELAY_MS = 300_000
HUGE = 1 << 70
"""A number that no log can hold."""
STATIC = replace(JOIN, instance_id="i", url="http://s")


@pytest.fixture
def decider() -> Decider:
    """W1, that computes, and S of the instance i, both settled over the connectors A to D."""
    decider = Decider(GroupSettings(leave_delay_ms=0))
    decider.configure("A B C D")
    decider.join("W1")
    decider.join("S", STATIC)
    decider.settle()
    return decider


def disturbed(decider: Decider) -> Snapshot:
    """Have a target become due, and W1 fetch what it needs for it."""
    decider.join("W9")
    return decider.prepare("W1")


def leave(decider: Decider, member_id: str, epoch: int = -1) -> None:
    instance_id = decider.member(member_id).metadata.instance_id
    decider.heartbeat(Heartbeat("connect", member_id, epoch, "1", instance_id=instance_id))


def test_what_was_computed_for_a_replaced_static_member_goes_to_who_replaced_it(
    decider: Decider,
) -> None:
    snapshot = disturbed(decider)
    leave(decider, "S", -2)
    decider.join("S2", replace(STATIC, incarnation="2"))
    made = assign(snapshot)
    assert decider.install("W1", snapshot, made) == InstallReply(Error.NONE)
    assert decider.group.target_of == {
        "W1": made.members["W1"],
        "W9": made.members["W9"],
        "S2": made.members["S"],
    }


def test_who_left_and_joined_anew_by_the_same_instance_id_replaced_nobody(
    decider: Decider,
) -> None:
    snapshot = disturbed(decider)
    leave(decider, "S")
    decider.join("S2", STATIC)
    decider.install("W1", snapshot)
    assert decider.group.target_of.keys() == {"W1", "W9"}


def test_a_static_member_that_is_away_keeps_its_share_and_gets_nothing_new(
    decider: Decider,
) -> None:
    had = decider.group.target_of["S"]
    leave(decider, "S", -2)
    leave(decider, "W1")
    decider.join("W2")
    decider.compute()
    assert decider.group.target_of == {"S": had, "W2": resources("A B C D") - had}


def test_prepare_again_hands_out_the_group_as_it_is_by_then(decider: Decider) -> None:
    first = disturbed(decider)
    decider.join("W8")
    second = decider.prepare("W1")
    assert (first.group_epoch, second.group_epoch) == (3, 4)
    assert first.members.keys() | {"W8"} == second.members.keys()
    assert decider.install("W1", first).error is Error.UNKNOWN_MEMBER_ID
    assert decider.install("W1", second).error is Error.NONE


def test_prepare_again_at_the_same_epoch_hands_out_the_same_snapshot(
    decider: Decider,
) -> None:
    first = disturbed(decider)
    leave(decider, "S", -2)
    decider.join("S2", replace(STATIC, incarnation="2"))
    decider.now_ms += 2_000
    second = decider.prepare("W1")
    assert (second, second.snapshot_id) == (first, first.snapshot_id)


@pytest.mark.parametrize("newer", [False, True], ids=["the first", "the second"])
def test_of_two_prepares_of_one_epoch_each_result_is_judged_by_its_own_snapshot(
    decider: Decider, *, newer: bool
) -> None:
    first = disturbed(decider)
    moves = replace(assign(first), again_at_ms=first.now_ms + 1_000)
    leave(decider, "S", -2)
    decider.join("S2", replace(STATIC, incarnation="2"))
    decider.now_ms += 2_000
    second = decider.prepare("W1")
    snapshot, made = (second, assign(second)) if newer else (first, moves)
    assert decider.install("W1", snapshot, made) == InstallReply(Error.NONE)
    assert decider.group.target_of["S2"] == made.members["S"]


def chosen(decider: Decider) -> Computation:
    """The computation in flight."""
    assert decider.soft.computation is not None
    return decider.soft.computation


def test_a_result_of_an_earlier_computation_at_the_same_epoch_is_dropped(
    decider: Decider,
) -> None:
    decider.join("W9", replace(JOIN, instance_id="nine"))
    decider.carry_out(TimeOutAssignor(chosen(decider).number))
    first = decider.prepare("S")
    decider.carry_out(TimeOutAssignor(chosen(decider).number))
    assert chosen(decider).member_id == "W9"
    leave(decider, "W9", -2)
    second = decider.prepare("S")
    assert first.group_epoch == second.group_epoch
    nonsense = Assignment({"S": first.configured}, version=HUGE)
    assert decider.install("S", first, nonsense).error is Error.UNKNOWN_MEMBER_ID
    assert decider.group.target.error == ""
    assert decider.install("S", second).error is Error.NONE


def test_what_was_deleted_meanwhile_is_neither_placed_nor_parked_nor_unplaceable(
    decider: Decider,
) -> None:
    lost = decider.group.target_of["S"]
    kept = decider.group.target_of["W1"]
    decider.carry_out(ExpireSession("S"))
    snapshot = decider.prepare("W1")
    (one, two), (mine, deleted) = sorted(lost), sorted(kept)
    for each in (two, deleted, one):
        decider.carry_out(DeleteConnector("connect", each.connector))
    made = Assignment({"W1": frozenset({mine})}, {one: DELAY_MS, two: DELAY_MS}, {deleted: "no"})
    assert decider.install("W1", snapshot, made) == InstallReply(Error.NONE)
    group = decider.group
    assert (group.target_of, group.target.unplaceable) == ({"W1": frozenset({mine})}, {})
    assert (group.schedule.parked, group.losses) == ({}, {})


def test_nothing_is_parked_for_longer_than_its_loss_allows(decider: Decider) -> None:
    lost = decider.group.target_of["S"]
    decider.carry_out(ExpireSession("S"))
    snapshot = decider.prepare("W1")
    made = assign(snapshot)
    assert made.parked == dict.fromkeys(lost, DELAY_MS)
    longer = replace(made, parked=dict.fromkeys(lost, DELAY_MS + 1))
    message = f"{min(lost)} is parked for 1 ms longer than its loss allows"
    reply = decider.install("W1", snapshot, longer)
    kept = "the target stays as it was: correct the assignor before the next attempt"
    assert reply == InstallReply(Error.INVALID_ASSIGNMENT, f"{message}; {kept}")
    assert decider.group.target.error == message


def test_an_operators_deadline_of_meanwhile_is_the_later_word(decider: Decider) -> None:
    lost = decider.group.target_of["S"]
    decider.carry_out(ExpireSession("S"))
    snapshot = decider.prepare("W1")
    decider.carry_out(Expect("connect", "i", 900_000))
    decider.install("W1", snapshot)
    assert decider.group.schedule.parked == dict.fromkeys(lost, 900_000)


def test_the_deadline_that_an_operator_set_allows_as_much(decider: Decider) -> None:
    lost = decider.group.target_of["S"]
    decider.carry_out(ExpireSession("S"))
    decider.carry_out(Expect("connect", "i", 900_000))
    snapshot = decider.prepare("W1")
    assert decider.install("W1", snapshot) == InstallReply(Error.NONE)
    assert decider.group.schedule.parked == dict.fromkeys(lost, 900_000)


def test_a_failed_attempt_keeps_nothing_that_was_deleted(decider: Decider) -> None:
    snapshot = disturbed(decider)
    nowhere = dict.fromkeys(snapshot.configured, "no")
    decider.install("W1", snapshot, Assignment({}, unplaceable=nowhere))
    decider.join("W8")
    decider.carry_out(DeleteConnector("connect", "A"))
    snapshot = decider.prepare("W1")
    epoch = decider.current("W1").member_epoch
    failed = Install("connect", "W1", epoch, snapshot.group_epoch, None, "no luck")
    (record,) = decider.carry_out(failed).records
    assert isinstance(record, TargetAssignment)
    assert record.unplaceable == dict.fromkeys(resources("B C D"), "no")


def test_an_attempt_that_failed_for_an_older_epoch_is_followed_by_the_next_at_once(
    decider: Decider,
) -> None:
    snapshot = disturbed(decider)
    decider.join("W8")
    decider.install("W1", snapshot, Assignment({}))
    group = decider.group
    assert (group.target.failures, group.assignment_epoch, group.group_epoch) == (1, 3, 4)
    assert decider.beat("W1").error is COMPUTE
    decider.compute()
    assert (group.target.failures, group.target.retry_at_ms) == (0, 0)


def test_after_a_restart_the_snapshot_is_gone_and_the_same_member_may_be_asked_again(
    decider: Decider,
) -> None:
    snapshot = disturbed(decider)
    decider.restart()
    reply = decider.install("W1", snapshot)
    assert reply.error is Error.UNKNOWN_MEMBER_ID
    assert decider.beat("S").error is COMPUTE, "by then the lowest member id is the choice"
    decider.compute()
    decider.settle()
    assert resource("A") in decider.group.target_owner
