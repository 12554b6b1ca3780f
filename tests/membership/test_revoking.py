"""What has to go goes first, and counts as gone only when the group has answered for it."""

import pytest

from fairlead.actors.worker.deadlines import KILL_EARLY_MS
from fairlead.actors.worker.instructions import Fence, Kill, Start, Stop
from fairlead.actors.worker.states import State
from fairlead_tests.membership.driver import (
    HEARTBEAT_MS,
    MARGIN_MS,
    PATIENCE_MS,
    REBALANCE_MS,
    SESSION_MS,
    MemberDriver,
    resources,
    seated,
    spelled,
)

LATE = "a revocation was not acknowledged in time"


def owned_of(driver: MemberDriver) -> str | None:
    """What the latest request says that it owns."""
    return spelled(driver.sent[-1].owned)


def test_what_is_granted_starts_only_when_what_is_revoked_has_stopped_and_was_answered_for() -> (
    None
):
    driver = seated("A A-0")
    assert driver.answer("A A-1", epoch=1) == [Stop(resources("A-0"))]
    assert (driver.state(), owned_of(driver)) == (State.RECONCILING, None)
    assert driver.stopped("A-0") == [], "an answer starts things, a stop does not"
    assert (driver.state(), owned_of(driver)) == (State.ACKNOWLEDGING, "A")
    assert driver.answer("A A-1", epoch=2) == [Start(resources("A-1"), 7)]
    assert owned_of(driver) == "A A-1"


def test_nothing_starts_by_a_heartbeat_that_is_answered_while_something_still_stops() -> None:
    driver = seated("A A-0")
    driver.answer("A A-1")
    assert driver.answer() == []
    assert spelled(driver.membership.owned) == "A A-0"
    driver.stopped("A-0")
    assert driver.answer() == [Start(resources("A-1"), 7)]


def test_a_new_target_while_revoking_is_the_one_that_counts() -> None:
    driver = seated("A A-0 A-1")
    assert driver.answer("A A-1") == [Stop(resources("A-0"))]
    assert driver.answer("A") == [Stop(resources("A-1"))], "A-0 was told already"
    driver.stopped("A-0")
    assert driver.state() is State.RECONCILING
    driver.stopped("A-1")
    assert (driver.state(), owned_of(driver)) == (State.ACKNOWLEDGING, "A")


def test_what_comes_back_while_it_stops_is_started_again_when_it_has_stopped() -> None:
    driver = seated("A A-0")
    driver.answer("A")
    assert driver.answer("A A-0") == []
    assert driver.stopped("A-0") == []
    assert owned_of(driver) == "A"
    assert driver.answer() == [Start(resources("A-0"), 7)]


def revoking(text: str = "A") -> tuple[MemberDriver, int]:
    """A member that is to give something up, and when its last answer before that was asked."""
    driver = seated("A A-0")
    driver.now_ms += HEARTBEAT_MS
    driver.answer()
    asked_ms = driver.now_ms
    driver.now_ms += HEARTBEAT_MS
    driver.answer()  # asked for at `asked_ms`: the last answer before the one that revokes
    driver.now_ms += HEARTBEAT_MS
    assert driver.answer(text) == [Stop(resources("A-0"))]
    return driver, asked_ms


def beats_until(driver: MemberDriver, until_ms: int) -> None:
    """Let time pass with every heartbeat answered."""
    while driver.now_ms + HEARTBEAT_MS < until_ms:
        assert driver.passes(HEARTBEAT_MS) == []
        driver.answer()
    assert driver.passes(until_ms - driver.now_ms - 1) == []


def test_a_revocation_is_due_a_rebalance_timeout_after_the_last_answered_request_before_it() -> (
    None
):
    driver, before_ms = revoking()
    beats_until(driver, before_ms + REBALANCE_MS - MARGIN_MS)
    assert driver.passes(1) == [Fence(LATE)]
    assert driver.passes(MARGIN_MS - KILL_EARLY_MS - 1) == []
    assert driver.passes(1) == [Kill("what had to stop has not stopped in time")]


def test_a_revocation_that_stopped_but_was_not_answered_for_is_as_late() -> None:
    driver, before_ms = revoking()
    while driver.now_ms + PATIENCE_MS < before_ms + REBALANCE_MS - MARGIN_MS:
        driver.passes(HEARTBEAT_MS)
        driver.answer()
    driver.stopped("A-0")
    report = driver.sent[-1]
    assert spelled(report.owned) == "A"
    assert driver.passes(before_ms + REBALANCE_MS - MARGIN_MS - driver.now_ms) == [Fence(LATE)]
    assert driver.answer(to=report) == [], "a late answer does not call it off"
    assert driver.state() is State.FENCED


def test_an_answer_to_a_request_from_before_the_stop_is_no_acknowledgement() -> None:
    driver, before_ms = revoking()
    driver.answer()  # it said that nothing had changed
    beats_until(driver, before_ms + REBALANCE_MS - MARGIN_MS)
    assert driver.passes(1) == [Fence(LATE)]


def test_an_answered_report_ends_a_revocation() -> None:
    driver, before_ms = revoking()
    driver.stopped("A-0")
    driver.answer(epoch=2)
    assert driver.state() is State.STABLE
    beats_until(driver, before_ms + REBALANCE_MS + SESSION_MS)


def test_a_second_revocation_does_not_put_off_the_first() -> None:
    driver, before_ms = revoking()
    driver.now_ms += HEARTBEAT_MS
    assert driver.answer("") == [Stop(resources("A"))]
    driver.stopped("A")
    beats_until(driver, before_ms + REBALANCE_MS - MARGIN_MS)
    assert driver.passes(1) == [Fence(LATE)]


@pytest.mark.parametrize("text", ["A", "A A-1"])
def test_a_lost_report_is_repeated_in_full(text: str) -> None:
    driver, _ = revoking(text)
    driver.stopped("A-0")
    driver.passes(PATIENCE_MS)
    assert (driver.sent[-1].is_full, owned_of(driver)) == (True, "A")
