"""What helps against each error: nothing but to end, to rejoin, or to ask again (PROTOCOL §9)."""

import pytest

from fairlead.actors.messages.errors import MEANINGS, SUCCESS, Error, Remedy
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.worker.instructions import Fence, Gone
from fairlead.actors.worker.states import State
from fairlead_tests.membership.seat import (
    BEGUN_MS,
    HEARTBEAT_MS,
    SESSION_MS,
    Seat,
    seated,
    spelled,
    static_seat,
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
    seat = seated()
    assert seat.answer(error=error) == [Fence(f"{error.value}: "), Gone(f"{error.value}: ")]
    assert seat.state() is State.FATAL
    count = len(seat.sent)
    assert (seat.stopped("A A-0"), seat.passes(SESSION_MS), len(seat.sent)) == ([], [], count)
    assert (seat.leave(), seat.membership.next_tick_ms()) == ([], None)


@pytest.mark.parametrize("error", errors(Remedy.REJOIN))
def test_a_member_that_lost_its_seat_stops_everything_and_rejoins_with_nothing(
    error: Error,
) -> None:
    seat = seated()
    assert seat.answer(error=error) == [Fence(f"{error.value}: ")]
    count = len(seat.sent)
    assert seat.stopped("A") == []
    assert (len(seat.sent), seat.state()) == (count, State.FENCED), "A-0 still runs"
    seat.stopped("A-0")
    assert [said(each) for each in seat.sent[count:]] == [(0, "", True)]
    assert (seat.sent[-1].member_id, seat.sent[-1].incarnation) == ("m", "i")


def test_a_member_that_lost_its_seat_and_runs_nothing_rejoins_at_once() -> None:
    seat = seated("")
    assert seat.answer(error=Error.UNKNOWN_MEMBER_ID) == []
    assert seat.sent[-1].member_epoch == 0
    assert seat.state() is State.JOINING


@pytest.mark.parametrize("error", errors(Remedy.REJOIN) + errors(Remedy.RETRY))
def test_a_refused_join_is_repeated_after_a_back_off_that_doubles_up_to_the_interval(
    error: Error,
) -> None:
    seat = Seat()
    seat.join()
    waits = list[int]()
    for _ in range(5):
        begun_ms, count = seat.now_ms, len(seat.sent)
        assert seat.answer(error=error) == []
        while len(seat.sent) == count:
            assert seat.passes(100) == []
        waits.append(seat.now_ms - begun_ms)
    assert waits == [500, 1_000, 2_000, HEARTBEAT_MS, HEARTBEAT_MS]
    assert {said(each) for each in seat.sent} == {(0, "", True)}
    assert seat.state() is State.JOINING


@pytest.mark.parametrize("error", errors(Remedy.RETRY))
def test_a_retriable_error_stops_nothing_and_the_next_request_is_full(error: Error) -> None:
    seat = seated()
    count = len(seat.sent)
    assert seat.answer(error=error) == []
    assert (seat.passes(499), len(seat.sent)) == ([], count)
    assert seat.passes(1) == []
    assert [said(each) for each in seat.sent[count:]] == [(1, "A A-0", True)]


def test_a_success_begins_the_back_off_anew() -> None:
    seat = seated()
    for _ in range(3):
        seat.answer(error=Error.NOT_COORDINATOR)
        seat.passes(500)
        assert seat.sent[-1].is_full
        seat.answer()


def test_a_retriable_error_does_not_refresh_the_session() -> None:
    seat = seated()
    end_ms = seat.membership.end_ms()
    seat.passes(HEARTBEAT_MS)
    seat.answer(error=Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert seat.membership.end_ms() == end_ms


@pytest.mark.parametrize(
    "error", [each for each in errors(Remedy.RETRY) if each is not Error.UNRELEASED_INSTANCE_ID]
)
def test_a_goodbye_that_is_refused_for_now_is_repeated(error: Error) -> None:
    seat = seated("")
    seat.leave()
    assert seat.answer(error=error) == []
    seat.passes(500)
    assert [each.member_epoch for each in seat.sent[-2:]] == [-1, -1]


@pytest.mark.parametrize("error", errors(Remedy.REJOIN) + errors(Remedy.FATAL))
def test_any_other_answer_to_a_goodbye_will_do(error: Error) -> None:
    seat = seated("")
    seat.leave()
    assert (seat.answer(error=error), seat.state()) == ([Gone()], State.UNSUBSCRIBED)


def test_an_instance_id_that_is_not_released_is_asked_for_for_two_sessions() -> None:
    seat = static_seat()
    seat.join()
    begun_ms = seat.now_ms
    while seat.now_ms < begun_ms + 2 * SESSION_MS:
        assert seat.answer(error=Error.UNRELEASED_INSTANCE_ID) == []
        count = len(seat.sent)
        while len(seat.sent) == count:
            assert seat.passes(100) == []
    took_ms = seat.now_ms - begun_ms
    reason = (
        f"UNRELEASED_INSTANCE_ID:  (so for {took_ms} ms now: "
        "end the other process, or give this one an id of its own)"
    )
    assert seat.answer(error=Error.UNRELEASED_INSTANCE_ID) == [Gone(reason)]
    assert (seat.state(), took_ms <= 2 * SESSION_MS + HEARTBEAT_MS) == (State.FATAL, True)


def test_an_instance_id_that_is_released_in_time_is_taken() -> None:
    seat = static_seat()
    seat.join()
    for _ in range(3):
        seat.answer(error=Error.UNRELEASED_INSTANCE_ID)
        seat.passes(HEARTBEAT_MS)
    seat.answer("")
    assert seat.state() is State.STABLE


def test_another_process_in_the_seat_is_waited_for_anew_once_the_seat_was_had() -> None:
    seat = seated("")
    seat.answer(error=Error.UNRELEASED_INSTANCE_ID)
    seat.passes(HEARTBEAT_MS)
    seat.answer()
    seat.now_ms += 2 * SESSION_MS
    seat.passes(0)
    assert (seat.answer(error=Error.UNRELEASED_INSTANCE_ID), seat.state()) == ([], State.JOINING)


def test_a_seat_that_another_incarnation_has_is_fenced_and_then_given_up() -> None:
    """Whoever runs things goes on asking, and stops them by itself in time for its session."""
    seat = seated()
    begun_ms = seat.now_ms
    found = list[object]()
    while seat.state() is not State.FATAL:
        if seat.membership.state is not State.FENCED and seat.sent:
            found += seat.answer(error=Error.UNRELEASED_INSTANCE_ID)
        found += seat.passes(500)
        if seat.state() is State.FENCED:
            found += seat.stopped("A A-0")
    assert [type(each) for each in found] == [Fence, Gone]
    assert seat.now_ms - begun_ms <= 2 * SESSION_MS + HEARTBEAT_MS


def test_whose_instance_id_is_anothers_ends() -> None:
    seat = seated(seat=static_seat())
    reason = "FENCED_INSTANCE_ID: "
    assert seat.answer(error=Error.FENCED_INSTANCE_ID) == [Fence(reason), Gone(reason)]


def test_a_goodbye_to_a_seat_that_is_anothers_is_said() -> None:
    seat = Seat()
    seat.join()
    while seat.now_ms < BEGUN_MS + 2 * SESSION_MS - HEARTBEAT_MS:
        seat.answer(error=Error.UNRELEASED_INSTANCE_ID, epoch=0)
        seat.passes(HEARTBEAT_MS)
    seat.leave()
    seat.now_ms += HEARTBEAT_MS
    assert seat.answer(error=Error.UNRELEASED_INSTANCE_ID, epoch=-1) == [Gone()]
    assert seat.state() is State.UNSUBSCRIBED
