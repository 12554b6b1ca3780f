"""A large group learns of an epoch at its own pace; who has something to do hears of it at once."""

import pytest

from fairlead.actors.group.catch_up import AT_ONCE, HELD_UP_MS, CatchUps
from fairlead.actors.messages.work import PutConnector
from fairlead.events.model import GroupState
from fairlead_tests.coordination.office import HEARTBEAT_MS, SESSION_MS, Office, told

MEMBERS = [f"m{number:02}" for number in range(3 * AT_ONCE)]
FIRST, *OTHERS = MEMBERS


def crowd(office: Office) -> Office:
    """All members at the last epoch, each with a request that waits; the first one computes."""
    for name in ("A", "B"):
        office.put(name)
    for member in MEMBERS:
        office.asks(office.joining(member))
    office.compute(FIRST)
    while office.group.state is not GroupState.STABLE:
        for member in MEMBERS:
            owned = [*office.group.members[member].current.assigned]
            office.asks(office.request(member, owned=tuple(owned)))
    assert [answer for member in MEMBERS for answer in office.beat(member)] == []
    return office


def behind(office: Office) -> list[str]:
    epoch = office.group.assignment_epoch
    return [each for each in MEMBERS if office.group.members[each].current.member_epoch < epoch]


def test_who_gets_something_hears_of_it_at_once_and_the_others_a_few_at_a_time(
    office: Office,
) -> None:
    crowd(office)
    office.put("C")
    office.beat(FIRST)
    said = told(office.compute(FIRST))
    assert [share for _, share in said.values() if share is not None] == ["C"]
    assert len(said) == AT_ONCE + 1
    assert len(behind(office)) == len(MEMBERS) - len(said)


def test_each_that_is_heard_of_again_gives_another_its_turn_until_all_are_at_the_epoch(
    office: Office,
) -> None:
    crowd(office)
    office.put("C")
    office.beat(FIRST)
    spoken_to = list(told(office.compute(FIRST)))
    while spoken_to:
        member = spoken_to.pop(0)
        held = [*office.group.members[member].current.assigned]
        said = told(office.asks(office.request(member, owned=tuple(held))))
        assert len(said) <= 1
        spoken_to += said
    assert behind(office) == []
    assert office.group.state is GroupState.STABLE


def test_whoever_is_slow_to_answer_keeps_the_others_waiting_for_a_moment_only(
    office: Office,
) -> None:
    crowd(office)
    office.put("C")
    office.beat(FIRST)
    office.compute(FIRST)
    left = len(behind(office))
    assert told(office.passes(HELD_UP_MS - 1)) == {}
    assert len(told(office.passes(1))) == AT_ONCE
    assert len(behind(office)) == left - AT_ONCE


def test_a_target_that_the_next_one_will_overtake_is_told_to_whom_it_gives_something(
    office: Office,
) -> None:
    crowd(office)
    office.put("C")
    office.beat(FIRST)
    epoch = office.group.members[FIRST].current.member_epoch
    prepared = office.begin(FIRST, epoch)
    office.put("D")
    said = told(office.end(FIRST, epoch, prepared))
    assert sorted(said.values(), key=str) == [("COMPUTE_ASSIGNMENT", None), ("NONE", "C")]
    assert len(behind(office)) == len(MEMBERS) - len(said)
    office.beat(FIRST)
    said = told(office.compute(FIRST))
    assert sorted(share for _, share in said.values() if share is not None) == ["D"]
    assert len(said) == AT_ONCE + 1


def test_no_member_waits_for_its_turn_longer_than_for_its_answer(office: Office) -> None:
    crowd(office)
    office.put("C")
    office.beat(FIRST)
    office.compute(FIRST)
    office.put("D")  # nobody computes it, so that the turns wait
    office.passes(HEARTBEAT_MS)
    assert behind(office) == []


def test_a_small_group_is_told_all_at_once(office: Office) -> None:
    for member in ("a", "b", "c"):
        office.asks(office.joining(member))
    office.compute("a")
    for member in ("a", "b", "c") * 3:
        office.beat(member)
    office.put("A")
    office.beat("a")
    assert told(office.compute("a")).keys() == {"a", "b", "c"}


@pytest.mark.parametrize("of_task", [False, True])
def test_who_runs_a_connector_is_answered_when_it_is_configured_anew(
    office: Office, of_task: bool
) -> None:
    crowd(office)
    (holder,) = (member for resource, member in office.group.owner.items() if str(resource) == "A")
    if of_task:
        office.split(holder, "A", 2)
        office.beat(holder)
        assert holder in told(office.split(holder, "A", 3))
    else:
        changed = PutConnector("connect", "A", {"name": "A", "more": "1"})
        assert told(office.send(changed)) == {holder: ("NONE", None)}


def test_nobody_expires_while_the_group_itself_could_not_hear_anybody(office: Office) -> None:
    crowd(office)
    office.now_ms += SESSION_MS
    office.coordinator.excuse(SESSION_MS)
    office.passes(0)
    assert office.group.members.keys() == set(MEMBERS)
    office.passes(SESSION_MS - 1)
    assert office.group.members.keys() == set(MEMBERS)
    office.passes(SESSION_MS)
    assert office.group.members.keys() == set()


def test_time_need_not_pass_for_turns_that_wait_for_the_next_target() -> None:
    turns = CatchUps()
    turns.add(MEMBERS)
    assert len([*turns.turns(MEMBERS, 0, is_overtaken=False)]) == AT_ONCE
    assert turns.next_ms() == HELD_UP_MS
    assert [*turns.turns(MEMBERS, HELD_UP_MS, is_overtaken=True)] == []
    assert turns.next_ms() is None
    assert len([*turns.turns(MEMBERS, HELD_UP_MS, is_overtaken=False)]) == AT_ONCE


def test_who_was_answered_since_a_connector_was_configured_anew_is_not_answered_for_it_again(
    office: Office,
) -> None:
    crowd(office)
    holders = [(each.connector, member) for each, member in office.group.owner.items()]
    name, holder = next((name, member) for name, member in holders if member != FIRST)
    changed = PutConnector("connect", name, {"name": name, "more": "1"})
    office.coordinator.take(changed, "someone", office.now)
    assert holder in told(office.passes(HEARTBEAT_MS))
    assert office.beat(holder) == []
    assert holder not in told(office.put("C"))
