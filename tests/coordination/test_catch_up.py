"""A large group learns of an epoch at its own pace; who has something to do hears of it at once."""

import pytest

from fairlead.actors.group.members.long_poll import AT_ONCE, HELD_UP_MS, CatchUps
from fairlead.actors.messages.orders import PutConnector
from fairlead.events.model import GroupState
from fairlead_tests.coordination.driver import HEARTBEAT_MS, SESSION_MS, CoordinatorDriver, told

MEMBERS = [f"m{number:02}" for number in range(3 * AT_ONCE)]
FIRST, *OTHERS = MEMBERS


def crowd(driver: CoordinatorDriver) -> CoordinatorDriver:
    """All members at the last epoch, each with a request that waits; the first one computes."""
    for name in ("A", "B"):
        driver.put(name)
    for member in MEMBERS:
        driver.asks(driver.joining(member))
    driver.compute(FIRST)
    while driver.group.state is not GroupState.STABLE:
        for member in MEMBERS:
            owned = [*driver.group.members[member].current.assigned]
            driver.asks(driver.request(member, owned=tuple(owned)))
    assert [answer for member in MEMBERS for answer in driver.beat(member)] == []
    return driver


def behind(driver: CoordinatorDriver) -> list[str]:
    epoch = driver.group.assignment_epoch
    return [each for each in MEMBERS if driver.group.members[each].current.member_epoch < epoch]


def test_who_gets_something_hears_of_it_at_once_and_the_others_a_few_at_a_time(
    driver: CoordinatorDriver,
) -> None:
    crowd(driver)
    driver.put("C")
    driver.beat(FIRST)
    said = told(driver.compute(FIRST))
    assert [share for _, share in said.values() if share is not None] == ["C"]
    assert len(said) == AT_ONCE + 1
    assert len(behind(driver)) == len(MEMBERS) - len(said)


def test_each_that_is_heard_of_again_gives_another_its_turn_until_all_are_at_the_epoch(
    driver: CoordinatorDriver,
) -> None:
    crowd(driver)
    driver.put("C")
    driver.beat(FIRST)
    spoken_to = list(told(driver.compute(FIRST)))
    while spoken_to:
        member = spoken_to.pop(0)
        held = [*driver.group.members[member].current.assigned]
        said = told(driver.asks(driver.request(member, owned=tuple(held))))
        assert len(said) <= 1
        spoken_to += said
    assert behind(driver) == []
    assert driver.group.state is GroupState.STABLE


def test_whoever_is_slow_to_answer_keeps_the_others_waiting_for_a_moment_only(
    driver: CoordinatorDriver,
) -> None:
    crowd(driver)
    driver.put("C")
    driver.beat(FIRST)
    driver.compute(FIRST)
    left = len(behind(driver))
    assert told(driver.passes(HELD_UP_MS - 1)) == {}
    assert len(told(driver.passes(1))) == AT_ONCE
    assert len(behind(driver)) == left - AT_ONCE


def test_a_target_that_the_next_one_will_overtake_is_told_to_whom_it_gives_something(
    driver: CoordinatorDriver,
) -> None:
    crowd(driver)
    driver.put("C")
    driver.beat(FIRST)
    epoch = driver.group.members[FIRST].current.member_epoch
    prepared = driver.begin(FIRST, epoch)
    driver.put("D")
    said = told(driver.end(FIRST, epoch, prepared))
    assert sorted(said.values(), key=str) == [("COMPUTE_ASSIGNMENT", None), ("NONE", "C")]
    assert len(behind(driver)) == len(MEMBERS) - len(said)
    driver.beat(FIRST)
    said = told(driver.compute(FIRST))
    assert sorted(share for _, share in said.values() if share is not None) == ["D"]
    assert len(said) == AT_ONCE + 1


def test_no_member_waits_for_its_turn_longer_than_for_its_answer(driver: CoordinatorDriver) -> None:
    crowd(driver)
    driver.put("C")
    driver.beat(FIRST)
    driver.compute(FIRST)
    driver.put("D")  # nobody computes it, so that the turns wait
    driver.passes(HEARTBEAT_MS)
    assert behind(driver) == []


def test_a_small_group_is_told_all_at_once(driver: CoordinatorDriver) -> None:
    for member in ("a", "b", "c"):
        driver.asks(driver.joining(member))
    driver.compute("a")
    for member in ("a", "b", "c") * 3:
        driver.beat(member)
    driver.put("A")
    driver.beat("a")
    assert told(driver.compute("a")).keys() == {"a", "b", "c"}


@pytest.mark.parametrize("of_task", [False, True])
def test_who_runs_a_connector_is_answered_when_it_is_configured_anew(
    driver: CoordinatorDriver, of_task: bool
) -> None:
    crowd(driver)
    (holder,) = (member for resource, member in driver.group.owner.items() if str(resource) == "A")
    if of_task:
        driver.split(holder, "A", 2)
        driver.beat(holder)
        assert holder in told(driver.split(holder, "A", 3))
    else:
        changed = PutConnector("connect", "A", {"name": "A", "more": "1"})
        assert told(driver.send(changed)) == {holder: ("NONE", None)}


def test_nobody_expires_while_the_group_itself_could_not_hear_anybody(
    driver: CoordinatorDriver,
) -> None:
    crowd(driver)
    driver.now_ms += SESSION_MS
    driver.coordinator.extend_timers(SESSION_MS)
    driver.passes(0)
    assert driver.group.members.keys() == set(MEMBERS)
    driver.passes(SESSION_MS - 1)
    assert driver.group.members.keys() == set(MEMBERS)
    driver.passes(SESSION_MS)
    assert driver.group.members.keys() == set()


def test_time_need_not_pass_for_turns_that_wait_for_the_next_target() -> None:
    turns = CatchUps()
    turns.add(MEMBERS)
    assert len([*turns.turns(MEMBERS, 0, is_overtaken=False)]) == AT_ONCE
    assert turns.next_ms() == HELD_UP_MS
    assert [*turns.turns(MEMBERS, HELD_UP_MS, is_overtaken=True)] == []
    assert turns.next_ms() is None
    assert len([*turns.turns(MEMBERS, HELD_UP_MS, is_overtaken=False)]) == AT_ONCE


def test_who_was_answered_since_a_connector_was_configured_anew_is_not_answered_for_it_again(
    driver: CoordinatorDriver,
) -> None:
    crowd(driver)
    holders = [(each.connector, member) for each, member in driver.group.owner.items()]
    name, holder = next((name, member) for name, member in holders if member != FIRST)
    changed = PutConnector("connect", name, {"name": name, "more": "1"})
    driver.coordinator.submit(changed, "someone", driver.now)
    assert holder in told(driver.passes(HEARTBEAT_MS))
    assert driver.beat(holder) == []
    assert holder not in told(driver.put("C"))
