"""Nothing runs past its deadline, however late the member looks at its clock (PROTOCOL §8)."""

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.deadlines import KILL_EARLY_MS
from fairlead.actors.worker.instructions import Fence, Gone, Instruction, Kill
from fairlead.actors.worker.states import State
from fairlead_tests.membership.driver import (
    BEGUN_MS,
    HEARTBEAT_MS,
    MARGIN_MS,
    PATIENCE_MS,
    REBALANCE_MS,
    SESSION_MS,
    MemberDriver,
    resources,
    seated,
)

SILENCE = "the group has not answered for so long that the session may end"
LATE = "a revocation was not acknowledged in time"
OVERDUE = Kill("what had to stop has not stopped in time")
REFUSED = "UNSUPPORTED_ASSIGNOR: "


def passes_by_the_millisecond(driver: MemberDriver, until_ms: int) -> list[tuple[int, Instruction]]:
    """Let time pass, and return what is to be done and how long after `BEGUN_MS`."""
    found: list[tuple[int, Instruction]] = []
    while driver.now_ms < until_ms:
        done = driver.passes(1)
        found += [(driver.now_ms - BEGUN_MS, each) for each in done]
    return found


@pytest.mark.parametrize("asleep_ms", [SESSION_MS, SESSION_MS + 1, 30_000, 3_600_000])
def test_who_wakes_after_its_session_kills_at_once(asleep_ms: int) -> None:
    driver = seated()
    assert driver.passes(asleep_ms) == [Kill(SILENCE)]
    assert driver.state() is State.FENCED


@pytest.mark.parametrize("asleep_ms", [SESSION_MS, 30_000])
def test_who_wakes_after_its_session_kills_though_an_answer_is_read_first(asleep_ms: int) -> None:
    driver = seated()
    driver.now_ms += asleep_ms
    assert driver.answer("A A-0 A-1") == [Kill(SILENCE)]
    assert (driver.state(), driver.membership.owned) == (State.FENCED, resources("A A-0"))


def test_who_wakes_after_its_session_kills_though_it_is_read_that_the_group_forgot_it() -> None:
    driver = seated()
    driver.now_ms += 30_000
    assert driver.answer(error=Error.UNKNOWN_MEMBER_ID) == [Kill("UNKNOWN_MEMBER_ID: ")]


def test_who_wakes_after_its_session_and_runs_nothing_has_nothing_to_kill() -> None:
    driver = seated("")
    assert driver.passes(30_000) == []
    assert (driver.state(), driver.sent[-1].member_epoch) == (State.JOINING, 0)


@pytest.mark.parametrize("late_ms", [0, 1, 450, MARGIN_MS - KILL_EARLY_MS - 1])
def test_a_late_tick_does_not_move_the_kill_past_the_deadline(late_ms: int) -> None:
    driver = seated()
    assert driver.passes(SESSION_MS - MARGIN_MS + late_ms) == [Fence(SILENCE)]
    killed = passes_by_the_millisecond(driver, BEGUN_MS + SESSION_MS)
    assert killed == [(SESSION_MS - KILL_EARLY_MS, OVERDUE)]


@pytest.mark.parametrize("late_ms", [MARGIN_MS - KILL_EARLY_MS, MARGIN_MS - 1])
def test_a_tick_that_leaves_no_time_to_stop_kills_at_once(late_ms: int) -> None:
    driver = seated()
    assert driver.passes(SESSION_MS - MARGIN_MS + late_ms) == [Kill(SILENCE)]


def test_a_refusal_near_the_end_of_the_session_does_not_move_the_kill_past_it() -> None:
    driver = seated()
    driver.now_ms += SESSION_MS - MARGIN_MS // 2
    unknown = driver.answer(error=Error.UNKNOWN_MEMBER_ID)
    assert unknown == [Fence("UNKNOWN_MEMBER_ID: ")]
    killed = passes_by_the_millisecond(driver, BEGUN_MS + 2 * SESSION_MS)
    assert killed == [(SESSION_MS - KILL_EARLY_MS, OVERDUE)]


def test_a_refusal_early_in_the_session_leaves_no_more_than_the_margin() -> None:
    driver = seated()
    assert driver.answer(error=Error.FENCED_MEMBER_EPOCH) == [Fence("FENCED_MEMBER_EPOCH: ")]
    killed = passes_by_the_millisecond(driver, BEGUN_MS + 2 * SESSION_MS)
    assert killed == [(MARGIN_MS, OVERDUE)]


def test_who_wakes_after_a_revocations_deadline_kills_at_once() -> None:
    driver = seated()
    asked_ms = driver.now_ms
    driver.answer("A")
    while driver.now_ms + HEARTBEAT_MS < asked_ms + REBALANCE_MS - MARGIN_MS:
        assert driver.passes(HEARTBEAT_MS) == []
        driver.answer()
    assert driver.passes(asked_ms + REBALANCE_MS - driver.now_ms) == [Kill(LATE)]


def test_who_can_not_go_on_kills_what_does_not_stop() -> None:
    driver = seated()
    dead = driver.answer(error=Error.UNSUPPORTED_ASSIGNOR)
    assert dead == [Fence(REFUSED), Gone(REFUSED)]
    assert (driver.state(), driver.membership.next_tick_ms()) == (State.FATAL, BEGUN_MS + MARGIN_MS)
    killed = passes_by_the_millisecond(driver, BEGUN_MS + 2 * SESSION_MS)
    assert killed == [(MARGIN_MS, OVERDUE)]


def test_who_can_not_go_on_and_has_stopped_kills_nothing() -> None:
    driver = seated()
    driver.answer(error=Error.UNSUPPORTED_ASSIGNOR)
    assert driver.stopped("A A-0") == []
    assert passes_by_the_millisecond(driver, BEGUN_MS + 2 * SESSION_MS) == []


def test_who_hears_after_its_session_that_it_can_not_go_on_kills_at_once() -> None:
    driver = seated()
    driver.now_ms += SESSION_MS
    dead = driver.answer(error=Error.UNSUPPORTED_ASSIGNOR)
    assert dead == [Kill(REFUSED), Gone(REFUSED)]


def test_the_end_is_unknown_until_the_first_answer() -> None:
    driver = MemberDriver()
    assert driver.membership.end_ms() is None
    driver.join()
    assert driver.membership.end_ms() is None
    driver.answer("")
    assert driver.membership.end_ms() == BEGUN_MS + SESSION_MS


def test_the_end_moves_with_the_sending_time_of_what_was_answered() -> None:
    driver = seated()
    asked_ms = driver.now_ms
    assert driver.membership.end_ms() == asked_ms + SESSION_MS
    driver.passes(HEARTBEAT_MS)
    assert driver.membership.end_ms() == asked_ms + SESSION_MS, "time alone moves nothing"
    driver.answer()  # asked for an interval ago
    driver.passes(PATIENCE_MS)
    driver.answer()
    assert driver.membership.end_ms() == asked_ms + HEARTBEAT_MS + PATIENCE_MS + SESSION_MS


def test_the_end_is_the_revocations_where_that_is_earlier() -> None:
    driver = seated()
    asked_ms = driver.now_ms
    driver.answer("A")
    while driver.now_ms + HEARTBEAT_MS < asked_ms + REBALANCE_MS - MARGIN_MS:
        driver.passes(HEARTBEAT_MS)
        driver.answer()
    assert driver.membership.end_ms() == asked_ms + REBALANCE_MS


def test_the_end_is_the_kill_once_all_must_stop_and_is_off_when_all_has() -> None:
    driver = seated()
    driver.passes(SESSION_MS - MARGIN_MS)
    assert driver.membership.end_ms() == BEGUN_MS + SESSION_MS - KILL_EARLY_MS
    driver.stopped("A A-0")
    assert driver.membership.end_ms() is None


def test_a_fence_for_another_reason_kills_in_time_for_a_revocations_deadline() -> None:
    driver = seated()
    revoke_by_ms = driver.now_ms + REBALANCE_MS
    driver.answer("A")
    while driver.now_ms + HEARTBEAT_MS < revoke_by_ms - MARGIN_MS:
        assert driver.passes(HEARTBEAT_MS) == []
        driver.answer()
    driver.passes(revoke_by_ms - MARGIN_MS - 1 - driver.now_ms)
    fence = driver.answer(error=Error.FENCED_MEMBER_EPOCH, to=driver.sent[-1])
    assert fence == [Fence("FENCED_MEMBER_EPOCH: ")]
    assert driver.membership.end_ms() == revoke_by_ms - KILL_EARLY_MS


def test_the_end_stands_after_the_kill_until_nothing_runs() -> None:
    driver = seated()
    driver.passes(SESSION_MS - MARGIN_MS)
    end_ms = driver.membership.end_ms()
    assert driver.passes(MARGIN_MS) == [OVERDUE]
    assert (driver.membership.end_ms(), driver.membership.next_tick_ms()) == (end_ms, None)
    driver.stopped("A A-0")
    assert (driver.membership.end_ms(), driver.state()) == (None, State.JOINING)
