"""A member that cannot be sure of its session stops everything by itself (PROTOCOL §8)."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.deadlines import KILL_EARLY_MS
from fairlead.actors.worker.instructions import Fence, Gone, Kill, Start
from fairlead.actors.worker.states import State
from fairlead_tests.membership.seat import (
    HEARTBEAT_MS,
    MARGIN_MS,
    PATIENCE_MS,
    SESSION_MS,
    Seat,
    resources,
    seated,
    spelled,
)

SILENCE = "the group has not answered for so long that the session may end"
KILL = Kill("what had to stop has not stopped in time")


def test_the_session_counts_from_the_sending_time_of_what_was_answered() -> None:
    seat = seated()
    asked_ms = seat.now_ms
    seat.now_ms += HEARTBEAT_MS
    seat.answer()  # asked for an interval ago
    asked_again_ms = seat.now_ms
    assert seat.passes(asked_ms + SESSION_MS - MARGIN_MS - 1 - seat.now_ms) == []
    assert seat.passes(1) == [Fence(SILENCE)]
    assert seat.now_ms < asked_again_ms + SESSION_MS - MARGIN_MS, "no answer, no new session"


def test_what_does_not_stop_by_the_deadline_is_killed() -> None:
    seat = seated()
    assert seat.passes(SESSION_MS - MARGIN_MS) == [Fence(SILENCE)]
    assert seat.stopped("A") == []
    assert seat.passes(MARGIN_MS - KILL_EARLY_MS - 1) == []
    assert seat.passes(1) == [KILL], "in time for the deadline"
    assert seat.passes(1) == [], "once"


def test_nothing_is_killed_where_everything_has_stopped() -> None:
    seat = seated()
    seat.passes(SESSION_MS - MARGIN_MS)
    seat.stopped("A A-0")
    assert (seat.state(), seat.sent[-1].member_epoch) == (State.JOINING, 0)
    assert seat.passes(MARGIN_MS) == []


def test_a_late_answer_calls_no_fence_off_and_starts_nothing() -> None:
    seat = seated()
    seat.passes(PATIENCE_MS)
    last = seat.sent[-1]
    assert seat.passes(SESSION_MS - MARGIN_MS - PATIENCE_MS) == [Fence(SILENCE)]
    assert seat.answer("A A-0 A-1", to=last) == []
    assert (seat.state(), seat.membership.member_epoch) == (State.FENCED, 0)
    assert seat.passes(MARGIN_MS) == [KILL], "nor does it move the deadline"
    seat.stopped("A A-0")
    assert (seat.sent[-1].member_epoch, seat.sent[-1].owned) == (0, ())
    assert seat.answer("A", to=last) == [], "nor does it answer the rejoin"


def test_an_answer_that_lay_unread_past_the_session_starts_nothing() -> None:
    """As when the process was frozen: the answer may be read before the clock is."""
    seat = seated()
    seat.now_ms += SESSION_MS - MARGIN_MS
    assert seat.answer("A A-0 A-1") == [Fence(SILENCE)]
    assert spelled(seat.membership.owned) == "A A-0"


def test_a_join_whose_answer_lay_unread_past_the_session_is_repeated() -> None:
    seat = Seat()
    seat.join()
    seat.now_ms += SESSION_MS
    assert seat.answer("A", epoch=4) == []
    assert (spelled(seat.membership.owned), seat.state()) == ("", State.JOINING)
    assert (seat.sent[-1].member_epoch, len(seat.sent)) == (0, 2)
    assert seat.answer("A", epoch=4) == [Start(resources("A"), 7)]


def test_an_answer_that_lay_unread_within_the_session_of_its_request_counts() -> None:
    seat = seated()
    seat.now_ms += PATIENCE_MS
    seat.passes(0)
    seat.now_ms += SESSION_MS - MARGIN_MS - 1  # past the old session, not past the new one
    assert seat.answer("A A-0 A-1") == [Start(resources("A-1"), 7)]


def test_a_member_that_has_not_joined_yet_has_no_session_to_lose() -> None:
    seat = Seat()
    seat.join()
    for _ in range(10):
        assert seat.passes(PATIENCE_MS) == []
    assert (len(seat.sent), seat.state()) == (11, State.JOINING)


def test_a_fenced_member_says_nothing() -> None:
    seat = seated()
    seat.passes(SESSION_MS - MARGIN_MS)
    count = len(seat.sent)
    assert seat.membership.reconnect(seat.now_ms) == []
    seat.passes(1)
    assert len(seat.sent) == count


def test_a_rejoined_member_begins_a_new_session() -> None:
    seat = seated()
    seat.answer(error=Error.UNKNOWN_MEMBER_ID)
    seat.now_ms += 500
    seat.stopped("A A-0")
    asked_ms = seat.now_ms
    seat.now_ms += 200
    assert seat.answer("B", epoch=9) == [Start(resources("B"), 7)]
    assert seat.passes(asked_ms + SESSION_MS - MARGIN_MS - seat.now_ms - 1) == []
    assert seat.passes(1) == [Fence(SILENCE)]


def test_a_member_that_was_told_to_leave_does_not_rejoin_after_a_fence() -> None:
    seat = seated()
    seat.leave()
    seat.passes(SESSION_MS - MARGIN_MS)
    assert seat.stopped("A A-0") == [Gone()]
    assert seat.state() is State.UNSUBSCRIBED


def test_the_next_tick_is_told_in_advance() -> None:
    seat = seated()
    assert seat.membership.next_tick_ms() == seat.now_ms + PATIENCE_MS
    begun_ms = seat.now_ms
    seat.passes(PATIENCE_MS + 1)
    assert seat.membership.next_tick_ms() == begun_ms + SESSION_MS - MARGIN_MS
    seat.passes(begun_ms + SESSION_MS - MARGIN_MS - seat.now_ms)
    assert seat.membership.next_tick_ms() == begun_ms + SESSION_MS - KILL_EARLY_MS
    assert Seat().membership.next_tick_ms() is None
