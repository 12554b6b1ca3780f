"""What no legal history allows is never written, and is told with what led there."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.actors.group.state.legality import FLAWS, IllegalRecordError, Legality, flaw
from fairlead.events.entries.codec import decode
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.model import Cause, MemberState, Why
from fairlead.events.records import (
    ClassicGroup,
    ConnectorConfig,
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from fairlead_tests.coordination.driver import CoordinatorDriver
from fairlead_tests.decider import Decider, resource, resources
from fairlead_tests.life import DEEDS, NUMBERS, OPENING, Deed, Life

CAUSE = Cause(Why.MEMBER_LEFT, "W1")
STABLE, UNREVOKED = MemberState.STABLE, MemberState.UNREVOKED
A, B = resource("A"), resource("B")


def settled() -> Decider:
    """W1 and W2 at assignment epoch 2, with a connector each."""
    decider = Decider()
    decider.configure("A B")
    decider.join("W1")
    decider.join("W2")
    decider.compute()
    decider.settle()
    assert decider.group.owner == {A: "W1", B: "W2"}
    return decider


ILLEGAL: dict[str, tuple[Record, str]] = {
    "the group epoch stands": (
        GroupMetadata(2, CAUSE, 0),
        "group epoch 2 cannot follow 2",
    ),
    "the group epoch leaps": (
        GroupMetadata(4, CAUSE, 0),
        "group epoch 4 cannot follow 2",
    ),
    "one assignment epoch has two targets": (
        TargetAssignment(2, {}),
        "assignment epoch 2 is not behind 2 and group epoch 2",
    ),
    "the target is of an epoch to come": (
        TargetAssignment(3, {}),
        "assignment epoch 3 is not behind 2 and group epoch 2",
    ),
    "a generation skips an epoch": (
        ClassicGroup(4, CAUSE, 0),
        "generation 4 cannot follow epoch 2",
    ),
    "a generation beside other members": (
        ClassicGroup(3, CAUSE, 0),
        "generation 3 of a group with members of the connect protocol",
    ),
    "a member is beyond the target": (
        CurrentAssignment("W1", 3, 2, STABLE, {A: 2}, {}),
        "W1 is at 3, beyond 2",
    ),
    "a member goes back": (
        CurrentAssignment("W1", 1, 1, STABLE, {A: 1}, {}),
        "W1 goes back from 2 to 1",
    ),
    "nobody takes a step": (
        CurrentAssignment("W9", 2, 1, STABLE, {}, {}),
        "W9 takes a step and is no member",
    ),
    "two hold the same": (
        CurrentAssignment("W1", 2, 2, STABLE, {A: 2, B: 2}, {}),
        "W1 is to hold B, which W2 still holds",
    ),
    "nothing is given up": (
        CurrentAssignment("W1", 2, 2, UNREVOKED, {A: 2}, {}),
        "W1 is UNREVOKED and does not give up what that says",
    ),
    "a seat changes its beginning": (
        MemberMetadata("W1", joined_epoch=2),
        "W1 joined for epoch 1 and cannot now for 2",
    ),
    "the seat goes first": (
        Tombstone(MemberMetadata, ("W1",)),
        "the seat of W1 cannot go before what it holds",
    ),
    "who is there is lost": (
        Loss("W1", None, "", resources("A"), 0, CAUSE, 1),
        "W1 is a member, and cannot be lost",
    ),
}


@pytest.mark.parametrize(("record", "found"), ILLEGAL.values(), ids=ILLEGAL)
def test_a_record_that_no_legal_history_allows_is_refused(record: Record, found: str) -> None:
    assert flaw(settled().group, record) == found


def test_every_law_is_broken_by_a_test() -> None:
    assert {type(record) for record, _ in ILLEGAL.values()} == set(FLAWS)


def test_a_target_places_nothing_twice_and_gives_no_share_to_strangers() -> None:
    group = settled().group
    evolve(group, GroupMetadata(3, CAUSE, 0), group.end)
    twice = TargetAssignment(3, {"W1": resources("A B"), "W2": resources("B")})
    assert flaw(group, twice) == "the target of epoch 3 places a resource twice"
    stranger = TargetAssignment(3, {"W1": resources("A"), "W9": resources("B")})
    assert flaw(group, stranger) == "the target of epoch 3 has a share for W9, which is no member"
    assert flaw(group, TargetAssignment(3, {"W1": resources("A B")})) == ""


def test_an_instance_id_has_one_seat() -> None:
    group = Group("connect")
    first = MemberMetadata("W1", joined_epoch=1, instance_id="i")
    evolve(group, first, 0)
    assert flaw(group, first) == ""
    second = replace(first, member_id="W2")
    assert flaw(group, second) == "W2 cannot have the instance id of W1"


def test_a_static_member_goes_to_its_leave_and_back_to_zero_and_nowhere_else() -> None:
    group = settled().group
    away = CurrentAssignment("W1", -2, 2, STABLE, {A: 2}, {})
    assert flaw(group, away) == ""
    evolve(group, away, group.end)
    assert flaw(group, replace(away, member_epoch=0, previous_epoch=0)) == ""
    assert flaw(group, replace(away, member_epoch=2)) == "W1 goes back from -2 to 2"


def test_the_error_tells_what_led_there_for_that_member_and_the_group() -> None:
    legality, group = Legality(), Group("connect")
    legal: list[Record] = [
        MemberMetadata("W1", joined_epoch=1),
        GroupMetadata(1, Cause(Why.MEMBER_JOINED, "http://w1"), 0),
        MemberMetadata("W2", joined_epoch=2),
        GroupMetadata(2, Cause(Why.MEMBER_JOINED, "http://w2"), 0),
        ConnectorConfig("A", {"password": "hunter2"}, 1, 0),
        TargetAssignment(2, {"W1": resources("A")}),
        CurrentAssignment("W2", 2, 0, STABLE, {}, {}),
        CurrentAssignment("W1", 2, 0, STABLE, {A: 2}, {}),
    ]
    for record in legal:
        legality.check(group, record)
        evolve(group, record, group.end)
    with pytest.raises(IllegalRecordError) as caught:
        legality.check(group, CurrentAssignment("W2", 2, 2, STABLE, {A: 2}, {}))
    assert str(caught.value).splitlines() == [
        "W2 is to hold A, which W1 still holds; what led there:",
        "1 GroupMetadata 1: member-joined http://w1",
        "2 MemberMetadata W2",
        "3 GroupMetadata 2: member-joined http://w2",
        "4 ConnectorConfig",
        "5 TargetAssignment 2",
        "6 CurrentAssignment W2 0 -> 2 STABLE holds [] gives up []",
        "8 CurrentAssignment W2 2 -> 2 STABLE holds [A] gives up []",
    ]


NUMBER = st.integers(0, NUMBERS - 1)
NAMES = [*DEEDS, "join", "expire", *["rest"] * 6]
LIVES = st.lists(st.tuples(st.sampled_from(NAMES), NUMBER, NUMBER), min_size=10, max_size=50).map(
    lambda deeds: [*OPENING, *deeds]
)


@given(deeds=LIVES)
@settings(max_examples=40)
def test_whatever_the_rules_lead_to_is_legal(deeds: list[Deed]) -> None:
    group, legality = Group("connect"), Legality()
    for entry in Life().lead(deeds).witness.entries:
        record = decode(entry)
        assert record is not None
        legality.check(group, record)
        evolve(group, record, entry.offset)


def test_the_coordinator_writes_nothing_of_what_no_legal_history_allows(tmp_path: Path) -> None:
    driver = CoordinatorDriver.at(tmp_path)
    driver.asks(driver.joining("W1"))
    end = driver.control.end
    beyond = CurrentAssignment("W1", 9, 9, STABLE, {}, {})  # whatever went wrong
    driver.group.members["W1"] = replace(driver.group.members["W1"], current=beyond)
    with pytest.raises(IllegalRecordError, match="W1 goes back from 9 to 0; what led there:"):
        driver.asks(driver.request("W1", owned=()))
    assert (driver.flush(), driver.control.end) == ([], end)
    driver.close()


def test_old_logs_in_which_two_members_have_one_instance_id_go_on() -> None:
    group = Group("connect")
    for number, member_id in enumerate(("W1", "W2")):
        evolve(group, MemberMetadata(member_id, instance_id="s"), number)
    later = replace(group.members["W1"].metadata, url="http://elsewhere")
    assert flaw(group, later) == ""
    assert flaw(group, MemberMetadata("W3", instance_id="s")) != ""
