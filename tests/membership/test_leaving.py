"""A member leaves when it has given everything up, and says so until it is heard."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.worker.instructions import Fence, Gone, Stop
from fairlead.actors.worker.states import State
from fairlead_tests.membership.seat import (
    HEARTBEAT_MS,
    MARGIN_MS,
    PATIENCE_MS,
    REBALANCE_MS,
    SESSION_MS,
    Seat,
    resources,
    seated,
)


def leaving() -> Seat:
    """A member that has said goodbye for the first time."""
    seat = seated()
    assert seat.leave() == [Stop(resources("A A-0"))]
    assert seat.stopped("A") == []
    assert seat.state() is State.PREPARE_LEAVING
    assert seat.stopped("A-0") == []
    assert seat.state() is State.LEAVING
    assert seat.sent[-1] == Heartbeat("g", "m", -1, "i", len(seat.sent))
    return seat


def test_a_member_that_leaves_stops_everything_first() -> None:
    seat = leaving()
    assert seat.answer(epoch=-1) == [Gone()]
    assert (seat.state(), seat.passes(SESSION_MS)) == (State.UNSUBSCRIBED, [])


def test_a_member_goes_on_beating_while_it_stops_and_takes_nothing_new() -> None:
    seat = seated()
    seat.leave()
    count = len(seat.sent)
    for _ in range(8):
        seat.passes(HEARTBEAT_MS)
        assert seat.answer("A A-0 A-1") == []
    assert len(seat.sent) == count + 8
    assert seat.membership.owned == resources("A A-0")


def test_what_is_revoked_from_a_member_that_leaves_has_its_deadline_all_the_same() -> None:
    seat = seated()
    asked_ms = seat.now_ms
    seat.leave()
    seat.passes(HEARTBEAT_MS)
    assert seat.answer("A") == [], "it was told to stop already"
    while seat.now_ms + HEARTBEAT_MS < asked_ms + REBALANCE_MS - MARGIN_MS:
        assert seat.passes(HEARTBEAT_MS) == []
        seat.answer()
    late = Fence("a revocation was not acknowledged in time")
    assert seat.passes(asked_ms + REBALANCE_MS - MARGIN_MS - seat.now_ms) == [late]


def test_the_answer_to_a_heartbeat_from_before_is_no_answer_to_the_goodbye() -> None:
    seat = seated()
    beat = seat.sent[-1]
    seat.leave()
    seat.stopped("A A-0")
    assert (seat.answer(to=beat), seat.state()) == ([], State.LEAVING)


def test_a_goodbye_is_repeated_until_it_is_answered_for_at_most_a_session() -> None:
    seat = leaving()
    count = len(seat.sent)
    seat.passes(PATIENCE_MS)
    seat.passes(PATIENCE_MS)
    assert [each.member_epoch for each in seat.sent[count - 1 :]] == [-1, -1, -1]
    assert seat.passes(SESSION_MS - 2 * PATIENCE_MS) == [Gone()]
    assert seat.state() is State.UNSUBSCRIBED


def test_any_answer_to_a_goodbye_will_do() -> None:
    seat = leaving()
    assert seat.answer(error=Error.UNKNOWN_MEMBER_ID) == [Gone()]


def test_a_member_that_runs_nothing_says_goodbye_at_once() -> None:
    seat = seated("")
    assert seat.leave() == []
    assert (seat.state(), seat.sent[-1].member_epoch) == (State.LEAVING, -1)


def test_a_member_that_never_joined_is_gone_at_once() -> None:
    seat = Seat()
    assert (seat.leave(), seat.sent) == ([Gone()], [])


def test_to_be_told_twice_changes_nothing() -> None:
    seat = seated()
    seat.leave()
    count = len(seat.sent)
    assert (seat.leave(), len(seat.sent)) == ([], count)
    seat.stopped("A A-0")
    assert (seat.leave(), len(seat.sent)) == ([], count + 1)


def test_whoever_missed_that_it_is_gone_is_told_again() -> None:
    seat = leaving()
    seat.answer(epoch=-1)
    assert seat.leave() == [Gone()]


def test_a_goodbye_is_said_to_a_group_that_is_served_by_somebody_new() -> None:
    seat = leaving()
    seat.take(seat.membership.reconnect(seat.now_ms))
    assert [each.member_epoch for each in seat.sent[-2:]] == [-1, -1]
    assert seat.answer(epoch=-1) == [Gone()]
