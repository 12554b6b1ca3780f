"""A member that cannot be sure of its session stops everything by itself (PROTOCOL §8)."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.deadlines import KILL_EARLY_MS
from fairlead.actors.worker.instructions import Fence, Gone, Kill, Start
from fairlead.actors.worker.states import State
from fairlead_tests.membership.driver import (
    HEARTBEAT_MS,
    MARGIN_MS,
    PATIENCE_MS,
    SESSION_MS,
    MemberDriver,
    resources,
    seated,
    spelled,
)

SILENCE = "the group has not answered for so long that the session may end"
KILL = Kill("what had to stop has not stopped in time")


def test_the_session_counts_from_the_sending_time_of_what_was_answered() -> None:
    driver = seated()
    asked_ms = driver.now_ms
    driver.now_ms += HEARTBEAT_MS
    driver.answer()  # asked for an interval ago
    asked_again_ms = driver.now_ms
    assert driver.passes(asked_ms + SESSION_MS - MARGIN_MS - 1 - driver.now_ms) == []
    assert driver.passes(1) == [Fence(SILENCE)]
    assert driver.now_ms < asked_again_ms + SESSION_MS - MARGIN_MS, "no answer, no new session"


def test_what_does_not_stop_by_the_deadline_is_killed() -> None:
    driver = seated()
    assert driver.passes(SESSION_MS - MARGIN_MS) == [Fence(SILENCE)]
    assert driver.stopped("A") == []
    assert driver.passes(MARGIN_MS - KILL_EARLY_MS - 1) == []
    assert driver.passes(1) == [KILL], "in time for the deadline"
    assert driver.passes(1) == [], "once"


def test_nothing_is_killed_where_everything_has_stopped() -> None:
    driver = seated()
    driver.passes(SESSION_MS - MARGIN_MS)
    driver.stopped("A A-0")
    assert (driver.state(), driver.sent[-1].member_epoch) == (State.JOINING, 0)
    assert driver.passes(MARGIN_MS) == []


def test_a_late_answer_calls_no_fence_off_and_starts_nothing() -> None:
    driver = seated()
    driver.passes(PATIENCE_MS)
    last = driver.sent[-1]
    assert driver.passes(SESSION_MS - MARGIN_MS - PATIENCE_MS) == [Fence(SILENCE)]
    assert driver.answer("A A-0 A-1", to=last) == []
    assert (driver.state(), driver.membership.member_epoch) == (State.FENCED, 0)
    assert driver.passes(MARGIN_MS) == [KILL], "nor does it move the deadline"
    driver.stopped("A A-0")
    assert (driver.sent[-1].member_epoch, driver.sent[-1].owned) == (0, ())
    assert driver.answer("A", to=last) == [], "nor does it answer the rejoin"


def test_an_answer_that_lay_unread_past_the_session_starts_nothing() -> None:
    """As when the process was frozen: the answer may be read before the clock is."""
    driver = seated()
    driver.now_ms += SESSION_MS - MARGIN_MS
    assert driver.answer("A A-0 A-1") == [Fence(SILENCE)]
    assert spelled(driver.membership.owned) == "A A-0"


def test_a_join_whose_answer_lay_unread_past_the_session_is_repeated() -> None:
    driver = MemberDriver()
    driver.join()
    driver.now_ms += SESSION_MS
    assert driver.answer("A", epoch=4) == []
    assert (spelled(driver.membership.owned), driver.state()) == ("", State.JOINING)
    assert (driver.sent[-1].member_epoch, len(driver.sent)) == (0, 2)
    assert driver.answer("A", epoch=4) == [Start(resources("A"), 7)]


def test_an_answer_that_lay_unread_within_the_session_of_its_request_counts() -> None:
    driver = seated()
    driver.now_ms += PATIENCE_MS
    driver.passes(0)
    driver.now_ms += SESSION_MS - MARGIN_MS - 1  # past the old session, not past the new one
    assert driver.answer("A A-0 A-1") == [Start(resources("A-1"), 7)]


def test_a_member_that_has_not_joined_yet_has_no_session_to_lose() -> None:
    driver = MemberDriver()
    driver.join()
    for _ in range(10):
        assert driver.passes(PATIENCE_MS) == []
    assert (len(driver.sent), driver.state()) == (11, State.JOINING)


def test_a_fenced_member_says_nothing() -> None:
    driver = seated()
    driver.passes(SESSION_MS - MARGIN_MS)
    count = len(driver.sent)
    assert driver.membership.reconnect(driver.now_ms) == []
    driver.passes(1)
    assert len(driver.sent) == count


def test_a_rejoined_member_begins_a_new_session() -> None:
    driver = seated()
    driver.answer(error=Error.UNKNOWN_MEMBER_ID)
    driver.now_ms += 500
    driver.stopped("A A-0")
    asked_ms = driver.now_ms
    driver.now_ms += 200
    assert driver.answer("B", epoch=9) == [Start(resources("B"), 7)]
    assert driver.passes(asked_ms + SESSION_MS - MARGIN_MS - driver.now_ms - 1) == []
    assert driver.passes(1) == [Fence(SILENCE)]


def test_a_member_that_was_told_to_leave_does_not_rejoin_after_a_fence() -> None:
    driver = seated()
    driver.leave()
    driver.passes(SESSION_MS - MARGIN_MS)
    assert driver.stopped("A A-0") == [Gone()]
    assert driver.state() is State.UNSUBSCRIBED


def test_the_next_tick_is_told_in_advance() -> None:
    driver = seated()
    assert driver.membership.next_tick_ms() == driver.now_ms + PATIENCE_MS
    begun_ms = driver.now_ms
    driver.passes(PATIENCE_MS + 1)
    assert driver.membership.next_tick_ms() == begun_ms + SESSION_MS - MARGIN_MS
    driver.passes(begun_ms + SESSION_MS - MARGIN_MS - driver.now_ms)
    assert driver.membership.next_tick_ms() == begun_ms + SESSION_MS - KILL_EARLY_MS
    assert MemberDriver().membership.next_tick_ms() is None
