"""A member leaves when it has given everything up, and says so until it is heard."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.worker.instructions import Fence, Gone, Stop
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
)


def leaving() -> MemberDriver:
    """A member that has said goodbye for the first time."""
    driver = seated()
    assert driver.leave() == [Stop(resources("A A-0"))]
    assert driver.stopped("A") == []
    assert driver.state() is State.PREPARE_LEAVING
    assert driver.stopped("A-0") == []
    assert driver.state() is State.LEAVING
    assert driver.sent[-1] == Heartbeat("g", "m", -1, "i", len(driver.sent))
    return driver


def test_a_member_that_leaves_stops_everything_first() -> None:
    driver = leaving()
    assert driver.answer(epoch=-1) == [Gone()]
    assert (driver.state(), driver.passes(SESSION_MS)) == (State.UNSUBSCRIBED, [])


def test_a_member_goes_on_beating_while_it_stops_and_takes_nothing_new() -> None:
    driver = seated()
    driver.leave()
    count = len(driver.sent)
    for _ in range(8):
        driver.passes(HEARTBEAT_MS)
        assert driver.answer("A A-0 A-1") == []
    assert len(driver.sent) == count + 8
    assert driver.membership.owned == resources("A A-0")


def test_what_is_revoked_from_a_member_that_leaves_has_its_deadline_all_the_same() -> None:
    driver = seated()
    asked_ms = driver.now_ms
    driver.leave()
    driver.passes(HEARTBEAT_MS)
    assert driver.answer("A") == [], "it was told to stop already"
    while driver.now_ms + HEARTBEAT_MS < asked_ms + REBALANCE_MS - MARGIN_MS:
        assert driver.passes(HEARTBEAT_MS) == []
        driver.answer()
    late = Fence("a revocation was not acknowledged in time")
    assert driver.passes(asked_ms + REBALANCE_MS - MARGIN_MS - driver.now_ms) == [late]


def test_the_answer_to_a_heartbeat_from_before_is_no_answer_to_the_goodbye() -> None:
    driver = seated()
    beat = driver.sent[-1]
    driver.leave()
    driver.stopped("A A-0")
    assert (driver.answer(to=beat), driver.state()) == ([], State.LEAVING)


def test_a_goodbye_is_repeated_until_it_is_answered_for_at_most_a_session() -> None:
    driver = leaving()
    count = len(driver.sent)
    driver.passes(PATIENCE_MS)
    driver.passes(PATIENCE_MS)
    assert [each.member_epoch for each in driver.sent[count - 1 :]] == [-1, -1, -1]
    assert driver.passes(SESSION_MS - 2 * PATIENCE_MS) == [Gone()]
    assert driver.state() is State.UNSUBSCRIBED


def test_any_answer_to_a_goodbye_will_do() -> None:
    driver = leaving()
    assert driver.answer(error=Error.UNKNOWN_MEMBER_ID) == [Gone()]


def test_a_member_that_runs_nothing_says_goodbye_at_once() -> None:
    driver = seated("")
    assert driver.leave() == []
    assert (driver.state(), driver.sent[-1].member_epoch) == (State.LEAVING, -1)


def test_a_member_that_never_joined_is_gone_at_once() -> None:
    driver = MemberDriver()
    assert (driver.leave(), driver.sent) == ([Gone()], [])


def test_to_be_told_twice_changes_nothing() -> None:
    driver = seated()
    driver.leave()
    count = len(driver.sent)
    assert (driver.leave(), len(driver.sent)) == ([], count)
    driver.stopped("A A-0")
    assert (driver.leave(), len(driver.sent)) == ([], count + 1)


def test_whoever_missed_that_it_is_gone_is_told_again() -> None:
    driver = leaving()
    driver.answer(epoch=-1)
    assert driver.leave() == [Gone()]


def test_a_goodbye_is_said_to_a_group_that_is_served_by_somebody_new() -> None:
    driver = leaving()
    driver.take(driver.membership.reconnect(driver.now_ms))
    assert [each.member_epoch for each in driver.sent[-2:]] == [-1, -1]
    assert driver.answer(epoch=-1) == [Gone()]
