"""Work that was lost waits for who lost it (PROTOCOL §7), through the coordinator to the end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.events.model import Cause, GroupState, Why
from fairlead.events.records import ScheduledRebalance
from fairlead_tests.coordination.driver import (
    HEARTBEAT_MS,
    SESSION_MS,
    SETTINGS,
    WALL_MS,
    CoordinatorDriver,
    told,
)

DELAY_MS = 60_000


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CoordinatorDriver]:
    """`a` runs one connector and `b` the other; lost work waits for a minute."""
    driver = CoordinatorDriver.at(tmp_path)
    driver.settings = replace(SETTINGS, max_delay_ms=DELAY_MS)
    driver.open()
    driver.put("A")
    driver.put("B")
    driver.asks(driver.joining("a"), replace(driver.joining("b"), instance_id="i"))
    settle(driver)
    assert sorted(work(driver).values()) == [["A"], ["B"]]
    yield driver
    driver.close()


def work(driver: CoordinatorDriver) -> dict[str, list[str]]:
    """What each member is assigned."""
    members = sorted(driver.group.members.items())
    return {name: sorted(map(str, member.current.assigned)) for name, member in members}


def beat(driver: CoordinatorDriver, *silent: str) -> list[str]:
    """Have all but the silent beat once, saying that they run what they are assigned.

    Returns who is asked to compute.
    """
    asked = dict[str, tuple[str, str | None]]()
    for member in sorted(driver.group.members.keys() - set(silent)):
        current = driver.group.members[member].current
        if current.member_epoch == 0:
            asked |= told(driver.asks(driver.joining(member)))
        elif current.member_epoch > 0:
            owned = " ".join(map(str, current.assigned))
            asked |= told(driver.asks(driver.full(member, owned)))
    return [member for member, (error, _) in asked.items() if error == "COMPUTE_ASSIGNMENT"]


def settle(driver: CoordinatorDriver, *silent: str) -> None:
    """Have all but the silent beat and compute until nothing more is written."""
    for _ in range(12):
        end = driver.group.end
        for member in beat(driver, *silent):
            driver.compute(member)
        if driver.group.end == end:
            return
    raise AssertionError("the group does not come to rest")


def passes(driver: CoordinatorDriver, milliseconds: int, *silent: str) -> None:
    """Let time pass in which all but the silent beat."""
    end = driver.now_ms + milliseconds
    while driver.now_ms < end:
        driver.passes(min(HEARTBEAT_MS, end - driver.now_ms))
        settle(driver, *silent)


def crashes(driver: CoordinatorDriver, member: str) -> list[str]:
    """Have a member fall silent until its session has expired; returns what it had."""
    had = work(driver)[member]
    passes(driver, SESSION_MS, member)
    assert member not in driver.group.members
    return had


def parked(driver: CoordinatorDriver) -> dict[str, int]:
    """What is parked, with its deadline on the driver's own clock."""
    schedule = driver.group.schedule
    return {
        str(each): due - WALL_MS
        for each, due in schedule.parked.items()
        if each not in schedule.fired
    }


def everything(driver: CoordinatorDriver) -> list[str]:
    """All that is assigned to anybody."""
    return sorted(name for share in work(driver).values() for name in share)


def test_what_a_crash_lost_waits_until_its_deadline_and_goes_to_others_then(
    driver: CoordinatorDriver,
) -> None:
    had = crashes(driver, "b")
    assert parked(driver) == dict.fromkeys(had, driver.now_ms + DELAY_MS)
    kept = work(driver)["a"]
    passes(driver, DELAY_MS - 1)
    assert work(driver) == {"a": kept}
    passes(driver, 1)
    assert work(driver) == {"a": ["A", "B"]}
    assert (driver.group.schedule, driver.group.losses) == (ScheduledRebalance(), {})
    assert driver.group.state is GroupState.STABLE


def test_a_clean_leave_parks_nothing(driver: CoordinatorDriver) -> None:
    driver.asks(driver.request("b", -1))
    settle(driver)
    assert (parked(driver), work(driver)) == ({}, {"a": ["A", "B"]})


def test_a_temporary_leave_parks_nothing_and_moves_nothing_until_its_wait_is_over(
    driver: CoordinatorDriver,
) -> None:
    kept = work(driver)["a"]
    driver.asks(driver.request("b", -2, instance_id="i"))
    passes(driver, DELAY_MS - 1)
    assert (parked(driver), work(driver)) == ({}, {"a": kept, "b": []})
    passes(driver, 1)
    assert (parked(driver), work(driver)) == ({}, {"a": ["A", "B"]})


def test_a_second_crash_shares_the_running_deadline(driver: CoordinatorDriver) -> None:
    driver.asks(driver.joining("c"))
    settle(driver)
    crashes(driver, "b")
    due_ms = driver.now_ms + DELAY_MS
    crashes(driver, "a")
    assert set(parked(driver).values()) == {due_ms}
    passes(driver, due_ms - driver.now_ms)
    assert work(driver) == {"c": ["A", "B"]}


def test_a_deadline_that_passed_while_the_coordinator_was_down_fires_once_it_is_back(
    driver: CoordinatorDriver,
) -> None:
    crashes(driver, "b")
    driver.now_ms += DELAY_MS
    driver.open()
    passes(driver, 1)
    assert driver.group.state is GroupState.STABLE
    assert (parked(driver), work(driver)) == ({}, {"a": ["A", "B"]})


def test_a_restart_of_the_coordinator_moves_no_deadline(driver: CoordinatorDriver) -> None:
    crashes(driver, "b")
    due = parked(driver)
    passes(driver, DELAY_MS // 2)
    driver.open()
    passes(driver, DELAY_MS // 2 - 1)
    assert parked(driver) == due
    passes(driver, 1)
    assert parked(driver) == {}


def test_a_crash_after_a_restart_of_the_coordinator_is_a_loss_like_any(
    driver: CoordinatorDriver,
) -> None:
    had = work(driver)["b"]
    driver.open()
    driver.asks(driver.request("b"))
    crashes(driver, "b")
    assert sorted(parked(driver)) == had


def test_delay_0_parks_nothing(driver: CoordinatorDriver) -> None:
    driver.settings = replace(SETTINGS, max_delay_ms=0)
    driver.open()
    crashes(driver, "b")
    settle(driver)
    assert (parked(driver), work(driver)) == ({}, {"a": ["A", "B"]})


def test_a_member_that_never_said_that_it_runs_anything_parks_nothing(
    driver: CoordinatorDriver,
) -> None:
    driver.put("C")
    driver.asks(driver.joining("c"))
    for member in beat(driver, "c"):
        driver.compute(member)
    assert driver.group.target_of["c"], "the target means it to have work"
    crashes(driver, "c")
    settle(driver)
    assert (parked(driver), everything(driver)) == ({}, ["A", "B", "C"])


def test_a_group_that_becomes_empty_parks_nothing(driver: CoordinatorDriver) -> None:
    crashes(driver, "b")
    crashes(driver, "a")
    assert (driver.group.state, parked(driver), driver.group.losses) == (GroupState.EMPTY, {}, {})
    driver.asks(driver.joining("c"))
    settle(driver)
    assert work(driver) == {"c": ["A", "B"]}


RETURNS = {
    "instance-id": ("b2", {"instance_id": "i"}),
    "member-id": ("b", {"url": "http://elsewhere"}),
    "url": ("b2", {"url": "http://b"}),
}


@pytest.mark.parametrize(("member", "said"), RETURNS.values(), ids=RETURNS)
def test_who_returns_gets_its_work_back_at_once(
    driver: CoordinatorDriver, member: str, said: dict[str, str]
) -> None:
    had = crashes(driver, "b")
    passes(driver, DELAY_MS // 2)
    driver.asks(replace(driver.joining(member), **said))  # type: ignore[arg-type]
    settle(driver)
    assert (work(driver)[member], parked(driver)) == (had, {})
    assert driver.group.losses == {}


def test_who_joined_anew_before_its_old_session_expired_gets_its_work_back(
    driver: CoordinatorDriver,
) -> None:
    had = work(driver)["b"]
    driver.asks(replace(driver.joining("b2"), url="http://b"))
    passes(driver, SESSION_MS, "b")
    settle(driver)
    assert (work(driver)["b2"], parked(driver)) == (had, {})


def test_another_newcomer_waits_the_deadline_out(driver: CoordinatorDriver) -> None:
    had = crashes(driver, "b")
    driver.asks(driver.joining("c"))
    passes(driver, DELAY_MS // 2)
    assert not set(had) & set(everything(driver))
    passes(driver, DELAY_MS // 2)
    assert everything(driver) == ["A", "B"]


def test_what_is_new_is_placed_at_once_though_work_is_parked(driver: CoordinatorDriver) -> None:
    had = crashes(driver, "b")
    driver.put("C")
    settle(driver)
    assert (sorted(parked(driver)), "C" in everything(driver)) == (had, True)


def test_what_an_overdue_member_was_to_keep_is_parked_and_the_rest_moves(
    driver: CoordinatorDriver,
) -> None:
    for name in ("C", "D"):
        driver.put(name)
    settle(driver)
    driver.asks(driver.joining("c"))
    for member in beat(driver):
        driver.compute(member)
    revoking = next(name for name in "ab" if len(driver.group.target_of[name]) == 1)
    had = work(driver)[revoking]
    driver.asks(driver.full(revoking, " ".join(had)))
    (kept,) = map(str, driver.group.target_of[revoking])
    until_ms = driver.now_ms + 60_000
    while driver.now_ms < until_ms:
        driver.passes(min(HEARTBEAT_MS, until_ms - driver.now_ms))
        if revoking in driver.group.members:
            driver.asks(driver.full(revoking, " ".join(had)))
        settle(driver, revoking)
    assert driver.group.bump is not None
    assert driver.group.bump.cause == Cause(Why.REBALANCE_EXPIRED, f"http://{revoking}")
    assert sorted(parked(driver)) == [kept]
    assert everything(driver) == sorted({"A", "B", "C", "D"} - {kept})
