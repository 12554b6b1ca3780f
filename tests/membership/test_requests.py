"""What a member says, when it says it again, and whom it believes (PROTOCOL §3, §8, §9)."""

from dataclasses import replace

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.worker.instructions import Compute, Start
from fairlead.actors.worker.states import State
from fairlead.events.model import ClientAssignor
from fairlead_tests.membership.driver import (
    ASSIGNORS,
    PATIENCE_MS,
    MemberDriver,
    resources,
    seated,
    spelled,
)

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
    driver = MemberDriver()
    assert (driver.join(), driver.sent, driver.state()) == ([], [JOIN], State.JOINING)


def test_the_next_request_follows_an_answer_at_once_and_says_what_is_new_only() -> None:
    driver = MemberDriver()
    driver.join()
    assert driver.answer("") == []
    assert driver.sent[1:] == [Heartbeat("g", "m", 1, "i", 2)]
    assert driver.answer("A A-0") == [Start(resources("A A-0"), 7)]
    assert driver.sent[2:] == [
        Heartbeat("g", "m", 1, "i", 3, owned=tuple(sorted(resources("A A-0"))))
    ]
    assert driver.state() is State.ACKNOWLEDGING
    driver.answer()
    assert driver.sent[3:] == [Heartbeat("g", "m", 1, "i", 4)]
    assert driver.state() is State.STABLE


def test_an_empty_share_leads_to_stable() -> None:
    driver = MemberDriver()
    driver.join()
    driver.answer("")
    assert driver.state() is State.STABLE


def test_a_request_without_an_answer_is_repeated_in_full_and_only_its_answer_counts() -> None:
    driver = seated()
    first = driver.sent[-1]
    assert not first.is_full
    assert (driver.passes(PATIENCE_MS - 1), driver.sent[-1]) == ([], first)
    driver.passes(1)
    second = driver.sent[-1]
    assert (second.sequence, second.is_full) == (first.sequence + 1, True)
    assert spelled(second.owned) == "A A-0"
    assert driver.answer("A A-0 A-1", to=first) == []
    assert (spelled(driver.membership.owned), driver.sent[-1]) == ("A A-0", second)
    assert driver.answer("A A-0 A-1", to=second) == [Start(resources("A-1"), 7)]


def test_a_request_that_supersedes_another_is_full() -> None:
    driver = seated()
    assert not driver.sent[-1].is_full
    driver.take(
        driver.membership.change_assignors(
            (ClientAssignor("balanced", metadata=b"1"),), driver.now_ms
        )
    )
    assert driver.sent[-1].is_full
    driver.answer()
    assert not driver.sent[-1].is_full


def test_assignors_that_did_not_change_are_not_told_again() -> None:
    driver = seated()
    assert driver.membership.change_assignors(ASSIGNORS, driver.now_ms) == []


def test_an_answer_counts_once() -> None:
    driver = seated()
    request = driver.sent[-1]
    driver.answer(to=request)
    count = len(driver.sent)
    assert (driver.answer("A", to=request), len(driver.sent)) == ([], count)
    assert spelled(driver.membership.owned) == "A A-0"


def test_the_answer_to_another_incarnation_does_not_count() -> None:
    driver = seated()
    reply = replace(driver.reply(driver.sent[-1], "A"), incarnation="another")
    assert driver.membership.handle_reply(reply, driver.now_ms) == []
    assert spelled(driver.membership.owned) == "A A-0"


def test_after_a_lost_reply_the_repeated_join_finds_the_seat() -> None:
    driver = MemberDriver()
    driver.join()
    driver.passes(PATIENCE_MS)
    assert driver.sent == [JOIN, replace(JOIN, sequence=2)]
    assert driver.answer("A", epoch=3) == [Start(resources("A"), 7)]
    assert driver.membership.member_epoch == 3


def test_everything_is_said_again_to_a_group_that_is_served_by_somebody_new() -> None:
    driver = seated()
    driver.take(driver.membership.reconnect(driver.now_ms))
    request = driver.sent[-1]
    assert (request.is_full, spelled(request.owned), request.member_epoch) == (True, "A A-0", 1)
    driver.membership.handle_reply(driver.reply(request), driver.now_ms)
    assert driver.state() is State.STABLE


def test_an_order_to_compute_is_passed_on_once_and_blocks_nothing() -> None:
    driver = seated()
    assert driver.answer(error=Error.COMPUTE_ASSIGNMENT) == [Compute(1)]
    assert driver.answer("A A-0 A-1", error=Error.COMPUTE_ASSIGNMENT) == [
        Start(resources("A-1"), 7)
    ]
    driver.membership.computing = False
    assert driver.answer(error=Error.COMPUTE_ASSIGNMENT) == [Compute(1)]
