"""A member names the process of the coordinator that it has heard of, and learns of the next."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.instructions import Fence, Gone
from fairlead.actors.worker.states import State
from fairlead.actors.worker.voice import BACKOFF_MS
from fairlead.events.model import Resource
from fairlead_tests.membership.seat import HEARTBEAT_MS, MARGIN_MS, SESSION_MS, Seat, seated


def refuse(seat: Seat, number: int) -> list[object]:
    """Have the process of that number refuse the latest request as not meant for it."""
    refused = seat.answer(error=Error.NOT_COORDINATOR, coordinator_epoch=number)
    return list(refused)


def test_a_newcomer_joins_at_once_with_the_number_that_it_is_told() -> None:
    seat = Seat()
    seat.join()
    assert refuse(seat, 7) == []
    assert [(each.member_epoch, each.coordinator_epoch) for each in seat.sent] == [(0, -1), (0, 7)]
    assert [each.sequence for each in seat.sent] == [1, 2]
    assert seat.state() is State.JOINING


def test_who_runs_something_says_everything_anew_and_stops_nothing() -> None:
    seat = seated("A")
    asked = len(seat.sent)
    assert refuse(seat, 8) == []
    (again,) = seat.sent[asked:]
    assert (again.coordinator_epoch, again.is_full, again.owned) == (8, True, (Resource("A"),))
    assert seat.state() is State.STABLE


def test_a_refusal_keeps_no_session_alive() -> None:
    seat = seated("A")
    seat.passes(SESSION_MS - MARGIN_MS - 1)
    refuse(seat, 8)
    (fence,) = seat.passes(1)
    assert isinstance(fence, Fence)


def test_a_goodbye_is_said_again_at_once() -> None:
    seat = seated("")
    seat.leave()
    assert refuse(seat, 8) == []
    assert (seat.sent[-1].member_epoch, seat.sent[-1].coordinator_epoch) == (-1, 8)
    assert seat.answer(epoch=-1) == [Gone()]


def test_a_silence_that_another_process_asked_for_is_over() -> None:
    seat = seated("A")
    seat.answer(throttle_time_ms=HEARTBEAT_MS)
    asked = len(seat.sent)
    seat.passes(HEARTBEAT_MS)
    refuse(seat, 8)
    assert len(seat.sent) == asked + 2


def test_who_is_told_the_number_with_the_address_needs_no_refusal() -> None:
    seat = seated("A")
    seat.take(seat.membership.reconnect(seat.now_ms, 8))
    assert (seat.sent[-1].coordinator_epoch, seat.sent[-1].is_full) == (8, True)


def test_who_is_refused_with_its_own_number_waits_a_while() -> None:
    seat = Seat()
    seat.join()
    refuse(seat, 7)
    refuse(seat, 7)
    assert len(seat.sent) == 2
    seat.passes(BACKOFF_MS - 1)
    assert len(seat.sent) == 2
    seat.passes(1)
    assert [each.coordinator_epoch for each in seat.sent] == [-1, 7, 7]
