"""A worker that is expected back: its work waits for it, and no longer (PROTOCOL §7)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import CommandReply, ExpireSession, ReleaseParked
from fairlead.actors.messages.computing import Install
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import Expect
from fairlead.events.model import Cause, Scope, Why
from fairlead.events.records import (
    GroupMetadata,
    Loss,
    Operator,
    ScheduledRebalance,
    Tombstone,
)
from fairlead_tests.decider import JOIN, Decider, resources

LOST_AT_MS, DELAY_MS, EXPECTED_MS = 1_000, 300_000, 900_000
W1, W2 = "http://w1", "http://w2"
B = resources("B B-0")


@pytest.fixture
def decider() -> Decider:
    """A group of W1 with connector A and W2 with connector B, at rest at epoch 2."""
    decider = Decider(GroupSettings(max_delay_ms=DELAY_MS))
    decider.configure("A A-0 B B-0")
    for member_id in ("W1", "W2"):
        decider.join(member_id)
        decider.settle()
    decider.now_ms = LOST_AT_MS
    return decider


def expected(worker: str, at_ms: int, now_ms: int = LOST_AT_MS) -> Operator:
    return Operator(Scope.WORKER, worker, expected_back_ms=at_ms, time_ms=now_ms, actor="ann")


def lost(deadline_ms: int) -> Loss:
    cause = Cause(Why.SESSION_EXPIRED, W2)
    return Loss("W2", None, W2, B, LOST_AT_MS, cause, deadline_ms)


def test_an_order_for_a_present_worker_waits_and_bumps_nothing(decider: Decider) -> None:
    order = expected(W2, LOST_AT_MS + EXPECTED_MS)
    command = Expect("connect", "W2", EXPECTED_MS, "ann")
    assert decider.carry_out(command).records == (order,)
    assert decider.carry_out(command).records == ()
    decider.carry_out(ExpireSession("W2"))
    assert decider.group.losses == {"W2": lost(LOST_AT_MS + EXPECTED_MS)}


def test_an_order_of_the_past_is_void(decider: Decider) -> None:
    decider.carry_out(Expect("connect", "W2", 10, "ann"))
    decider.now_ms += 10
    decider.carry_out(ExpireSession("W2"))
    (loss,) = decider.group.losses.values()
    assert loss.deadline_ms == LOST_AT_MS + 10 + DELAY_MS


def test_an_order_holds_where_nothing_else_is_parked() -> None:
    decider = Decider(GroupSettings(max_delay_ms=0))
    decider.configure("A B")
    for member_id in ("W1", "W2"):
        decider.join(member_id)
        decider.settle()
    decider.carry_out(Expect("connect", "W2", EXPECTED_MS))
    decider.carry_out(ExpireSession("W2"))
    decider.settle()
    assert decider.group.schedule.parked == dict.fromkeys(resources("B"), EXPECTED_MS)


def test_the_work_of_an_expected_worker_waits_also_if_it_leaves() -> None:
    decider = Decider(GroupSettings(leave_delay_ms=0))
    decider.configure("A B")
    for member_id in ("W1", "W2"):
        decider.join(member_id)
        decider.settle()
    decider.carry_out(Expect("connect", "W2", EXPECTED_MS))
    decider.carry_out(Heartbeat("connect", "W2", -1, "1"))
    decider.settle()
    assert decider.group.schedule.parked == dict.fromkeys(resources("B"), EXPECTED_MS)
    decider.join("again", replace(JOIN, url=W2))
    decider.settle()
    assert decider.current("again").assigned.keys() == resources("B")
    assert decider.group.worker_orders == {}


def parked(decider: Decider) -> None:
    """Lose W2, and let W1 compute: B is parked."""
    decider.carry_out(ExpireSession("W2"))
    decider.settle()
    assert decider.group.schedule.parked.keys() == B


def test_for_a_lost_worker_the_deadlines_move(decider: Decider) -> None:
    parked(decider)
    decider.now_ms += 5
    due_ms = decider.now_ms + EXPECTED_MS
    assert decider.carry_out(Expect("connect", W2, EXPECTED_MS, "ann")).records == (
        expected(W2, due_ms, decider.now_ms),
        lost(due_ms),
        ScheduledRebalance(dict.fromkeys(B, due_ms)),
    )
    decider.now_ms = LOST_AT_MS + DELAY_MS
    assert decider.carry_out(ReleaseParked()).records == ()
    decider.now_ms = due_ms
    assert decider.carry_out(ReleaseParked()).records != ()


def test_a_worker_that_is_not_expected_any_more_is_waited_for_no_longer(
    decider: Decider,
) -> None:
    parked(decider)
    decider.carry_out(Expect("connect", W2, EXPECTED_MS))
    assert decider.carry_out(Expect("connect", W2, 0)).records == (
        Tombstone(Operator, ("worker", W2, -1)),
        lost(LOST_AT_MS),
        ScheduledRebalance(dict.fromkeys(B, LOST_AT_MS)),
    )
    decider.carry_out(ReleaseParked())
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A A-0 B B-0")


def test_what_has_fired_is_not_parked_again(decider: Decider) -> None:
    parked(decider)
    decider.now_ms = LOST_AT_MS + DELAY_MS
    decider.carry_out(ReleaseParked())
    before = decider.group.schedule
    decider.carry_out(Expect("connect", W2, EXPECTED_MS))
    assert decider.group.schedule == before
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A A-0 B B-0")


def test_a_computation_that_knows_the_old_deadline_parks_until_the_new_one(
    decider: Decider,
) -> None:
    decider.carry_out(ExpireSession("W2"))
    assert decider.soft.computation is not None
    snapshot = decider.prepare(decider.soft.computation.member_id)
    decider.carry_out(Expect("connect", W2, EXPECTED_MS, "ann"))
    decider.install("W1", snapshot)
    due_ms = LOST_AT_MS + EXPECTED_MS
    assert decider.group.schedule == ScheduledRebalance(dict.fromkeys(B, due_ms))
    assert decider.group.group_epoch == 3


def test_work_that_a_failed_attempt_left_lying_is_parked_at_once(decider: Decider) -> None:
    decider.carry_out(ExpireSession("W2"))
    snapshot = decider.prepare("W1")
    epoch = decider.current("W1").member_epoch
    decider.carry_out(Install("connect", "W1", epoch, snapshot.group_epoch, None, "no luck"))
    records = decider.carry_out(Expect("connect", W2, EXPECTED_MS, "ann")).records
    assert records[-1] == GroupMetadata(4, Cause(Why.WORKER_EXPECTED, W2), LOST_AT_MS, "ann")
    decider.settle()
    due_ms = LOST_AT_MS + EXPECTED_MS
    assert decider.group.schedule == ScheduledRebalance(dict.fromkeys(B, due_ms))


def test_a_computation_that_has_not_begun_needs_no_other(decider: Decider) -> None:
    decider.carry_out(ExpireSession("W2"))
    records = decider.carry_out(Expect("connect", W2, EXPECTED_MS, "ann")).records
    due_ms = LOST_AT_MS + EXPECTED_MS
    assert records == (expected(W2, due_ms), lost(due_ms))
    decider.settle()
    assert decider.group.schedule == ScheduledRebalance(dict.fromkeys(B, due_ms))


def test_the_expectation_of_a_worker_that_is_back_ends(decider: Decider) -> None:
    parked(decider)
    decider.carry_out(Expect("connect", W2, EXPECTED_MS))
    decider.join("again", replace(JOIN, url=W2))
    assert decider.group.worker_orders == {}
    decider.settle()
    assert decider.current("again").assigned.keys() == B
    assert decider.group.losses == {}


def test_a_later_crash_does_not_share_the_deadline_that_an_operator_set(
    decider: Decider,
) -> None:
    decider.join("W3")
    decider.settle()
    decider.carry_out(Expect("connect", W2, EXPECTED_MS))
    decider.carry_out(ExpireSession("W2"))
    decider.now_ms += 5_000
    decider.carry_out(ExpireSession("W1"))
    assert {loss.member_id: loss.deadline_ms for loss in decider.group.losses.values()} == {
        "W2": LOST_AT_MS + EXPECTED_MS,
        "W1": LOST_AT_MS + 5_000 + DELAY_MS,
    }


@pytest.mark.parametrize("within_ms", [-1, 1 << 31])
def test_a_time_that_is_none_is_refused(decider: Decider, within_ms: int) -> None:
    assert decider.command(Expect("connect", W2, within_ms)) == CommandReply(
        Error.INVALID_REQUEST,
        f"within_ms = {within_ms}: allowed is a whole number of milliseconds, from 0 to 2147483647",
    )


def test_an_unknown_worker_can_not_be_expected(decider: Decider) -> None:
    assert decider.command(Expect("connect", "w9", 1)).error is Error.UNKNOWN_MEMBER_ID
