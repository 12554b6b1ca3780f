"""What was sent to an earlier process of the coordinator changes nothing in a later one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead.actors.group.members.request_filter import SALTS, STRANGERS, first_epoch
from fairlead.actors.messages.members import (
    LEAVE_EPOCH,
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from fairlead.events.model import MemberState
from fairlead_tests.coordination.driver import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    CoordinatorDriver,
    told,
)
from fairlead_tests.decider import resources

REFUSED = {"a": ("NOT_COORDINATOR", None)}


def is_asked_to_give_up_b(driver: CoordinatorDriver) -> list[Heartbeat]:
    """Have `a` run A and B, and be asked for B; return what it has sent on the way."""
    sent = [driver.joining("a")]
    for name in "AB":
        driver.put(name)
    driver.asks(sent[0])
    driver.compute("a")
    sent.append(driver.full("a", ""))
    driver.asks(sent[-1])
    sent.append(driver.full("a", "A B"))
    driver.asks(sent[-1])
    driver.asks(driver.joining("b"))
    driver.compute("a")
    sent.append(driver.full("a", "A B"))
    driver.asks(sent[-1])
    assert driver.group.members["a"].current.state is MemberState.UNREVOKED
    assert driver.group.members["a"].current.pending.keys() == resources("B")
    return sent


LATE: dict[str, Callable[[list[Heartbeat], CoordinatorDriver], Heartbeat]] = {
    "its own join": lambda sent, _: sent[0],
    "a join that never arrived": lambda _, driver: driver.joining("a"),
    "an older list of what runs": lambda sent, _: sent[1],
    "the last request": lambda sent, _: sent[-1],
    "a goodbye": lambda _, driver: driver.request("a", LEAVE_EPOCH),
    "a goodbye for a while": lambda _, driver: driver.request("a", -2, instance_id="s"),
}


@pytest.mark.parametrize("what", LATE)
def test_what_was_sent_to_an_earlier_process_changes_nothing(
    driver: CoordinatorDriver, what: str
) -> None:
    late = LATE[what](is_asked_to_give_up_b(driver), driver)
    members, end = dict(driver.group.members), driver.group.end
    driver.open()
    said = driver.asks(late)
    assert told(said) == REFUSED
    assert (driver.group.members, driver.group.end) == (members, end)


@pytest.mark.parametrize("what", LATE)
@pytest.mark.parametrize("jump_ms", [-86_400_000, 86_400_000], ids=["back", "ahead"])
def test_it_changes_nothing_after_many_processes_nor_when_the_clock_was_set(
    driver: CoordinatorDriver, what: str, jump_ms: int
) -> None:
    late = LATE[what](is_asked_to_give_up_b(driver), driver)
    for _ in range(3):
        driver.open()
        driver.wall_jump_ms += jump_ms
        driver.asks(driver.full("a", "A B"), driver.joining("b"))
        members, end = dict(driver.group.members), driver.group.end
        said = [each for each in driver.asks(late) if each.to == "a"]
        assert told(said) == REFUSED
        assert (driver.group.members, driver.group.end) == (members, end)


def test_the_late_join_of_who_was_removed_meanwhile_brings_no_seat_back(
    driver: CoordinatorDriver,
) -> None:
    sent = is_asked_to_give_up_b(driver)
    driver.open()
    driver.passes(SESSION_MS)
    assert "a" not in driver.group.members
    for late in (sent[0], driver.joining("a")):
        was_sent_before = replace(late, coordinator_epoch=sent[0].coordinator_epoch)
        assert told(driver.asks(was_sent_before)) == REFUSED
    assert "a" not in driver.group.members


def test_what_was_meant_for_another_group_or_another_log_changes_nothing(
    driver: CoordinatorDriver,
) -> None:
    sent = is_asked_to_give_up_b(driver)
    members, end = dict(driver.group.members), driver.group.end
    number = driver.coordinator.coordinator_epoch
    strays = [
        replace(driver.full("a"), group_id="another"),
        replace(driver.full("a"), coordinator_epoch=number + first_epoch(1)),
        replace(sent[0], sequence=99, coordinator_epoch=first_epoch(1, 7)),
        replace(driver.request("a", LEAVE_EPOCH), coordinator_epoch=first_epoch(1, 7)),
    ]
    errors = [told(driver.asks(each))["a"][0] for each in strays]
    assert errors == ["GROUP_ID_NOT_FOUND", *["NOT_COORDINATOR"] * 3]
    assert (driver.group.members, driver.group.end) == (members, end)


def test_processes_that_own_copies_of_a_log_have_different_numbers() -> None:
    numbers = {first_epoch(owner, salt) for owner in (1, 2) for salt in (0, 1, SALTS - 1)}
    assert len(numbers) == 6
    assert max(numbers) < first_epoch(3)


def test_what_is_late_does_not_refresh_the_session(driver: CoordinatorDriver) -> None:
    sent = is_asked_to_give_up_b(driver)
    driver.open()
    driver.passes(SESSION_MS - 1)
    assert told(driver.asks(sent[-1])) == REFUSED
    driver.passes(1)
    assert "a" not in driver.group.members


def test_what_is_late_takes_no_held_request_away(driver: CoordinatorDriver) -> None:
    is_asked_to_give_up_b(driver)
    driver.open()
    driver.asks(driver.full("a", "A B"))
    assert driver.asks(driver.request("a")) == [], "it is held"
    held = driver.sequences["a"]
    assert told(driver.asks(replace(driver.full("a"), coordinator_epoch=7))) == REFUSED
    (answer,) = [each for each in driver.passes(HEARTBEAT_MS) if each.to == "a"]
    assert isinstance(answer.reply, HeartbeatReply)
    assert answer.reply.sequence == held


def test_a_refusal_names_the_process_that_carries_the_request_out(
    driver: CoordinatorDriver,
) -> None:
    late = is_asked_to_give_up_b(driver)[-1]
    driver.open()
    (answer,) = driver.asks(late)
    assert isinstance(answer.reply, HeartbeatReply)
    number = answer.reply.coordinator_epoch
    again = replace(late, sequence=late.sequence + 1, coordinator_epoch=number)
    assert told(driver.asks(again)) == {"a": ("NONE", "A")}


@pytest.mark.parametrize("number", [NO_COORDINATOR_EPOCH, 1], ids=["of no process", "of another"])
def test_a_join_of_who_has_left_brings_no_seat_back(driver: CoordinatorDriver, number: int) -> None:
    join = replace(driver.joining("a"), coordinator_epoch=number)
    driver.asks(driver.joining("a"))
    driver.asks(driver.request("a", LEAVE_EPOCH))
    for _ in range(2):
        assert told(driver.asks(join)) == REFUSED
        assert driver.group.members == {}
        driver.open()


def test_who_has_no_seat_hears_so_at_once(driver: CoordinatorDriver) -> None:
    is_asked_to_give_up_b(driver)
    driver.open()
    stranger = Heartbeat("connect", "c", 3, "i-c", 9)
    assert told(driver.asks(stranger)) == {"c": ("UNKNOWN_MEMBER_ID", None)}


def test_a_client_without_an_incarnation_may_name_no_process(driver: CoordinatorDriver) -> None:
    foreign = replace(
        driver.joining("a"), incarnation="", sequence=0, coordinator_epoch=NO_COORDINATOR_EPOCH
    )
    assert told(driver.asks(foreign)) == {"a": ("COMPUTE_ASSIGNMENT", "")}
    driver.open()
    assert told(driver.asks(replace(foreign, coordinator_epoch=1))) == REFUSED
    assert told(driver.asks(foreign)) == {"a": ("COMPUTE_ASSIGNMENT", "")}


def plain(request: Heartbeat) -> Heartbeat:
    """The request as a client says it that has no incarnation."""
    return replace(request, incarnation="", sequence=0)


def is_asked_to_give_up_b_without_an_incarnation(driver: CoordinatorDriver) -> Heartbeat:
    """Have `a`, a client without an incarnation, be asked for B; return its join."""
    join = plain(driver.joining("a"))
    for name in "AB":
        driver.put(name)
    driver.asks(join)
    driver.compute("a")
    driver.asks(plain(driver.full("a", "")))
    driver.asks(driver.joining("b"))
    driver.compute("a")
    driver.asks(plain(driver.full("a", "A B")))
    assert driver.group.members["a"].current.pending.keys() == resources("B")
    return join


def test_a_repeated_join_without_an_incarnation_acknowledges_nothing(
    driver: CoordinatorDriver,
) -> None:
    join = is_asked_to_give_up_b_without_an_incarnation(driver)
    before = driver.group.members["a"]
    driver.asks(join)
    assert driver.group.members["a"] == before
    driver.asks(plain(driver.full("a", "A")))
    assert driver.group.members["a"].current.state is MemberState.STABLE


def test_who_joins_again_without_an_incarnation_keeps_what_it_is_granted_for_a_session(
    driver: CoordinatorDriver,
) -> None:
    join = is_asked_to_give_up_b_without_an_incarnation(driver)
    asked_ms = driver.now_ms
    while driver.now_ms < asked_ms + REBALANCE_MS - HEARTBEAT_MS:
        driver.passes(HEARTBEAT_MS)
        driver.asks(plain(driver.full("a", "A B")), driver.request("b"))
    driver.passes(asked_ms + REBALANCE_MS - 1 - driver.now_ms)
    assert told(driver.asks(join)) == {"a": ("NONE", "A")}
    driver.passes(SESSION_MS - 1)
    assert driver.group.owner[next(iter(resources("A")))] == "a", "it may run A by now"
    driver.passes(1)
    assert "a" not in driver.group.members


def test_answers_name_the_number_that_rises_when_strangers_are_forgotten(
    driver: CoordinatorDriver,
) -> None:
    is_asked_to_give_up_b(driver)
    number = driver.coordinator.coordinator_epoch
    driver.asks(*(Heartbeat("connect", f"s{each}", 3, "i", 1) for each in range(STRANGERS)))
    assert driver.coordinator.coordinator_epoch == number + 1
    (answer,) = driver.asks(driver.full("a", "A B"))
    assert isinstance(answer.reply, HeartbeatReply)
    assert answer.reply.coordinator_epoch == number + 1
