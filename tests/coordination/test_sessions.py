"""How long the group waits for a member: its own session, or the longer one (PROTOCOL §8)."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.commands import AddressedReply, CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.model import Cause, Why
from fairlead_tests.coordination.driver import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    CoordinatorDriver,
)
from fairlead_tests.decider import COOPERATIVE

LONG_MS = 3 * SESSION_MS
DELAY_MS = 2 * SESSION_MS


def joins(driver: CoordinatorDriver, member: str = "a", **said: object) -> Heartbeat:
    """Have a member join, and say what it says."""
    request = replace(driver.joining(member), **said)  # type: ignore[arg-type]
    driver.asks(request)
    return request


def sessions_told(said: list[AddressedReply]) -> list[int]:
    """By which session the members that are answered are to fence themselves."""
    replies = [each.reply for each in said]
    return [each.session_timeout_ms for each in replies if isinstance(each, HeartbeatReply)]


def goes_by(driver: CoordinatorDriver, session_ms: int) -> None:
    """Have the group go by another session from now on."""
    (said,) = driver.send(ConfigureGroup("connect", {"session.timeout.ms": str(session_ms)}))
    assert isinstance(said.reply, CommandReply)
    assert said.reply.error is Error.NONE, said.reply


def lives_for(driver: CoordinatorDriver, milliseconds: int) -> None:
    """Hold that `a`, which is silent from now on, is a member for just so long."""
    driver.passes(milliseconds - 1)
    assert "a" in driver.group.members
    driver.passes(1)
    assert "a" not in driver.group.members


def test_every_answer_tells_the_session_to_go_by(driver: CoordinatorDriver) -> None:
    assert sessions_told(driver.asks(driver.joining("a"))) == [SESSION_MS]
    driver.compute("a")
    assert sessions_told(driver.passes(HEARTBEAT_MS)) == []
    assert sessions_told(driver.asks(driver.joining("a"))) == [SESSION_MS]


@pytest.mark.parametrize("session_ms", [SESSION_MS // 2, LONG_MS])
def test_the_group_waits_for_the_longer_of_its_session_and_the_members(
    driver: CoordinatorDriver, session_ms: int
) -> None:
    joins(driver, session_timeout_ms=session_ms)
    lives_for(driver, max(session_ms, SESSION_MS))


def test_what_a_member_goes_by_is_kept_in_its_record_and_bumps_nothing(
    driver: CoordinatorDriver,
) -> None:
    joins(driver)
    driver.compute("a")
    driver.asks(driver.joining("a"))
    end, epoch = driver.group.end, driver.group.group_epoch
    driver.asks(driver.request("a", session_timeout_ms=LONG_MS))
    assert (driver.group.end, driver.group.group_epoch) == (end + 1, epoch)
    assert driver.group.members["a"].metadata.session_timeout_ms == LONG_MS
    driver.asks(driver.request("a", session_timeout_ms=LONG_MS), driver.request("a"))
    assert driver.group.end == end + 1


def test_after_a_restart_a_member_has_the_longer_session(driver: CoordinatorDriver) -> None:
    joins(driver, session_timeout_ms=LONG_MS)
    driver.open()
    lives_for(driver, LONG_MS)


def test_a_shorter_session_holds_once_the_member_says_that_it_goes_by_it(
    driver: CoordinatorDriver,
) -> None:
    goes_by(driver, LONG_MS)
    joins(driver, session_timeout_ms=LONG_MS)
    driver.compute("a")
    goes_by(driver, SESSION_MS)
    driver.asks(driver.joining("a"))
    driver.passes(LONG_MS - 1)
    assert sessions_told(driver.asks(driver.joining("a"))) == [SESSION_MS]
    driver.asks(driver.request("a", session_timeout_ms=SESSION_MS))
    lives_for(driver, SESSION_MS)


def test_a_longer_session_is_written_down_before_the_member_is_told(
    driver: CoordinatorDriver,
) -> None:
    joins(driver, session_timeout_ms=SESSION_MS)
    driver.compute("a")
    driver.asks(driver.joining("a"))
    goes_by(driver, LONG_MS)
    driver.asks(driver.request("a"))
    assert driver.group.members["a"].metadata.session_timeout_ms == LONG_MS
    goes_by(driver, SESSION_MS)
    driver.open()
    lives_for(driver, LONG_MS)


def test_a_held_request_that_is_answered_with_a_longer_session_is_waited_for_so_long(
    driver: CoordinatorDriver,
) -> None:
    joins(driver, session_timeout_ms=SESSION_MS)
    driver.compute("a")
    driver.asks(driver.joining("a"))
    assert driver.asks(driver.request("a")) == [], "held"
    goes_by(driver, LONG_MS)
    assert sessions_told(driver.passes(HEARTBEAT_MS)) == [LONG_MS]
    lives_for(driver, LONG_MS - HEARTBEAT_MS)


def test_a_timer_ends_only_the_seat_that_it_was_set_for(driver: CoordinatorDriver) -> None:
    joins(driver)
    driver.asks(driver.request("a", -1))
    driver.passes(SESSION_MS - 1)
    joins(driver)
    lives_for(driver, SESSION_MS)


# Members that are away.


def leaves_for_a_while(driver: CoordinatorDriver) -> None:
    """Have `a`, of instance i, run a connector and leave for a while."""
    driver.settings = replace(SETTINGS, max_delay_ms=DELAY_MS)
    driver.open()
    driver.put("A")
    joins(driver, instance_id="i")
    driver.compute("a")
    joins(driver, instance_id="i")
    driver.asks(driver.full("a", "A"))
    driver.asks(driver.request("a", -2, instance_id="i"))
    assert driver.group.members["a"].current.member_epoch == -2


def test_who_left_for_a_while_is_waited_for_as_long_as_a_loss_may_wait(
    driver: CoordinatorDriver,
) -> None:
    leaves_for_a_while(driver)
    lives_for(driver, DELAY_MS)
    assert driver.group.bump is not None
    assert driver.group.bump.cause == Cause(Why.SESSION_EXPIRED, "http://a")


def test_who_left_for_a_while_is_waited_for_at_least_a_session(driver: CoordinatorDriver) -> None:
    leaves_for_a_while(driver)
    driver.settings = replace(SETTINGS, max_delay_ms=0)
    driver.open()
    lives_for(driver, SESSION_MS)


def test_after_a_restart_who_left_for_a_while_has_the_whole_delay(
    driver: CoordinatorDriver,
) -> None:
    leaves_for_a_while(driver)
    driver.passes(DELAY_MS - 1)
    driver.open()
    lives_for(driver, DELAY_MS)


def test_who_returns_has_a_session_again(driver: CoordinatorDriver) -> None:
    leaves_for_a_while(driver)
    again = Heartbeat(
        "connect",
        "a",
        0,
        "i-a2",
        1,
        instance_id="i",
        rebalance_timeout_ms=REBALANCE_MS,
        assignors=COOPERATIVE,
        owned=(),
        coordinator_epoch=driver.coordinator.coordinator_epoch,
    )
    driver.asks(again)
    lives_for(driver, SESSION_MS)


def test_the_timer_of_the_member_id_that_left_finds_nobody(driver: CoordinatorDriver) -> None:
    leaves_for_a_while(driver)
    for _ in range(DELAY_MS // HEARTBEAT_MS + 1):
        said = driver.asks(replace(driver.joining("b"), instance_id="i"))
        assert all(isinstance(each.reply, HeartbeatReply) for each in said)
        driver.passes(HEARTBEAT_MS)
    assert set(driver.group.members) == {"b"}
    assert set(map(str, driver.group.members["b"].current.assigned)) == {"A"}


def test_a_late_word_of_the_process_that_left_is_answered_and_never_held(
    driver: CoordinatorDriver,
) -> None:
    leaves_for_a_while(driver)
    driver.open()
    (said,) = driver.asks(driver.request("a", 1))
    assert isinstance(said.reply, HeartbeatReply)
    assert (said.reply.error, driver.coordinator.traffic().held) == (Error.FENCED_MEMBER_EPOCH, 0)


def test_the_beat_that_a_temporary_leave_overtakes_is_never_answered(
    driver: CoordinatorDriver,
) -> None:
    driver.put("A")
    joins(driver, instance_id="i")
    driver.compute("a")
    joins(driver, instance_id="i")
    beat = driver.request("a")
    driver.asks(beat)
    assert driver.coordinator.traffic().held == 1
    driver.coordinator.submit(driver.request("a", -2, instance_id="i"), "a", driver.now)
    replies = [each.reply for each in driver.flush()]
    assert [
        (each.member_epoch, each.sequence) for each in replies if isinstance(each, HeartbeatReply)
    ] == [(-2, beat.sequence + 1)]
    assert driver.passes(HEARTBEAT_MS) == []


def test_the_epoch_of_an_expired_session_says_when_the_member_was_last_heard_of(
    driver: CoordinatorDriver,
) -> None:
    joins(driver)
    driver.passes(SESSION_MS // 2)
    driver.asks(driver.joining("a"))
    heard_ms = driver.now.wall_ms
    driver.passes(SESSION_MS)
    assert driver.group.bump is not None
    assert (driver.group.bump.cause.why, driver.group.bump.since_ms) == (
        Why.SESSION_EXPIRED,
        heard_ms,
    )


def test_a_group_that_was_restarted_does_not_say_when_it_last_heard_of_a_silent_member(
    driver: CoordinatorDriver,
) -> None:
    joins(driver)
    driver.open()
    driver.passes(SESSION_MS)
    assert driver.group.bump is not None
    assert (driver.group.bump.cause.why, driver.group.bump.since_ms) == (Why.SESSION_EXPIRED, 0)
