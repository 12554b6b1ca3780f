"""What helps against each error: nothing but to end, to rejoin, or to ask again (PROTOCOL §9)."""

import pytest

from fairlead.actors.messages.errors import MEANINGS, SUCCESS, Error, Remedy
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.worker.instructions import Fence, Gone
from fairlead.actors.worker.states import State
from fairlead_tests.membership.driver import (
    BEGUN_MS,
    HEARTBEAT_MS,
    SESSION_MS,
    MemberDriver,
    seated,
    spelled,
    static_driver,
)


def errors(remedy: Remedy) -> list[Error]:
    """All errors against which this helps."""
    return [error for error in Error if MEANINGS[error].remedy is remedy]


def said(request: Heartbeat) -> tuple[int, str | None, bool]:
    """The epoch of a request, what it says is owned, and whether it is full."""
    return request.member_epoch, spelled(request.owned), request.is_full


def test_every_error_is_success_or_retriable_or_fatal_or_ends_the_seat() -> None:
    remedies = [Remedy.RETRY, Remedy.REJOIN, Remedy.FATAL]
    assert SUCCESS.union(*map(errors, remedies)) == set(Error)


@pytest.mark.parametrize("error", errors(Remedy.FATAL))
def test_what_can_not_get_better_ends_the_member(error: Error) -> None:
    driver = seated()
    assert driver.answer(error=error) == [Fence(f"{error.value}: "), Gone(f"{error.value}: ")]
    assert driver.state() is State.FATAL
    count = len(driver.sent)
    assert (driver.stopped("A A-0"), driver.passes(SESSION_MS), len(driver.sent)) == ([], [], count)
    assert (driver.leave(), driver.membership.next_tick_ms()) == ([], None)


@pytest.mark.parametrize("error", errors(Remedy.REJOIN))
def test_a_member_that_lost_its_seat_stops_everything_and_rejoins_with_nothing(
    error: Error,
) -> None:
    driver = seated()
    assert driver.answer(error=error) == [Fence(f"{error.value}: ")]
    count = len(driver.sent)
    assert driver.stopped("A") == []
    assert (len(driver.sent), driver.state()) == (count, State.FENCED), "A-0 still runs"
    driver.stopped("A-0")
    assert [said(each) for each in driver.sent[count:]] == [(0, "", True)]
    assert (driver.sent[-1].member_id, driver.sent[-1].incarnation) == ("m", "i")


def test_a_member_that_lost_its_seat_and_runs_nothing_rejoins_at_once() -> None:
    driver = seated("")
    assert driver.answer(error=Error.UNKNOWN_MEMBER_ID) == []
    assert driver.sent[-1].member_epoch == 0
    assert driver.state() is State.JOINING


@pytest.mark.parametrize("error", errors(Remedy.REJOIN) + errors(Remedy.RETRY))
def test_a_refused_join_is_repeated_after_a_back_off_that_doubles_up_to_the_interval(
    error: Error,
) -> None:
    driver = MemberDriver()
    driver.join()
    waits = list[int]()
    for _ in range(5):
        begun_ms, count = driver.now_ms, len(driver.sent)
        assert driver.answer(error=error) == []
        while len(driver.sent) == count:
            assert driver.passes(100) == []
        waits.append(driver.now_ms - begun_ms)
    assert waits == [500, 1_000, 2_000, HEARTBEAT_MS, HEARTBEAT_MS]
    assert {said(each) for each in driver.sent} == {(0, "", True)}
    assert driver.state() is State.JOINING


@pytest.mark.parametrize("error", errors(Remedy.RETRY))
def test_a_retriable_error_stops_nothing_and_the_next_request_is_full(error: Error) -> None:
    driver = seated()
    count = len(driver.sent)
    assert driver.answer(error=error) == []
    assert (driver.passes(499), len(driver.sent)) == ([], count)
    assert driver.passes(1) == []
    assert [said(each) for each in driver.sent[count:]] == [(1, "A A-0", True)]


def test_a_success_begins_the_back_off_anew() -> None:
    driver = seated()
    for _ in range(3):
        driver.answer(error=Error.NOT_COORDINATOR)
        driver.passes(500)
        assert driver.sent[-1].is_full
        driver.answer()


def test_a_retriable_error_does_not_refresh_the_session() -> None:
    driver = seated()
    end_ms = driver.membership.end_ms()
    driver.passes(HEARTBEAT_MS)
    driver.answer(error=Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert driver.membership.end_ms() == end_ms


@pytest.mark.parametrize(
    "error", [each for each in errors(Remedy.RETRY) if each is not Error.UNRELEASED_INSTANCE_ID]
)
def test_a_goodbye_that_is_refused_for_now_is_repeated(error: Error) -> None:
    driver = seated("")
    driver.leave()
    assert driver.answer(error=error) == []
    driver.passes(500)
    assert [each.member_epoch for each in driver.sent[-2:]] == [-1, -1]


@pytest.mark.parametrize("error", errors(Remedy.REJOIN) + errors(Remedy.FATAL))
def test_any_other_answer_to_a_goodbye_will_do(error: Error) -> None:
    driver = seated("")
    driver.leave()
    assert (driver.answer(error=error), driver.state()) == ([Gone()], State.UNSUBSCRIBED)


def test_an_instance_id_that_is_not_released_is_asked_for_for_two_sessions() -> None:
    driver = static_driver()
    driver.join()
    begun_ms = driver.now_ms
    while driver.now_ms < begun_ms + 2 * SESSION_MS:
        assert driver.answer(error=Error.UNRELEASED_INSTANCE_ID) == []
        count = len(driver.sent)
        while len(driver.sent) == count:
            assert driver.passes(100) == []
    took_ms = driver.now_ms - begun_ms
    reason = (
        f"UNRELEASED_INSTANCE_ID:  (so for {took_ms} ms now: "
        "end the other process, or give this one an id of its own)"
    )
    assert driver.answer(error=Error.UNRELEASED_INSTANCE_ID) == [Gone(reason)]
    assert (driver.state(), took_ms <= 2 * SESSION_MS + HEARTBEAT_MS) == (State.FATAL, True)


def test_an_instance_id_that_is_released_in_time_is_taken() -> None:
    driver = static_driver()
    driver.join()
    for _ in range(3):
        driver.answer(error=Error.UNRELEASED_INSTANCE_ID)
        driver.passes(HEARTBEAT_MS)
    driver.answer("")
    assert driver.state() is State.STABLE


def test_another_process_in_the_seat_is_waited_for_anew_once_the_seat_was_had() -> None:
    driver = seated("")
    driver.answer(error=Error.UNRELEASED_INSTANCE_ID)
    driver.passes(HEARTBEAT_MS)
    driver.answer()
    driver.now_ms += 2 * SESSION_MS
    driver.passes(0)
    assert (driver.answer(error=Error.UNRELEASED_INSTANCE_ID), driver.state()) == (
        [],
        State.JOINING,
    )


def test_a_seat_that_another_incarnation_has_is_fenced_and_then_given_up() -> None:
    """Whoever runs things goes on asking, and stops them by itself in time for its session."""
    driver = seated()
    begun_ms = driver.now_ms
    found = list[object]()
    while driver.state() is not State.FATAL:
        if driver.membership.state is not State.FENCED and driver.sent:
            found += driver.answer(error=Error.UNRELEASED_INSTANCE_ID)
        found += driver.passes(500)
        if driver.state() is State.FENCED:
            found += driver.stopped("A A-0")
    assert [type(each) for each in found] == [Fence, Gone]
    assert driver.now_ms - begun_ms <= 2 * SESSION_MS + HEARTBEAT_MS


def test_whose_instance_id_is_anothers_ends() -> None:
    driver = seated(driver=static_driver())
    reason = "FENCED_INSTANCE_ID: "
    assert driver.answer(error=Error.FENCED_INSTANCE_ID) == [Fence(reason), Gone(reason)]


def test_a_goodbye_to_a_seat_that_is_anothers_is_said() -> None:
    driver = MemberDriver()
    driver.join()
    while driver.now_ms < BEGUN_MS + 2 * SESSION_MS - HEARTBEAT_MS:
        driver.answer(error=Error.UNRELEASED_INSTANCE_ID, epoch=0)
        driver.passes(HEARTBEAT_MS)
    driver.leave()
    driver.now_ms += HEARTBEAT_MS
    assert driver.answer(error=Error.UNRELEASED_INSTANCE_ID, epoch=-1) == [Gone()]
    assert driver.state() is State.UNSUBSCRIBED
