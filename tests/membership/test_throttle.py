"""A member that was told to be silent is, except where safety needs a word (PROTOCOL §3)."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.instructions import Fence, Gone, Start, Stop
from fairlead.actors.worker.states import State
from fairlead.actors.worker.voice import BACKOFF_MS
from fairlead.events.model import ClientAssignor
from fairlead_tests.membership.seat import (
    BEGUN_MS,
    HEARTBEAT_MS,
    MARGIN_MS,
    PATIENCE_MS,
    REBALANCE_MS,
    SESSION_MS,
    Seat,
    resources,
    seated,
    spelled,
)

THROTTLE_MS = 2_000
IN_TIME_MS = SESSION_MS - MARGIN_MS - PATIENCE_MS
"""How long after its last answered request a member can be silent and keep its session."""


def silence_of(seat: Seat, longest_ms: int = 60_000) -> int:
    """Let time pass until the member speaks; return how long that was."""
    begun_ms, count = seat.now_ms, len(seat.sent)
    while len(seat.sent) == count and seat.now_ms < begun_ms + longest_ms:
        seat.passes(1)
    return seat.now_ms - begun_ms


def test_no_request_goes_out_before_the_throttle_time_has_passed() -> None:
    seat = seated()
    seat.answer(throttle_time_ms=THROTTLE_MS)
    assert silence_of(seat) == THROTTLE_MS
    assert not seat.sent[-1].is_full, "nothing was lost"


def test_the_end_of_the_silence_is_told_in_advance() -> None:
    seat = seated()
    seat.answer(throttle_time_ms=THROTTLE_MS)
    assert seat.membership.next_tick_ms() == seat.now_ms + THROTTLE_MS


def test_what_is_granted_starts_at_once_and_is_reported_after_the_silence() -> None:
    seat = seated()
    assert seat.answer("A A-0 A-1", throttle_time_ms=THROTTLE_MS) == [Start(resources("A-1"), 7)]
    assert silence_of(seat) == THROTTLE_MS
    assert spelled(seat.sent[-1].owned) == "A A-0 A-1"


def test_news_of_the_member_waits_for_the_end_of_the_silence() -> None:
    seat = seated()
    seat.answer(throttle_time_ms=THROTTLE_MS)
    assert (
        seat.membership.change_assignors((ClientAssignor("balanced", metadata=b"1"),), seat.now_ms)
        == []
    )
    assert silence_of(seat) == THROTTLE_MS
    assert seat.sent[-1].assignors == (ClientAssignor("balanced", metadata=b"1"),)


def test_a_shorter_throttle_does_not_cut_a_longer_one_short() -> None:
    seat = seated()
    seat.answer(throttle_time_ms=THROTTLE_MS)
    seat.passes(THROTTLE_MS)
    seat.answer(throttle_time_ms=THROTTLE_MS)
    assert silence_of(seat) == THROTTLE_MS


def test_a_silence_ends_in_time_to_keep_the_session() -> None:
    seat = seated()
    seat.answer(throttle_time_ms=3_600_000)
    assert silence_of(seat) == IN_TIME_MS
    seat.now_ms += PATIENCE_MS - 1
    assert (seat.answer(), seat.state()) == ([], State.STABLE)


def test_a_member_that_is_throttled_for_ever_is_never_fenced() -> None:
    seat = seated()
    for _ in range(50):
        seat.answer(throttle_time_ms=3_600_000)
        silence_of(seat)
    assert (seat.state(), len(seat.sent)) == (State.STABLE, 54)


def test_the_report_of_a_revocation_waits_while_its_deadline_is_far() -> None:
    seat = seated()
    assert seat.answer("A", throttle_time_ms=THROTTLE_MS) == [Stop(resources("A-0"))]
    seat.stopped("A-0")
    assert silence_of(seat) == THROTTLE_MS
    assert spelled(seat.sent[-1].owned) == "A"


def test_the_report_of_a_revocation_does_not_wait_when_its_deadline_is_near() -> None:
    seat = seated()
    revoke_by_ms = seat.now_ms + REBALANCE_MS
    seat.answer("A")
    while seat.now_ms + HEARTBEAT_MS < revoke_by_ms - MARGIN_MS - PATIENCE_MS:
        seat.passes(HEARTBEAT_MS)
        seat.answer()
    seat.now_ms = revoke_by_ms - MARGIN_MS - PATIENCE_MS - 100
    seat.answer(throttle_time_ms=3_600_000)
    count = len(seat.sent)
    seat.stopped("A-0")
    assert silence_of(seat) == 100
    assert [spelled(each.owned) for each in seat.sent[count:]] == ["A"]
    seat.answer(epoch=2)
    assert seat.state() is State.STABLE


def test_a_goodbye_does_not_wait() -> None:
    seat = seated()
    seat.answer(throttle_time_ms=THROTTLE_MS)
    seat.leave()
    seat.stopped("A A-0")
    assert (seat.sent[-1].member_epoch, seat.state()) == (-1, State.LEAVING)
    assert seat.answer(epoch=-1) == [Gone()]


def test_a_goodbye_that_is_refused_for_now_does_not_wait_for_long() -> None:
    seat = seated("")
    seat.leave()
    seat.answer(error=Error.COORDINATOR_LOAD_IN_PROGRESS, throttle_time_ms=3_600_000)
    assert silence_of(seat) == BACKOFF_MS


def test_a_refusal_may_throttle_as_well() -> None:
    seat = Seat()
    seat.join()
    seat.answer(error=Error.COORDINATOR_LOAD_IN_PROGRESS, throttle_time_ms=THROTTLE_MS)
    assert silence_of(seat) == THROTTLE_MS


def test_a_rejoin_waits_for_the_end_of_the_silence() -> None:
    seat = seated()
    seat.answer(error=Error.UNKNOWN_MEMBER_ID, throttle_time_ms=THROTTLE_MS)
    seat.stopped("A A-0")
    assert silence_of(seat) == THROTTLE_MS
    assert (seat.sent[-1].member_epoch, seat.state()) == (0, State.JOINING)


def test_a_silence_is_owed_to_nobody_once_somebody_new_serves_the_group() -> None:
    seat = seated()
    seat.answer(throttle_time_ms=THROTTLE_MS)
    count = len(seat.sent)
    seat.take(seat.membership.reconnect(seat.now_ms))
    assert len(seat.sent) == count + 1


def test_a_silence_moves_no_deadline() -> None:
    seat = seated()
    seat.answer(throttle_time_ms=3_600_000)
    assert seat.membership.end_ms() == BEGUN_MS + SESSION_MS
    silence_of(seat)
    assert [type(each) for each in seat.passes(PATIENCE_MS)] == [Fence]
