"""A member follows its group's session and interval, and fences itself by what is known (§8)."""

from dataclasses import replace

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.deadlines import SILENCE
from fairlead.actors.worker.instructions import Fence
from fairlead_tests.membership.driver import (
    BEGUN_MS,
    HEARTBEAT_MS,
    MARGIN_MS,
    PATIENCE_MS,
    SESSION_MS,
    TIMING,
    MemberDriver,
    seated,
)

LONG_MS, SHORT_MS = 45_000, 12_000
"""Sessions beside the configured 10 s that the group goes over to."""


def sessions_said(driver: MemberDriver) -> list[int]:
    """What the requests say of the session, -1 for nothing."""
    return [each.session_timeout_ms for each in driver.sent]


def settled(session_ms: int) -> MemberDriver:
    """A stable member whose group has told it this session, and has heard so."""
    driver = seated()
    driver.answer(session_timeout_ms=session_ms)
    driver.answer(session_timeout_ms=session_ms)
    return driver


def test_the_session_is_said_in_full_requests_and_when_it_changed() -> None:
    driver = seated()
    driver.answer(session_timeout_ms=LONG_MS)
    driver.answer(session_timeout_ms=LONG_MS)
    driver.passes(PATIENCE_MS)
    assert sessions_said(driver) == [SESSION_MS, -1, -1, -1, LONG_MS, -1, LONG_MS]


def test_a_shorter_session_counts_from_the_sending_time_of_the_request_that_was_told() -> None:
    driver = settled(LONG_MS)
    asked_ms = driver.now_ms
    driver.now_ms += HEARTBEAT_MS
    driver.answer(session_timeout_ms=SHORT_MS)
    assert driver.membership.end_ms() == asked_ms + SHORT_MS
    assert sessions_said(driver)[-1] == SHORT_MS


def test_a_longer_session_counts_only_once_the_group_has_answered_that_it_was_heard() -> None:
    """A group that falls back meanwhile, even by a crash, must know by what a member fences."""
    driver = seated()
    driver.answer(session_timeout_ms=LONG_MS)
    assert driver.membership.end_ms() == BEGUN_MS + SESSION_MS
    driver.now_ms += HEARTBEAT_MS
    driver.answer(session_timeout_ms=LONG_MS)
    assert driver.membership.end_ms() == BEGUN_MS + LONG_MS, "from when it was said"


def test_a_longer_session_whose_report_is_lost_does_not_count() -> None:
    driver = seated()
    driver.answer(session_timeout_ms=LONG_MS)
    assert driver.passes(SESSION_MS - MARGIN_MS) == [Fence(SILENCE)]


def test_a_group_that_falls_back_before_it_heard_of_the_longer_session_is_followed() -> None:
    driver = seated()
    driver.answer(session_timeout_ms=LONG_MS)
    driver.now_ms += HEARTBEAT_MS
    driver.answer(session_timeout_ms=SESSION_MS)
    assert driver.membership.end_ms() == BEGUN_MS + SESSION_MS


def test_a_group_that_says_nothing_of_the_session_leaves_it_as_it_is() -> None:
    driver = settled(LONG_MS)
    driver.passes(HEARTBEAT_MS)
    asked_ms = driver.sent[-1], driver.now_ms - HEARTBEAT_MS
    driver.answer()
    assert driver.membership.end_ms() == asked_ms[1] + LONG_MS


def test_a_refusal_tells_nothing_of_the_session() -> None:
    driver = seated()
    driver.answer(error=Error.NOT_COORDINATOR, session_timeout_ms=SHORT_MS, heartbeat_interval_ms=1)
    assert driver.membership.timing == TIMING


def test_the_session_that_was_learnt_holds_for_the_next_seat() -> None:
    driver = settled(LONG_MS)
    driver.answer(error=Error.UNKNOWN_MEMBER_ID)
    driver.stopped("A A-0")
    asked_ms = driver.now_ms
    assert driver.sent[-1].session_timeout_ms == LONG_MS
    driver.answer("A", epoch=4)
    assert driver.membership.end_ms() == asked_ms + LONG_MS


def test_the_interval_is_the_groups_and_with_it_how_long_an_answer_may_take() -> None:
    driver = seated()
    driver.answer(heartbeat_interval_ms=2 * HEARTBEAT_MS)
    assert driver.membership.timing == replace(TIMING, heartbeat_interval_ms=2 * HEARTBEAT_MS)
    count = len(driver.sent)
    assert (driver.passes(PATIENCE_MS + HEARTBEAT_MS - 1), len(driver.sent)) == ([], count)
    assert (driver.passes(1), len(driver.sent)) == ([], count + 1)


def test_the_interval_is_not_lost_by_an_answer_that_says_nothing_of_it() -> None:
    driver = seated()
    driver.answer(heartbeat_interval_ms=2 * HEARTBEAT_MS)
    driver.answer()
    assert driver.membership.timing.heartbeat_interval_ms == 2 * HEARTBEAT_MS
