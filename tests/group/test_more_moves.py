"""An assignor that makes some moves now has the group ask for the rest later (PROTOCOL §5, §7)."""

from dataclasses import replace

import pytest

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.messages.commands import (
    ContinueMoves,
    ExpireSession,
    ReleaseParked,
    RetryAssignor,
)
from fairlead.actors.messages.computing import Install, InstallReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import DeleteGroup, Expect, Rebalance
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata, ScheduledRebalance
from fairlead_tests.decider import COMPUTE, Decider, resources

DAY_MS = 86_400_000
NOW_MS = 2 * DAY_MS
AGAIN_MS = NOW_MS + 30_000


@pytest.fixture
def decider() -> Decider:
    """A group of W1 and W2, whose target leaves moves for later."""
    decider = Decider()
    decider.configure("A A-0 B B-0")
    for member_id in ("W1", "W2"):
        decider.join(member_id)
        decider.settle()
    decider.now_ms = NOW_MS
    decider.command(Rebalance("connect"))
    compute(decider, AGAIN_MS)
    decider.settle()
    assert decider.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS)
    return decider


def compute(decider: Decider, again_at_ms: int) -> InstallReply:
    """Let the chosen member compute a target that leaves moves until then."""
    assert decider.soft.computation is not None
    chosen = decider.soft.computation.member_id
    snapshot = decider.prepare(chosen)
    made = replace(assign(snapshot), again_at_ms=again_at_ms)
    return decider.install(chosen, snapshot, made)


def fail(decider: Decider) -> None:
    """Let the chosen member fail."""
    assert decider.soft.computation is not None
    chosen = decider.soft.computation.member_id
    snapshot = decider.prepare(chosen)
    epoch = decider.current(chosen).member_epoch
    decider.carry_out(Install("connect", chosen, epoch, snapshot.group_epoch, None, "no luck"))


def test_the_rest_of_the_moves_is_asked_for_when_it_is_due_and_once(
    decider: Decider,
) -> None:
    decider.now_ms = AGAIN_MS - 1
    assert decider.carry_out(ContinueMoves()).records == ()
    decider.now_ms = AGAIN_MS
    assert decider.carry_out(ContinueMoves()).records == (
        ScheduledRebalance(),
        GroupMetadata(4, Cause(Why.MOVES_DUE, "balanced"), AGAIN_MS),
    )
    assert decider.carry_out(ContinueMoves()).records == (), "it fires once"
    assert decider.soft.computation is not None


def test_what_the_steady_clock_says_counts_though_the_wall_clock_was_set_back(
    decider: Decider,
) -> None:
    decider.now_ms -= 5
    assert len(decider.carry_out(ContinueMoves(AGAIN_MS)).records) == 2


def test_a_clock_that_was_set_back_by_days_puts_nothing_off_for_days(
    decider: Decider,
) -> None:
    decider.now_ms = AGAIN_MS - DAY_MS - 1
    assert len(decider.carry_out(ContinueMoves()).records) == 2


def test_a_new_target_that_leaves_nothing_takes_the_time_back(decider: Decider) -> None:
    decider.command(Rebalance("connect"))
    compute(decider, 0)
    assert decider.group.schedule == ScheduledRebalance()
    decider.now_ms = AGAIN_MS
    assert decider.carry_out(ContinueMoves()).records == ()


def test_a_new_target_that_leaves_moves_as_well_has_a_time_of_its_own(
    decider: Decider,
) -> None:
    decider.command(Rebalance("connect"))
    compute(decider, AGAIN_MS + 7)
    assert decider.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS + 7)


def test_where_a_target_is_due_anyway_the_time_that_has_come_is_only_taken_back(
    decider: Decider,
) -> None:
    decider.command(Rebalance("connect"))
    decider.now_ms = AGAIN_MS
    assert decider.carry_out(ContinueMoves()).records == (ScheduledRebalance(),)
    assert decider.carry_out(ContinueMoves()).records == ()


def test_a_failed_attempt_leaves_the_time_as_it_is(decider: Decider) -> None:
    decider.command(Rebalance("connect"))
    fail(decider)
    assert decider.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS)


def test_moves_that_are_due_while_an_attempt_fails_are_made_by_the_next(
    decider: Decider,
) -> None:
    decider.command(Rebalance("connect"))
    decider.now_ms = AGAIN_MS
    decider.carry_out(ContinueMoves())
    fail(decider)
    assert decider.carry_out(ContinueMoves()).records == ()
    decider.now_ms = decider.group.target.retry_at_ms
    assert decider.carry_out(RetryAssignor()).records == (
        GroupMetadata(5, Cause(Why.ASSIGNOR_RETRY, "balanced"), decider.now_ms),
    )


def test_a_target_computed_before_the_time_came_and_installed_after_it_has_it_come_anew(
    decider: Decider,
) -> None:
    decider.command(Rebalance("connect"))
    assert decider.soft.computation is not None
    chosen = decider.soft.computation.member_id
    snapshot = decider.prepare(chosen)
    decider.now_ms = AGAIN_MS
    decider.carry_out(ContinueMoves())
    made = replace(assign(snapshot), again_at_ms=AGAIN_MS)
    assert decider.install(chosen, snapshot, made) == InstallReply(Error.NONE)
    (_, bump) = decider.carry_out(ContinueMoves()).records
    assert bump == GroupMetadata(5, Cause(Why.MOVES_DUE, "balanced"), AGAIN_MS)


def test_a_restart_of_the_coordinator_forgets_no_moves(decider: Decider) -> None:
    decider.restart()
    assert decider.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS)
    decider.now_ms = AGAIN_MS
    assert len(decider.carry_out(ContinueMoves()).records) == 2
    decider.restart()
    assert decider.carry_out(ContinueMoves()).records == ()


def test_parked_work_that_is_released_or_expected_leaves_the_time_as_it_is(
    decider: Decider,
) -> None:
    lost = decider.group.share_of("W2")
    decider.carry_out(ExpireSession("W2"))
    compute(decider, AGAIN_MS)
    decider.carry_out(Expect("connect", "http://w2", 5_000))
    parked = dict.fromkeys(lost, NOW_MS + 5_000)
    assert decider.group.schedule == ScheduledRebalance(parked, again_at_ms=AGAIN_MS)
    decider.now_ms = NOW_MS + 5_000
    decider.carry_out(ReleaseParked())
    assert decider.group.schedule == ScheduledRebalance(parked, lost, AGAIN_MS)


def test_a_group_that_becomes_empty_has_no_moves_to_make(decider: Decider) -> None:
    for member_id in ("W1", "W2"):
        decider.heartbeat(Heartbeat("connect", member_id, -1, "1"))
    assert decider.group.schedule == ScheduledRebalance()
    decider.now_ms = AGAIN_MS
    assert decider.carry_out(ContinueMoves()).records == ()
    assert decider.command(DeleteGroup("connect")).error is Error.NONE


@pytest.mark.parametrize("again_at_ms", [-1, 1, NOW_MS, NOW_MS + 999, NOW_MS + DAY_MS + 1])
def test_a_time_that_is_past_or_too_soon_or_beyond_reason_is_refused_and_the_target_stays(
    decider: Decider, again_at_ms: int
) -> None:
    decider.command(Rebalance("connect"))
    assert compute(decider, again_at_ms) == InstallReply(
        Error.INVALID_ASSIGNMENT,
        f"the rest of the moves is to be made at {again_at_ms} ms: allowed is 0, or 1000 to"
        f" {DAY_MS} ms after the snapshot's {NOW_MS}; the target stays as it was: correct the"
        " assignor before the next attempt",
    )
    assert decider.group.schedule == ScheduledRebalance(again_at_ms=AGAIN_MS)


@pytest.mark.parametrize("ahead_ms", [1_000, DAY_MS])
def test_the_times_that_are_allowed_are_a_second_to_a_day_ahead(
    decider: Decider, ahead_ms: int
) -> None:
    decider.command(Rebalance("connect"))
    assert compute(decider, NOW_MS + ahead_ms) == InstallReply(Error.NONE)


def test_the_metadata_of_the_last_install_comes_back_with_the_next_snapshot(
    decider: Decider,
) -> None:
    decider.command(Rebalance("connect"))
    assert decider.soft.computation is not None
    chosen = decider.soft.computation.member_id
    snapshot = decider.prepare(chosen)
    decider.install(chosen, snapshot, replace(assign(snapshot), metadata=b"spent"))
    decider.command(Rebalance("connect"))
    assert decider.beat(chosen, " ".join(map(str, resources("")))).error is COMPUTE
    assert decider.prepare(chosen).assignor_metadata == b"spent"
