"""What was sent to an earlier process of the coordinator changes nothing in a later one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead.actors.group.members.request_filter import SALTS, first_epoch
from fairlead.actors.messages.heartbeat import (
    LEAVE_EPOCH,
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from fairlead.events.model import MemberState
from fairlead_tests.coordination.office import HEARTBEAT_MS, REBALANCE_MS, SESSION_MS, Office, told
from fairlead_tests.decider import resources

REFUSED = {"a": ("NOT_COORDINATOR", None)}


def is_asked_to_give_up_b(office: Office) -> list[Heartbeat]:
    """Have `a` run A and B, and be asked for B; return what it has sent on the way."""
    sent = [office.joining("a")]
    for name in "AB":
        office.put(name)
    office.asks(sent[0])
    office.compute("a")
    sent.append(office.full("a", ""))
    office.asks(sent[-1])
    sent.append(office.full("a", "A B"))
    office.asks(sent[-1])
    office.asks(office.joining("b"))
    office.compute("a")
    sent.append(office.full("a", "A B"))
    office.asks(sent[-1])
    assert office.group.members["a"].current.state is MemberState.UNREVOKED
    assert office.group.members["a"].current.pending.keys() == resources("B")
    return sent


LATE: dict[str, Callable[[list[Heartbeat], Office], Heartbeat]] = {
    "its own join": lambda sent, _: sent[0],
    "a join that never arrived": lambda _, office: office.joining("a"),
    "an older list of what runs": lambda sent, _: sent[1],
    "the last request": lambda sent, _: sent[-1],
    "a goodbye": lambda _, office: office.request("a", LEAVE_EPOCH),
    "a goodbye for a while": lambda _, office: office.request("a", -2, instance_id="s"),
}


@pytest.mark.parametrize("what", LATE)
def test_what_was_sent_to_an_earlier_process_changes_nothing(office: Office, what: str) -> None:
    late = LATE[what](is_asked_to_give_up_b(office), office)
    members, end = dict(office.group.members), office.group.end
    office.open()
    said = office.asks(late)
    assert told(said) == REFUSED
    assert (office.group.members, office.group.end) == (members, end)


@pytest.mark.parametrize("what", LATE)
@pytest.mark.parametrize("jump_ms", [-86_400_000, 86_400_000], ids=["back", "ahead"])
def test_it_changes_nothing_after_many_processes_nor_when_the_clock_was_set(
    office: Office, what: str, jump_ms: int
) -> None:
    late = LATE[what](is_asked_to_give_up_b(office), office)
    for _ in range(3):
        office.open()
        office.wall_jump_ms += jump_ms
        office.asks(office.full("a", "A B"), office.joining("b"))
        members, end = dict(office.group.members), office.group.end
        said = [each for each in office.asks(late) if each.to == "a"]
        assert told(said) == REFUSED
        assert (office.group.members, office.group.end) == (members, end)


def test_the_late_join_of_who_was_removed_meanwhile_brings_no_seat_back(office: Office) -> None:
    sent = is_asked_to_give_up_b(office)
    office.open()
    office.passes(SESSION_MS)
    assert "a" not in office.group.members
    for late in (sent[0], office.joining("a")):
        was_sent_before = replace(late, coordinator_epoch=sent[0].coordinator_epoch)
        assert told(office.asks(was_sent_before)) == REFUSED
    assert "a" not in office.group.members


def test_what_was_meant_for_another_group_or_another_log_changes_nothing(office: Office) -> None:
    sent = is_asked_to_give_up_b(office)
    members, end = dict(office.group.members), office.group.end
    number = office.coordinator.coordinator_epoch
    strays = [
        replace(office.full("a"), group_id="another"),
        replace(office.full("a"), coordinator_epoch=number + first_epoch(1)),
        replace(sent[0], sequence=99, coordinator_epoch=first_epoch(1, 7)),
        replace(office.request("a", LEAVE_EPOCH), coordinator_epoch=first_epoch(1, 7)),
    ]
    errors = [told(office.asks(each))["a"][0] for each in strays]
    assert errors == ["GROUP_ID_NOT_FOUND", *["NOT_COORDINATOR"] * 3]
    assert (office.group.members, office.group.end) == (members, end)


def test_processes_that_own_copies_of_a_log_have_different_numbers() -> None:
    numbers = {first_epoch(owner, salt) for owner in (1, 2) for salt in (0, 1, SALTS - 1)}
    assert len(numbers) == 6
    assert max(numbers) < first_epoch(3)


def test_what_is_late_does_not_refresh_the_session(office: Office) -> None:
    sent = is_asked_to_give_up_b(office)
    office.open()
    office.passes(SESSION_MS - 1)
    assert told(office.asks(sent[-1])) == REFUSED
    office.passes(1)
    assert "a" not in office.group.members


def test_what_is_late_takes_no_held_request_away(office: Office) -> None:
    is_asked_to_give_up_b(office)
    office.open()
    office.asks(office.full("a", "A B"))
    assert office.asks(office.request("a")) == [], "it is held"
    held = office.sequences["a"]
    assert told(office.asks(replace(office.full("a"), coordinator_epoch=7))) == REFUSED
    (answer,) = [each for each in office.passes(HEARTBEAT_MS) if each.to == "a"]
    assert isinstance(answer.reply, HeartbeatReply)
    assert answer.reply.sequence == held


def test_a_refusal_names_the_process_that_carries_the_request_out(office: Office) -> None:
    late = is_asked_to_give_up_b(office)[-1]
    office.open()
    (answer,) = office.asks(late)
    assert isinstance(answer.reply, HeartbeatReply)
    number = answer.reply.coordinator_epoch
    again = replace(late, sequence=late.sequence + 1, coordinator_epoch=number)
    assert told(office.asks(again)) == {"a": ("NONE", "A")}


@pytest.mark.parametrize("number", [NO_COORDINATOR_EPOCH, 1], ids=["of no process", "of another"])
def test_a_join_of_who_has_left_brings_no_seat_back(office: Office, number: int) -> None:
    join = replace(office.joining("a"), coordinator_epoch=number)
    office.asks(office.joining("a"))
    office.asks(office.request("a", LEAVE_EPOCH))
    for _ in range(2):
        assert told(office.asks(join)) == REFUSED
        assert office.group.members == {}
        office.open()


def test_who_has_no_seat_hears_so_at_once(office: Office) -> None:
    is_asked_to_give_up_b(office)
    office.open()
    stranger = Heartbeat("connect", "c", 3, "i-c", 9)
    assert told(office.asks(stranger)) == {"c": ("UNKNOWN_MEMBER_ID", None)}


def test_a_client_without_an_incarnation_may_name_no_process(office: Office) -> None:
    foreign = replace(
        office.joining("a"), incarnation="", sequence=0, coordinator_epoch=NO_COORDINATOR_EPOCH
    )
    assert told(office.asks(foreign)) == {"a": ("COMPUTE_ASSIGNMENT", "")}
    office.open()
    assert told(office.asks(replace(foreign, coordinator_epoch=1))) == REFUSED
    assert told(office.asks(foreign)) == {"a": ("COMPUTE_ASSIGNMENT", "")}


def plain(request: Heartbeat) -> Heartbeat:
    """The request as a client says it that has no incarnation."""
    return replace(request, incarnation="", sequence=0)


def is_asked_to_give_up_b_without_an_incarnation(office: Office) -> Heartbeat:
    """Have `a`, a client without an incarnation, be asked for B; return its join."""
    join = plain(office.joining("a"))
    for name in "AB":
        office.put(name)
    office.asks(join)
    office.compute("a")
    office.asks(plain(office.full("a", "")))
    office.asks(office.joining("b"))
    office.compute("a")
    office.asks(plain(office.full("a", "A B")))
    assert office.group.members["a"].current.pending.keys() == resources("B")
    return join


def test_a_repeated_join_without_an_incarnation_acknowledges_nothing(office: Office) -> None:
    join = is_asked_to_give_up_b_without_an_incarnation(office)
    before = office.group.members["a"]
    office.asks(join)
    assert office.group.members["a"] == before
    office.asks(plain(office.full("a", "A")))
    assert office.group.members["a"].current.state is MemberState.STABLE


def test_who_joins_again_without_an_incarnation_keeps_what_it_is_granted_for_a_session(
    office: Office,
) -> None:
    join = is_asked_to_give_up_b_without_an_incarnation(office)
    asked_ms = office.now_ms
    while office.now_ms < asked_ms + REBALANCE_MS - HEARTBEAT_MS:
        office.passes(HEARTBEAT_MS)
        office.asks(plain(office.full("a", "A B")), office.request("b"))
    office.passes(asked_ms + REBALANCE_MS - 1 - office.now_ms)
    assert told(office.asks(join)) == {"a": ("NONE", "A")}
    office.passes(SESSION_MS - 1)
    assert office.group.owner[next(iter(resources("A")))] == "a", "it may run A by now"
    office.passes(1)
    assert "a" not in office.group.members
