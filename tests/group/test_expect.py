"""A worker that is expected back: its work waits for it, and no longer (PROTOCOL §7)."""

from dataclasses import replace

import pytest
from coordinator import JOIN, Coordinator, resources

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.computing import Install
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import Expect
from fairlead.actors.messages.timers import ExpireSession, ReleaseParked
from fairlead.events.model import Cause, Scope, Why
from fairlead.events.records import (
    GroupMetadata,
    Loss,
    Operator,
    ScheduledRebalance,
    Tombstone,
)

LOST_AT_MS, DELAY_MS, EXPECTED_MS = 1_000, 300_000, 900_000
W1, W2 = "http://w1", "http://w2"
B = resources("B B-0")


@pytest.fixture
def coordinator() -> Coordinator:
    """A group of W1 with connector A and W2 with connector B, at rest at epoch 2."""
    coordinator = Coordinator(GroupSettings(max_delay_ms=DELAY_MS))
    coordinator.configure("A A-0 B B-0")
    for member_id in ("W1", "W2"):
        coordinator.join(member_id)
        coordinator.settle()
    coordinator.now_ms = LOST_AT_MS
    return coordinator


def expected(worker: str, at_ms: int, now_ms: int = LOST_AT_MS) -> Operator:
    return Operator(Scope.WORKER, worker, expected_back_ms=at_ms, time_ms=now_ms, actor="ann")


def lost(deadline_ms: int) -> Loss:
    cause = Cause(Why.SESSION_EXPIRED, W2)
    return Loss("W2", None, W2, B, LOST_AT_MS, cause, deadline_ms)


def test_an_order_for_a_present_worker_waits_and_bumps_nothing(coordinator: Coordinator) -> None:
    order = expected(W2, LOST_AT_MS + EXPECTED_MS)
    command = Expect("connect", "W2", EXPECTED_MS, "ann")
    assert coordinator.carry_out(command).records == (order,)
    assert coordinator.carry_out(command).records == ()
    coordinator.carry_out(ExpireSession("W2"))
    assert coordinator.group.losses == {"W2": lost(LOST_AT_MS + EXPECTED_MS)}


def test_an_order_of_the_past_is_void(coordinator: Coordinator) -> None:
    coordinator.carry_out(Expect("connect", "W2", 10, "ann"))
    coordinator.now_ms += 10
    coordinator.carry_out(ExpireSession("W2"))
    (loss,) = coordinator.group.losses.values()
    assert loss.deadline_ms == LOST_AT_MS + 10 + DELAY_MS


def test_an_order_holds_where_nothing_else_is_parked() -> None:
    coordinator = Coordinator(GroupSettings(max_delay_ms=0))
    coordinator.configure("A B")
    for member_id in ("W1", "W2"):
        coordinator.join(member_id)
        coordinator.settle()
    coordinator.carry_out(Expect("connect", "W2", EXPECTED_MS))
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.settle()
    assert coordinator.group.schedule.parked == dict.fromkeys(resources("B"), EXPECTED_MS)


def parked(coordinator: Coordinator) -> None:
    """Lose W2, and let W1 compute: B is parked."""
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.settle()
    assert coordinator.group.schedule.parked.keys() == B


def test_for_a_lost_worker_the_deadlines_move(coordinator: Coordinator) -> None:
    parked(coordinator)
    coordinator.now_ms += 5
    due_ms = coordinator.now_ms + EXPECTED_MS
    assert coordinator.carry_out(Expect("connect", W2, EXPECTED_MS, "ann")).records == (
        expected(W2, due_ms, coordinator.now_ms),
        lost(due_ms),
        ScheduledRebalance(dict.fromkeys(B, due_ms)),
    )
    coordinator.now_ms = LOST_AT_MS + DELAY_MS
    assert coordinator.carry_out(ReleaseParked()).records == ()
    coordinator.now_ms = due_ms
    assert coordinator.carry_out(ReleaseParked()).records != ()


def test_a_worker_that_is_not_expected_any_more_is_waited_for_no_longer(
    coordinator: Coordinator,
) -> None:
    parked(coordinator)
    coordinator.carry_out(Expect("connect", W2, EXPECTED_MS))
    assert coordinator.carry_out(Expect("connect", W2, 0)).records == (
        Tombstone(Operator, ("worker", W2, -1)),
        lost(LOST_AT_MS),
        ScheduledRebalance(dict.fromkeys(B, LOST_AT_MS)),
    )
    coordinator.carry_out(ReleaseParked())
    coordinator.settle()
    assert coordinator.current("W1").assigned.keys() == resources("A A-0 B B-0")


def test_what_has_fired_is_not_parked_again(coordinator: Coordinator) -> None:
    parked(coordinator)
    coordinator.now_ms = LOST_AT_MS + DELAY_MS
    coordinator.carry_out(ReleaseParked())
    before = coordinator.group.schedule
    coordinator.carry_out(Expect("connect", W2, EXPECTED_MS))
    assert coordinator.group.schedule == before
    coordinator.settle()
    assert coordinator.current("W1").assigned.keys() == resources("A A-0 B B-0")


def test_a_computation_that_knows_the_old_deadline_parks_until_the_new_one(
    coordinator: Coordinator,
) -> None:
    coordinator.carry_out(ExpireSession("W2"))
    assert coordinator.soft.computation is not None
    snapshot = coordinator.prepare(coordinator.soft.computation.member_id)
    coordinator.carry_out(Expect("connect", W2, EXPECTED_MS, "ann"))
    coordinator.install("W1", snapshot)
    due_ms = LOST_AT_MS + EXPECTED_MS
    assert coordinator.group.schedule == ScheduledRebalance(dict.fromkeys(B, due_ms))
    assert coordinator.group.group_epoch == 3


def test_work_that_a_failed_attempt_left_lying_is_parked_at_once(coordinator: Coordinator) -> None:
    coordinator.carry_out(ExpireSession("W2"))
    snapshot = coordinator.prepare("W1")
    epoch = coordinator.current("W1").member_epoch
    coordinator.carry_out(Install("connect", "W1", epoch, snapshot.group_epoch, None, "no luck"))
    records = coordinator.carry_out(Expect("connect", W2, EXPECTED_MS, "ann")).records
    assert records[-1] == GroupMetadata(4, Cause(Why.WORKER_EXPECTED, W2), LOST_AT_MS, "ann")
    coordinator.settle()
    due_ms = LOST_AT_MS + EXPECTED_MS
    assert coordinator.group.schedule == ScheduledRebalance(dict.fromkeys(B, due_ms))


def test_a_computation_that_has_not_begun_needs_no_other(coordinator: Coordinator) -> None:
    coordinator.carry_out(ExpireSession("W2"))
    records = coordinator.carry_out(Expect("connect", W2, EXPECTED_MS, "ann")).records
    due_ms = LOST_AT_MS + EXPECTED_MS
    assert records == (expected(W2, due_ms), lost(due_ms))
    coordinator.settle()
    assert coordinator.group.schedule == ScheduledRebalance(dict.fromkeys(B, due_ms))


def test_the_expectation_of_a_worker_that_is_back_ends(coordinator: Coordinator) -> None:
    parked(coordinator)
    coordinator.carry_out(Expect("connect", W2, EXPECTED_MS))
    coordinator.join("again", replace(JOIN, url=W2))
    assert coordinator.group.worker_orders == {}
    coordinator.settle()
    assert coordinator.current("again").assigned.keys() == B
    assert coordinator.group.losses == {}


def test_a_later_crash_does_not_share_the_deadline_that_an_operator_set(
    coordinator: Coordinator,
) -> None:
    coordinator.join("W3")
    coordinator.settle()
    coordinator.carry_out(Expect("connect", W2, EXPECTED_MS))
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.now_ms += 5_000
    coordinator.carry_out(ExpireSession("W1"))
    assert {loss.member_id: loss.deadline_ms for loss in coordinator.group.losses.values()} == {
        "W2": LOST_AT_MS + EXPECTED_MS,
        "W1": LOST_AT_MS + 5_000 + DELAY_MS,
    }


@pytest.mark.parametrize("within_ms", [-1, 1 << 31])
def test_a_time_that_is_none_is_refused(coordinator: Coordinator, within_ms: int) -> None:
    assert coordinator.command(Expect("connect", W2, within_ms)) == CommandReply(
        Error.INVALID_REQUEST,
        f"within_ms = {within_ms}: allowed is a whole number of milliseconds, from 0 to 2147483647",
    )


def test_an_unknown_worker_can_not_be_expected(coordinator: Coordinator) -> None:
    assert coordinator.command(Expect("connect", "w9", 1)).error is Error.UNKNOWN_MEMBER_ID
