"""A worker that is removed gives up what it has, goes, and is waited for by nobody."""

from dataclasses import replace

import pytest

from fairlead.actors.group.orders.departures import GOODBYE_MS, due_removals
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.group.state.workers import is_silenced
from fairlead.actors.messages.commands import CommandReply, ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import Cordon, EndMember, RemoveMember
from fairlead.events.model import Cause, Scope, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Operator,
    Tombstone,
)
from fairlead_tests.decider import JOIN, Decider, resources
from fairlead_tests.group.static_seat import AWAY, DELAY_MS, static_group

ALL = resources("A A-0 B B-0")
W2 = "http://w2"
GONE = (Tombstone(CurrentAssignment, ("W2",)), Tombstone(MemberMetadata, ("W2",)))
ENDED = Tombstone(Operator, ("worker", W2, -1))
REMOVAL = RemoveMember("connect", "w2", principal="ann")


@pytest.fixture
def decider() -> Decider:
    """W1 with connector A and W2 with connector B, at rest at epoch 2."""
    decider = Decider(GroupSettings(max_delay_ms=DELAY_MS))
    decider.configure("A A-0 B B-0")
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    decider.join("W2")
    decider.settle()
    return decider


def finish(decider: Decider) -> list[RemoveMember]:
    """Let the group say to itself what its coordinator does whenever time passes."""
    decider.now_ms += GOODBYE_MS
    found = [*due_removals(decider.group, decider.now_ms)]
    for each in found:
        decider.carry_out(each)
    return found


def test_who_is_removed_is_drained_first(decider: Decider) -> None:
    order = Operator(Scope.WORKER, W2, actor="ann", removing="W2", gently=True)
    bump = GroupMetadata(3, Cause(Why.WORKER_DRAINED, W2), 0, "ann")
    assert decider.carry_out(REMOVAL).records == (order, bump)
    assert decider.carry_out(REMOVAL).records == (), "once is enough"
    assert finish(decider) == []
    decider.settle()
    assert decider.current("W1").assigned.keys() == ALL


def test_who_is_removed_goes_once_it_holds_nothing(decider: Decider) -> None:
    decider.carry_out(REMOVAL)
    decider.settle()
    decider.restart()
    assert [*due_removals(decider.group, GOODBYE_MS - 1)] == [], "it may leave by itself"
    assert [*due_removals(decider.group, -1)], "a clock that was set back delays nothing"
    (again,) = due_removals(decider.group, GOODBYE_MS)
    assert decider.carry_out(again).records == (
        *GONE,
        ENDED,
        GroupMetadata(4, Cause(Why.MEMBER_REMOVED, W2), 0, "ann"),
    )
    assert finish(decider) == []


def test_who_has_nothing_goes_without_a_drain(decider: Decider) -> None:
    decider.join("W3")
    decider.compute()
    decider.carry_out(Cordon("connect", "w3", drain=True))
    decider.settle()
    epoch = decider.group.group_epoch
    decider.carry_out(RemoveMember("connect", "w3"))
    assert decider.group.group_epoch == epoch
    finish(decider)
    assert decider.group.members.keys() == {"W1", "W2"}


@pytest.mark.parametrize("epoch", [-1, -2])
def test_who_says_goodbye_before_was_removed_and_keeps_no_place(
    decider: Decider, epoch: int
) -> None:
    decider = static_group()
    decider.carry_out(RemoveMember("connect", "i", principal="ann"))
    assert decider.heartbeat(replace(AWAY, member_epoch=epoch)).error is Error.NONE
    assert decider.group.members.keys() == {"W1"}
    assert decider.group.bump is not None
    assert decider.group.bump.cause == Cause(Why.MEMBER_REMOVED, "http://s")
    assert decider.group.worker_orders == {}


def test_who_falls_silent_before_it_gave_up_its_work_parks_nothing(
    decider: Decider,
) -> None:
    decider.carry_out(REMOVAL)
    records = decider.carry_out(ExpireSession("W2")).records
    assert records == (*GONE, ENDED, GroupMetadata(4, Cause(Why.MEMBER_REMOVED, W2), 0, "ann"))


def test_who_is_removed_gently_is_still_answered_and_can_be_forced_after_all(
    decider: Decider,
) -> None:
    decider.carry_out(REMOVAL)
    assert not is_silenced(decider.group, "W2")
    decider.carry_out(replace(REMOVAL, force=True))
    assert is_silenced(decider.group, "W2")
    assert decider.carry_out(REMOVAL).records == (), "force is not taken back"
    assert is_silenced(decider.group, "W2")


def test_a_worker_that_was_removed_takes_work_again_when_it_comes_back(
    decider: Decider,
) -> None:
    decider.carry_out(REMOVAL)
    decider.settle()
    finish(decider)
    decider.join("W3", replace(JOIN, url=W2))
    decider.settle()
    assert len(decider.current("W3").assigned) == 2


def test_a_cordon_outlives_the_removal(decider: Decider) -> None:
    decider.carry_out(Cordon("connect", "w2", principal="ann"))
    decider.carry_out(REMOVAL)
    decider.settle()
    finish(decider)
    (order,) = decider.group.worker_orders.values()
    assert (order.cordoned, order.draining, order.removing) == (True, False, "")


def test_the_removal_of_a_lost_worker_ends_the_wait_for_it(decider: Decider) -> None:
    decider.carry_out(EndMember("connect", "W2", "1"))
    decider.settle()
    assert decider.group.schedule.parked.keys() == resources("B B-0")
    assert decider.command(REMOVAL).error is Error.NONE
    (loss,) = decider.group.losses.values()
    assert isinstance(loss, Loss)
    assert loss.deadline_ms == 0
    assert set(decider.group.schedule.parked.values()) == {0}


def test_a_worker_that_only_an_order_names_cannot_be_removed(decider: Decider) -> None:
    decider.carry_out(Cordon("connect", "w2"))
    decider.heartbeat(Heartbeat("connect", "W2", -1, "1"))
    assert decider.command(REMOVAL).error is Error.NONE, "it is waited for no longer"
    decider.settle()
    assert decider.group.losses == {}
    assert decider.command(REMOVAL) == CommandReply(
        Error.UNKNOWN_MEMBER_ID,
        f"worker {W2} is no member, and nothing waits for it: there is only an order that names it",
    )


def test_the_last_worker_can_be_removed(decider: Decider) -> None:
    decider.heartbeat(Heartbeat("connect", "W1", -1, "1"))
    decider.settle()
    decider.carry_out(REMOVAL)
    decider.settle()
    finish(decider)
    assert decider.group.members == {}
    assert decider.group.worker_orders == {}
