"""Who goes, in which records, and what is lost by it (PROTOCOL §7, §8; `timers` of the data)."""

from dataclasses import replace

import pytest
from coordinator import JOIN, Coordinator, resources

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.timers import ExpireRebalance, ExpireSession, ReleaseParked
from fairlead.events.model import Cause, GroupState, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    ScheduledRebalance,
    TargetAssignment,
    Tombstone,
)

LOST_AT_MS, DELAY_MS = 1_000, 300_000
DUE_MS = LOST_AT_MS + DELAY_MS
W2_HAD = resources("B B-0")


@pytest.fixture
def coordinator() -> Coordinator:
    """A group of W1 with connector A and W2 with connector B, at rest at epoch 2."""
    coordinator = Coordinator(GroupSettings(max_delay_ms=DELAY_MS))
    coordinator.configure("A A-0 B B-0")
    coordinator.join("W1")
    coordinator.compute()
    coordinator.beat("W1", "")
    coordinator.join("W2")
    coordinator.settle()
    assert coordinator.current("W2").assigned.keys() == W2_HAD
    coordinator.now_ms = LOST_AT_MS
    return coordinator


GONE = (Tombstone(CurrentAssignment, ("W2",)), Tombstone(MemberMetadata, ("W2",)))


def test_an_expired_session_writes_tombstones_then_loss_then_bump(
    coordinator: Coordinator,
) -> None:
    cause = Cause(Why.SESSION_EXPIRED, "http://w2")
    assert coordinator.carry_out(ExpireSession("W2")).records == (
        *GONE,
        Loss("W2", None, "http://w2", W2_HAD, LOST_AT_MS, cause, DUE_MS),
        GroupMetadata(3, cause, LOST_AT_MS),
    )


def test_a_goodbye_writes_tombstones_then_bump_and_loses_nothing(coordinator: Coordinator) -> None:
    decision = coordinator.carry_out(Heartbeat("connect", "W2", -1, "1"))
    assert decision.records == (
        *GONE,
        GroupMetadata(3, Cause(Why.MEMBER_LEFT, "http://w2"), LOST_AT_MS),
    )
    assert coordinator.heartbeat(Heartbeat("connect", "W2", -1, "1")).error is (
        Error.UNKNOWN_MEMBER_ID
    )


def test_the_answer_to_a_goodbye_says_minus_1(coordinator: Coordinator) -> None:
    reply = coordinator.heartbeat(Heartbeat("connect", "W2", -1, "1", sequence=7))
    assert (reply.error, reply.member_epoch, reply.sequence) == (Error.NONE, -1, 7)


def test_a_member_that_never_acknowledged_parks_nothing(coordinator: Coordinator) -> None:
    records = coordinator.carry_out(ExpireSession("W2", acknowledged=False)).records
    assert [type(record) for record in records] == [Tombstone, Tombstone, GroupMetadata]


def test_a_group_that_becomes_empty_parks_nothing(coordinator: Coordinator) -> None:
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.compute()
    assert coordinator.group.schedule.parked.keys() == W2_HAD
    records = coordinator.carry_out(ExpireSession("W1")).records
    assert records == (
        Tombstone(CurrentAssignment, ("W1",)),
        Tombstone(MemberMetadata, ("W1",)),
        Tombstone(Loss, ("W2",)),
        ScheduledRebalance(),
        GroupMetadata(4, Cause(Why.SESSION_EXPIRED, "http://w1"), LOST_AT_MS),
    )
    assert coordinator.group.state is GroupState.EMPTY
    coordinator.join("W3")
    coordinator.compute()
    assert coordinator.beat("W3", "").assignment == resources("A A-0 B B-0")


def test_a_timer_that_finds_nobody_writes_nothing(coordinator: Coordinator) -> None:
    assert coordinator.carry_out(ExpireSession("W9")).records == ()
    assert coordinator.carry_out(ExpireRebalance("W9", 3)).records == ()


def test_a_session_timer_ends_only_the_seat_that_it_was_set_for(coordinator: Coordinator) -> None:
    seat = coordinator.member("W2").metadata.joined_epoch
    coordinator.carry_out(Heartbeat("connect", "W2", -1, "1"))
    coordinator.join("W2")
    assert coordinator.carry_out(ExpireSession("W2", joined_epoch=seat)).records == ()
    again = coordinator.member("W2").metadata.joined_epoch
    assert coordinator.carry_out(ExpireSession("W2", joined_epoch=again)).records != ()


def test_what_the_target_gives_to_another_is_not_lost(coordinator: Coordinator) -> None:
    coordinator.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W1": resources("A A-0 B"), "W2": resources("B-0")}),
    )
    coordinator.carry_out(ExpireSession("W2"))
    assert coordinator.group.losses["W2"].resources == resources("B-0")


# Parking.


def parked(coordinator: Coordinator) -> None:
    """Lose W2, and let W1 compute: B is parked."""
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.compute()
    coordinator.settle()
    assert coordinator.group.schedule == ScheduledRebalance(dict.fromkeys(W2_HAD, DUE_MS))
    assert coordinator.group.state is GroupState.STABLE


def test_lost_work_waits_until_its_deadline_and_not_longer(coordinator: Coordinator) -> None:
    parked(coordinator)
    coordinator.now_ms = DUE_MS - 1
    assert coordinator.carry_out(ReleaseParked()).records == ()
    coordinator.now_ms = DUE_MS
    assert coordinator.carry_out(ReleaseParked()).records == (
        ScheduledRebalance(dict.fromkeys(W2_HAD, DUE_MS), W2_HAD),
        GroupMetadata(4, Cause(Why.DELAY_EXPIRED, "B and 1 more"), DUE_MS),
    )
    assert coordinator.carry_out(ReleaseParked()).records == (), "it fires once"
    coordinator.settle()
    assert coordinator.current("W1").assigned.keys() == resources("A A-0 B B-0")
    assert (coordinator.group.losses, coordinator.group.schedule) == ({}, ScheduledRebalance())


def test_who_returns_with_the_same_url_gets_its_work_at_once(coordinator: Coordinator) -> None:
    parked(coordinator)
    coordinator.join("W3", replace(JOIN, url="http://w2"))
    coordinator.settle()
    assert coordinator.current("W3").assigned.keys() == W2_HAD
    assert (coordinator.group.losses, coordinator.group.schedule) == ({}, ScheduledRebalance())


def test_another_newcomer_gets_none_of_what_is_parked(coordinator: Coordinator) -> None:
    parked(coordinator)
    coordinator.join("W3")
    coordinator.settle()
    held = coordinator.current("W3").assigned.keys() | coordinator.current("W1").assigned.keys()
    assert held == resources("A A-0")


def test_a_later_loss_shares_the_running_deadline(coordinator: Coordinator) -> None:
    coordinator.join("W3")
    coordinator.settle()
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.now_ms += 5_000
    coordinator.carry_out(ExpireSession("W1"))
    assert [loss.deadline_ms for loss in coordinator.group.losses.values()] == [DUE_MS, DUE_MS]


def test_delay_0_parks_nothing() -> None:
    coordinator = Coordinator(GroupSettings(max_delay_ms=0))
    coordinator.configure("A A-0")
    coordinator.join("W1")
    coordinator.settle()
    coordinator.join("W2")
    coordinator.settle()
    coordinator.carry_out(ExpireSession("W1"))
    coordinator.settle()
    assert coordinator.current("W2").assigned.keys() == resources("A A-0")


def test_a_stale_target_can_not_park_again_what_has_fired(coordinator: Coordinator) -> None:
    coordinator.carry_out(ExpireSession("W2"))
    snapshot = coordinator.prepare("W1")
    coordinator.compute()
    coordinator.carry_out(replace(JOIN, member_id="W3", url="http://w3"))
    snapshot = coordinator.prepare("W1")
    coordinator.now_ms = DUE_MS
    coordinator.carry_out(ReleaseParked())
    assert coordinator.install("W1", snapshot).error is Error.NONE
    assert coordinator.group.schedule.fired == W2_HAD
    assert coordinator.carry_out(ReleaseParked()).records == ()
    coordinator.settle()
    held = coordinator.current("W3").assigned.keys() | coordinator.current("W1").assigned.keys()
    assert held == resources("A A-0 B B-0")


# The rebalance timer.


def revoking(coordinator: Coordinator, timeout_ms: int = -1) -> Heartbeat:
    """Let W3 join and W1 be asked to give something up; return the heartbeat that asked."""
    coordinator.configure("A A-0 A-1 A-2 B B-0")
    coordinator.carry_out(replace(JOIN, member_id="W0", url="http://w0"))
    coordinator.settle()
    coordinator.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W0": coordinator.group.configured}),
    )
    epoch = coordinator.current("W1").member_epoch
    request = Heartbeat("connect", "W1", epoch, "1", rebalance_timeout_ms=timeout_ms)
    decision = coordinator.carry_out(request)
    assert coordinator.current("W1").pending
    assert isinstance(decision.records[-1], CurrentAssignment)
    return request


def test_who_does_not_give_up_in_time_is_removed(coordinator: Coordinator) -> None:
    revoking(coordinator)
    records = coordinator.carry_out(ExpireRebalance("W1", coordinator.member("W1").offset)).records
    cause = Cause(Why.REBALANCE_EXPIRED, "http://w1")
    assert records == (
        Tombstone(CurrentAssignment, ("W1",)),
        Tombstone(MemberMetadata, ("W1",)),
        GroupMetadata(10, cause, LOST_AT_MS),
    )


def test_the_timeout_is_that_of_the_very_request(coordinator: Coordinator) -> None:
    revoking(coordinator, timeout_ms=12_000)
    assert coordinator.member("W1").metadata.rebalance_timeout_ms == 12_000


def test_a_heartbeat_without_an_answer_does_not_extend_the_timer(coordinator: Coordinator) -> None:
    request = revoking(coordinator)
    offset = coordinator.member("W1").offset
    coordinator.carry_out(request)
    assert coordinator.member("W1").offset == offset


def test_a_timer_of_an_older_step_is_void(coordinator: Coordinator) -> None:
    revoking(coordinator)
    offset = coordinator.member("W1").offset
    coordinator.beat("W1", "")
    assert coordinator.carry_out(ExpireRebalance("W1", offset)).records == ()


def test_a_second_revocation_starts_a_timer_of_its_own(coordinator: Coordinator) -> None:
    coordinator.configure("A A-0 A-1")
    coordinator.write(
        GroupMetadata(8, Cause(Why.OPERATOR), 0),
        TargetAssignment(8, {"W1": resources("A-0"), "W2": resources("B B-0")}),
    )
    coordinator.beat("W1")
    first = coordinator.member("W1")
    coordinator.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W1": resources(""), "W2": resources("B B-0")}),
    )
    coordinator.beat("W1", "A-0")
    second = coordinator.member("W1")
    assert second.current.pending.keys() == resources("A-0")
    assert second.current.member_epoch == first.current.member_epoch
    assert coordinator.carry_out(ExpireRebalance("W1", first.offset)).records == ()
    assert coordinator.carry_out(ExpireRebalance("W1", second.offset)).records != ()


def test_waiting_has_no_timer(coordinator: Coordinator) -> None:
    coordinator.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W1": resources("A A-0 B B-0")}),
    )
    coordinator.beat("W1")
    offset = coordinator.member("W1").offset
    assert coordinator.current("W1").state.name == "UNRELEASED"
    assert coordinator.carry_out(ExpireRebalance("W1", offset)).records == ()
