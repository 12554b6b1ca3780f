"""What has to go goes first, and counts as gone only when the group has answered for it."""

import pytest

from fairlead.actors.worker.deadlines import KILL_EARLY_MS
from fairlead.actors.worker.instructions import Fence, Kill, Start, Stop
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
    spelled,
)

LATE = "a revocation was not acknowledged in time"


def owned_of(seat: Seat) -> str | None:
    """What the latest request says that it owns."""
    return spelled(seat.sent[-1].owned)


def test_what_is_granted_starts_only_when_what_is_revoked_has_stopped_and_was_answered_for() -> (
    None
):
    seat = seated("A A-0")
    assert seat.answer("A A-1", epoch=1) == [Stop(resources("A-0"))]
    assert (seat.state(), owned_of(seat)) == (State.RECONCILING, None)
    assert seat.stopped("A-0") == [], "an answer starts things, a stop does not"
    assert (seat.state(), owned_of(seat)) == (State.ACKNOWLEDGING, "A")
    assert seat.answer("A A-1", epoch=2) == [Start(resources("A-1"), 7)]
    assert owned_of(seat) == "A A-1"


def test_nothing_starts_by_a_heartbeat_that_is_answered_while_something_still_stops() -> None:
    seat = seated("A A-0")
    seat.answer("A A-1")
    assert seat.answer() == []
    assert spelled(seat.membership.owned) == "A A-0"
    seat.stopped("A-0")
    assert seat.answer() == [Start(resources("A-1"), 7)]


def test_a_new_target_while_revoking_is_the_one_that_counts() -> None:
    seat = seated("A A-0 A-1")
    assert seat.answer("A A-1") == [Stop(resources("A-0"))]
    assert seat.answer("A") == [Stop(resources("A-1"))], "A-0 was told already"
    seat.stopped("A-0")
    assert seat.state() is State.RECONCILING
    seat.stopped("A-1")
    assert (seat.state(), owned_of(seat)) == (State.ACKNOWLEDGING, "A")


def test_what_comes_back_while_it_stops_is_started_again_when_it_has_stopped() -> None:
    seat = seated("A A-0")
    seat.answer("A")
    assert seat.answer("A A-0") == []
    assert seat.stopped("A-0") == []
    assert owned_of(seat) == "A"
    assert seat.answer() == [Start(resources("A-0"), 7)]


def revoking(text: str = "A") -> tuple[Seat, int]:
    """A member that is to give something up, and when its last answer before that was asked."""
    seat = seated("A A-0")
    seat.now_ms += HEARTBEAT_MS
    seat.answer()
    asked_ms = seat.now_ms
    seat.now_ms += HEARTBEAT_MS
    seat.answer()  # asked for at `asked_ms`: the last answer before the one that revokes
    seat.now_ms += HEARTBEAT_MS
    assert seat.answer(text) == [Stop(resources("A-0"))]
    return seat, asked_ms


def beats_until(seat: Seat, until_ms: int) -> None:
    """Let time pass with every heartbeat answered."""
    while seat.now_ms + HEARTBEAT_MS < until_ms:
        assert seat.passes(HEARTBEAT_MS) == []
        seat.answer()
    assert seat.passes(until_ms - seat.now_ms - 1) == []


def test_a_revocation_is_due_a_rebalance_timeout_after_the_last_answered_request_before_it() -> (
    None
):
    seat, before_ms = revoking()
    beats_until(seat, before_ms + REBALANCE_MS - MARGIN_MS)
    assert seat.passes(1) == [Fence(LATE)]
    assert seat.passes(MARGIN_MS - KILL_EARLY_MS - 1) == []
    assert seat.passes(1) == [Kill("what had to stop has not stopped in time")]


def test_a_revocation_that_stopped_but_was_not_answered_for_is_as_late() -> None:
    seat, before_ms = revoking()
    while seat.now_ms + PATIENCE_MS < before_ms + REBALANCE_MS - MARGIN_MS:
        seat.passes(HEARTBEAT_MS)
        seat.answer()
    seat.stopped("A-0")
    report = seat.sent[-1]
    assert spelled(report.owned) == "A"
    assert seat.passes(before_ms + REBALANCE_MS - MARGIN_MS - seat.now_ms) == [Fence(LATE)]
    assert seat.answer(to=report) == [], "a late answer does not call it off"
    assert seat.state() is State.FENCED


def test_an_answer_to_a_request_from_before_the_stop_is_no_acknowledgement() -> None:
    seat, before_ms = revoking()
    seat.answer()  # it said that nothing had changed
    beats_until(seat, before_ms + REBALANCE_MS - MARGIN_MS)
    assert seat.passes(1) == [Fence(LATE)]


def test_an_answered_report_ends_a_revocation() -> None:
    seat, before_ms = revoking()
    seat.stopped("A-0")
    seat.answer(epoch=2)
    assert seat.state() is State.STABLE
    beats_until(seat, before_ms + REBALANCE_MS + SESSION_MS)


def test_a_second_revocation_does_not_put_off_the_first() -> None:
    seat, before_ms = revoking()
    seat.now_ms += HEARTBEAT_MS
    assert seat.answer("") == [Stop(resources("A"))]
    seat.stopped("A")
    beats_until(seat, before_ms + REBALANCE_MS - MARGIN_MS)
    assert seat.passes(1) == [Fence(LATE)]


@pytest.mark.parametrize("text", ["A", "A A-1"])
def test_a_lost_report_is_repeated_in_full(text: str) -> None:
    seat, _ = revoking(text)
    seat.stopped("A-0")
    seat.passes(PATIENCE_MS)
    assert (seat.sent[-1].is_full, owned_of(seat)) == (True, "A")
