"""An assignor that makes some moves now has the group ask for the rest later (PROTOCOL §5, §7)."""

from dataclasses import replace

import pytest
from coordinator import COMPUTE, Coordinator, resources

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.messages.computing import Install, InstallReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.orders import DeleteGroup, Expect, Rebalance
from fairlead.actors.messages.timers import (
    ContinueMoves,
    ExpireSession,
    ReleaseParked,
    RetryAssignor,
)
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata, ScheduledRebalance

DAY_MS = 86_400_000
NOW_MS = 2 * DAY_MS
AGAIN_MS = NOW_MS + 30_000


@pytest.fixture
def coordinator() -> Coordinator:
    """A group of W1 and W2, whose target leaves moves for later."""
    coordinator = Coordinator()
    coordinator.configure("A A-0 B B-0")
    for member_id in ("W1", "W2"):
        coordinator.join(member_id)
        coordinator.settle()
    coordinator.now_ms = NOW_MS
    coordinator.command(Rebalance("connect"))
    compute(coordinator, AGAIN_MS)
    coordinator.settle()
    assert coordinator.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS)
    return coordinator


def compute(coordinator: Coordinator, again_at_ms: int) -> InstallReply:
    """Let the chosen member compute a target that leaves moves until then."""
    assert coordinator.soft.computation is not None
    chosen = coordinator.soft.computation.member_id
    snapshot = coordinator.prepare(chosen)
    made = replace(assign(snapshot), again_at_ms=again_at_ms)
    return coordinator.install(chosen, snapshot, made)


def fail(coordinator: Coordinator) -> None:
    """Let the chosen member fail."""
    assert coordinator.soft.computation is not None
    chosen = coordinator.soft.computation.member_id
    snapshot = coordinator.prepare(chosen)
    epoch = coordinator.current(chosen).member_epoch
    coordinator.carry_out(Install("connect", chosen, epoch, snapshot.group_epoch, None, "no luck"))


def test_the_rest_of_the_moves_is_asked_for_when_it_is_due_and_once(
    coordinator: Coordinator,
) -> None:
    coordinator.now_ms = AGAIN_MS - 1
    assert coordinator.carry_out(ContinueMoves()).records == ()
    coordinator.now_ms = AGAIN_MS
    assert coordinator.carry_out(ContinueMoves()).records == (
        ScheduledRebalance(),
        GroupMetadata(4, Cause(Why.MOVES_DUE, "balanced"), AGAIN_MS),
    )
    assert coordinator.carry_out(ContinueMoves()).records == (), "it fires once"
    assert coordinator.soft.computation is not None


def test_what_the_steady_clock_says_counts_though_the_wall_clock_was_set_back(
    coordinator: Coordinator,
) -> None:
    coordinator.now_ms -= 5
    assert len(coordinator.carry_out(ContinueMoves(AGAIN_MS)).records) == 2


def test_a_clock_that_was_set_back_by_days_puts_nothing_off_for_days(
    coordinator: Coordinator,
) -> None:
    coordinator.now_ms = AGAIN_MS - DAY_MS - 1
    assert len(coordinator.carry_out(ContinueMoves()).records) == 2


def test_a_new_target_that_leaves_nothing_takes_the_time_back(coordinator: Coordinator) -> None:
    coordinator.command(Rebalance("connect"))
    compute(coordinator, 0)
    assert coordinator.group.schedule == ScheduledRebalance()
    coordinator.now_ms = AGAIN_MS
    assert coordinator.carry_out(ContinueMoves()).records == ()


def test_a_new_target_that_leaves_moves_as_well_has_a_time_of_its_own(
    coordinator: Coordinator,
) -> None:
    coordinator.command(Rebalance("connect"))
    compute(coordinator, AGAIN_MS + 7)
    assert coordinator.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS + 7)


def test_where_a_target_is_due_anyway_the_time_that_has_come_is_only_taken_back(
    coordinator: Coordinator,
) -> None:
    coordinator.command(Rebalance("connect"))
    coordinator.now_ms = AGAIN_MS
    assert coordinator.carry_out(ContinueMoves()).records == (ScheduledRebalance(),)
    assert coordinator.carry_out(ContinueMoves()).records == ()


def test_a_failed_attempt_leaves_the_time_as_it_is(coordinator: Coordinator) -> None:
    coordinator.command(Rebalance("connect"))
    fail(coordinator)
    assert coordinator.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS)


def test_moves_that_are_due_while_an_attempt_fails_are_made_by_the_next(
    coordinator: Coordinator,
) -> None:
    coordinator.command(Rebalance("connect"))
    coordinator.now_ms = AGAIN_MS
    coordinator.carry_out(ContinueMoves())
    fail(coordinator)
    assert coordinator.carry_out(ContinueMoves()).records == ()
    coordinator.now_ms = coordinator.group.target.retry_at_ms
    assert coordinator.carry_out(RetryAssignor()).records == (
        GroupMetadata(5, Cause(Why.ASSIGNOR_RETRY, "balanced"), coordinator.now_ms),
    )


def test_a_target_computed_before_the_time_came_and_installed_after_it_has_it_come_anew(
    coordinator: Coordinator,
) -> None:
    coordinator.command(Rebalance("connect"))
    assert coordinator.soft.computation is not None
    chosen = coordinator.soft.computation.member_id
    snapshot = coordinator.prepare(chosen)
    coordinator.now_ms = AGAIN_MS
    coordinator.carry_out(ContinueMoves())
    made = replace(assign(snapshot), again_at_ms=AGAIN_MS)
    assert coordinator.install(chosen, snapshot, made) == InstallReply(Error.NONE)
    (_, bump) = coordinator.carry_out(ContinueMoves()).records
    assert bump == GroupMetadata(5, Cause(Why.MOVES_DUE, "balanced"), AGAIN_MS)


def test_a_restart_of_the_coordinator_forgets_no_moves(coordinator: Coordinator) -> None:
    coordinator.restart()
    assert coordinator.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS)
    coordinator.now_ms = AGAIN_MS
    assert len(coordinator.carry_out(ContinueMoves()).records) == 2
    coordinator.restart()
    assert coordinator.carry_out(ContinueMoves()).records == ()


def test_parked_work_that_is_released_or_expected_leaves_the_time_as_it_is(
    coordinator: Coordinator,
) -> None:
    lost = coordinator.group.share_of("W2")
    coordinator.carry_out(ExpireSession("W2"))
    compute(coordinator, AGAIN_MS)
    coordinator.carry_out(Expect("connect", "http://w2", 5_000))
    parked = dict.fromkeys(lost, NOW_MS + 5_000)
    assert coordinator.group.schedule == ScheduledRebalance(parked, again_at_ms=AGAIN_MS)
    coordinator.now_ms = NOW_MS + 5_000
    coordinator.carry_out(ReleaseParked())
    assert coordinator.group.schedule == ScheduledRebalance(parked, lost, AGAIN_MS)


def test_a_group_that_becomes_empty_has_no_moves_to_make(coordinator: Coordinator) -> None:
    for member_id in ("W1", "W2"):
        coordinator.heartbeat(Heartbeat("connect", member_id, -1, "1"))
    assert coordinator.group.schedule == ScheduledRebalance()
    coordinator.now_ms = AGAIN_MS
    assert coordinator.carry_out(ContinueMoves()).records == ()
    assert coordinator.command(DeleteGroup("connect")).error is Error.NONE


@pytest.mark.parametrize("again_at_ms", [-1, 1, NOW_MS, NOW_MS + 999, NOW_MS + DAY_MS + 1])
def test_a_time_that_is_past_or_too_soon_or_beyond_reason_is_refused_and_the_target_stays(
    coordinator: Coordinator, again_at_ms: int
) -> None:
    coordinator.command(Rebalance("connect"))
    assert compute(coordinator, again_at_ms) == InstallReply(
        Error.INVALID_ASSIGNMENT,
        f"the rest of the moves is to be made at {again_at_ms} ms: allowed is 0, or 1000 to"
        f" {DAY_MS} ms after the snapshot's {NOW_MS}; the target stays as it was: correct the"
        " assignor before the next attempt",
    )
    assert coordinator.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS)


@pytest.mark.parametrize("ahead_ms", [1_000, DAY_MS])
def test_the_times_that_are_allowed_are_a_second_to_a_day_ahead(
    coordinator: Coordinator, ahead_ms: int
) -> None:
    coordinator.command(Rebalance("connect"))
    assert compute(coordinator, NOW_MS + ahead_ms) == InstallReply(Error.NONE)


def test_the_metadata_of_the_last_install_comes_back_with_the_next_snapshot(
    coordinator: Coordinator,
) -> None:
    coordinator.command(Rebalance("connect"))
    assert coordinator.soft.computation is not None
    chosen = coordinator.soft.computation.member_id
    snapshot = coordinator.prepare(chosen)
    coordinator.install(chosen, snapshot, replace(assign(snapshot), metadata=b"spent"))
    coordinator.command(Rebalance("connect"))
    assert coordinator.beat(chosen, " ".join(map(str, resources("")))).error is COMPUTE
    assert coordinator.prepare(chosen).assignor_metadata == b"spent"
