"""What a member says, when it says it again, and whom it believes (PROTOCOL §3, §8, §9)."""

from dataclasses import replace

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.worker.instructions import Compute, Start
from fairlead.actors.worker.states import State
from fairlead.events.model import ClientAssignor
from fairlead_tests.membership.seat import ASSIGNORS, PATIENCE_MS, Seat, resources, seated, spelled

JOIN = Heartbeat(
    "g",
    "m",
    0,
    "i",
    1,
    url="url",
    client_id="",
    client_host="",
    rebalance_timeout_ms=60_000,
    session_timeout_ms=10_000,
    assignors=ASSIGNORS,
    owned=(),
)


def test_a_join_says_everything_and_owns_nothing() -> None:
    seat = Seat()
    assert (seat.join(), seat.sent, seat.state()) == ([], [JOIN], State.JOINING)


def test_the_next_request_follows_an_answer_at_once_and_says_what_is_new_only() -> None:
    seat = Seat()
    seat.join()
    assert seat.answer("") == []
    assert seat.sent[1:] == [Heartbeat("g", "m", 1, "i", 2)]
    assert seat.answer("A A-0") == [Start(resources("A A-0"), 7)]
    assert seat.sent[2:] == [
        Heartbeat("g", "m", 1, "i", 3, owned=tuple(sorted(resources("A A-0"))))
    ]
    assert seat.state() is State.ACKNOWLEDGING
    seat.answer()
    assert seat.sent[3:] == [Heartbeat("g", "m", 1, "i", 4)]
    assert seat.state() is State.STABLE


def test_an_empty_share_leads_to_stable() -> None:
    seat = Seat()
    seat.join()
    seat.answer("")
    assert seat.state() is State.STABLE


def test_a_request_without_an_answer_is_repeated_in_full_and_only_its_answer_counts() -> None:
    seat = seated()
    first = seat.sent[-1]
    assert not first.is_full
    assert (seat.passes(PATIENCE_MS - 1), seat.sent[-1]) == ([], first)
    seat.passes(1)
    second = seat.sent[-1]
    assert (second.sequence, second.is_full) == (first.sequence + 1, True)
    assert spelled(second.owned) == "A A-0"
    assert seat.answer("A A-0 A-1", to=first) == []
    assert (spelled(seat.membership.owned), seat.sent[-1]) == ("A A-0", second)
    assert seat.answer("A A-0 A-1", to=second) == [Start(resources("A-1"), 7)]


def test_a_request_that_supersedes_another_is_full() -> None:
    seat = seated()
    assert not seat.sent[-1].is_full
    seat.take(
        seat.membership.change_assignors((ClientAssignor("balanced", metadata=b"1"),), seat.now_ms)
    )
    assert seat.sent[-1].is_full
    seat.answer()
    assert not seat.sent[-1].is_full


def test_assignors_that_did_not_change_are_not_told_again() -> None:
    seat = seated()
    assert seat.membership.change_assignors(ASSIGNORS, seat.now_ms) == []


def test_an_answer_counts_once() -> None:
    seat = seated()
    request = seat.sent[-1]
    seat.answer(to=request)
    count = len(seat.sent)
    assert (seat.answer("A", to=request), len(seat.sent)) == ([], count)
    assert spelled(seat.membership.owned) == "A A-0"


def test_the_answer_to_another_incarnation_does_not_count() -> None:
    seat = seated()
    reply = replace(seat.reply(seat.sent[-1], "A"), incarnation="another")
    assert seat.membership.take_reply(reply, seat.now_ms) == []
    assert spelled(seat.membership.owned) == "A A-0"


def test_after_a_lost_reply_the_repeated_join_finds_the_seat() -> None:
    seat = Seat()
    seat.join()
    seat.passes(PATIENCE_MS)
    assert seat.sent == [JOIN, replace(JOIN, sequence=2)]
    assert seat.answer("A", epoch=3) == [Start(resources("A"), 7)]
    assert seat.membership.member_epoch == 3


def test_everything_is_said_again_to_a_group_that_is_served_by_somebody_new() -> None:
    seat = seated()
    seat.take(seat.membership.reconnect(seat.now_ms))
    request = seat.sent[-1]
    assert (request.is_full, spelled(request.owned), request.member_epoch) == (True, "A A-0", 1)
    seat.membership.take_reply(seat.reply(request), seat.now_ms)
    assert seat.state() is State.STABLE


def test_an_order_to_compute_is_passed_on_once_and_blocks_nothing() -> None:
    seat = seated()
    assert seat.answer(error=Error.COMPUTE_ASSIGNMENT) == [Compute(1)]
    assert seat.answer("A A-0 A-1", error=Error.COMPUTE_ASSIGNMENT) == [Start(resources("A-1"), 7)]
    seat.membership.computing = False
    assert seat.answer(error=Error.COMPUTE_ASSIGNMENT) == [Compute(1)]
