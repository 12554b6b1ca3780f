"""A member names the process of the coordinator that it has heard of, and learns of the next."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.heartbeats import BACKOFF_MS
from fairlead.actors.worker.instructions import Fence, Gone
from fairlead.actors.worker.states import State
from fairlead.events.model import Resource
from fairlead_tests.membership.driver import (
    HEARTBEAT_MS,
    MARGIN_MS,
    SESSION_MS,
    MemberDriver,
    seated,
)


def refuse(driver: MemberDriver, number: int) -> list[object]:
    """Have the process of that number refuse the latest request as not meant for it."""
    refused = driver.answer(error=Error.NOT_COORDINATOR, coordinator_epoch=number)
    return list(refused)


def test_a_newcomer_joins_at_once_with_the_number_that_it_is_told() -> None:
    driver = MemberDriver()
    driver.join()
    assert refuse(driver, 7) == []
    assert [(each.member_epoch, each.coordinator_epoch) for each in driver.sent] == [
        (0, -1),
        (0, 7),
    ]
    assert [each.sequence for each in driver.sent] == [1, 2]
    assert driver.state() is State.JOINING


def test_who_runs_something_says_everything_anew_and_stops_nothing() -> None:
    driver = seated("A")
    asked = len(driver.sent)
    assert refuse(driver, 8) == []
    (again,) = driver.sent[asked:]
    assert (again.coordinator_epoch, again.is_full, again.owned) == (8, True, (Resource("A"),))
    assert driver.state() is State.STABLE


def test_a_refusal_keeps_no_session_alive() -> None:
    driver = seated("A")
    driver.passes(SESSION_MS - MARGIN_MS - 1)
    refuse(driver, 8)
    (fence,) = driver.passes(1)
    assert isinstance(fence, Fence)


def test_a_goodbye_is_said_again_at_once() -> None:
    driver = seated("")
    driver.leave()
    assert refuse(driver, 8) == []
    assert (driver.sent[-1].member_epoch, driver.sent[-1].coordinator_epoch) == (-1, 8)
    assert driver.answer(epoch=-1) == [Gone()]


def test_a_silence_that_another_process_asked_for_is_over() -> None:
    driver = seated("A")
    driver.answer(throttle_time_ms=HEARTBEAT_MS)
    asked = len(driver.sent)
    driver.passes(HEARTBEAT_MS)
    refuse(driver, 8)
    assert len(driver.sent) == asked + 2


def test_who_is_told_the_number_with_the_address_needs_no_refusal() -> None:
    driver = seated("A")
    driver.take(driver.membership.reconnect(driver.now_ms, 8))
    assert (driver.sent[-1].coordinator_epoch, driver.sent[-1].is_full) == (8, True)


def test_who_is_refused_with_its_own_number_waits_a_while() -> None:
    driver = MemberDriver()
    driver.join()
    refuse(driver, 7)
    refuse(driver, 7)
    assert len(driver.sent) == 2
    driver.passes(BACKOFF_MS - 1)
    assert len(driver.sent) == 2
    driver.passes(1)
    assert [each.coordinator_epoch for each in driver.sent] == [-1, 7, 7]
