"""Work that was lost waits for who lost it (PROTOCOL §7), through the coordinator to the end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.events.model import Cause, GroupState, Why
from fairlead.events.records import ScheduledRebalance
from fairlead_tests.coordination.office import (
    HEARTBEAT_MS,
    SESSION_MS,
    SETTINGS,
    WALL_MS,
    Office,
    told,
)

DELAY_MS = 60_000


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """`a` runs one connector and `b` the other; lost work waits for a minute."""
    office = Office.at(tmp_path)
    office.settings = replace(SETTINGS, max_delay_ms=DELAY_MS)
    office.open()
    office.put("A")
    office.put("B")
    office.asks(office.joining("a"), replace(office.joining("b"), instance_id="i"))
    settle(office)
    assert sorted(work(office).values()) == [["A"], ["B"]]
    yield office
    office.close()


def work(office: Office) -> dict[str, list[str]]:
    """What each member is assigned."""
    members = sorted(office.group.members.items())
    return {name: sorted(map(str, member.current.assigned)) for name, member in members}


def beat(office: Office, *silent: str) -> list[str]:
    """Have all but the silent beat once, saying that they run what they are assigned.

    Returns who is asked to compute.
    """
    asked = dict[str, tuple[str, str | None]]()
    for member in sorted(office.group.members.keys() - set(silent)):
        current = office.group.members[member].current
        if current.member_epoch == 0:
            asked |= told(office.asks(office.joining(member)))
        elif current.member_epoch > 0:
            owned = " ".join(map(str, current.assigned))
            asked |= told(office.asks(office.full(member, owned)))
    return [member for member, (error, _) in asked.items() if error == "COMPUTE_ASSIGNMENT"]


def settle(office: Office, *silent: str) -> None:
    """Have all but the silent beat and compute until nothing more is written."""
    for _ in range(12):
        end = office.group.end
        for member in beat(office, *silent):
            office.compute(member)
        if office.group.end == end:
            return
    raise AssertionError("the group does not come to rest")


def passes(office: Office, milliseconds: int, *silent: str) -> None:
    """Let time pass in which all but the silent beat."""
    end = office.now_ms + milliseconds
    while office.now_ms < end:
        office.passes(min(HEARTBEAT_MS, end - office.now_ms))
        settle(office, *silent)


def crashes(office: Office, member: str) -> list[str]:
    """Have a member fall silent until its session has expired; returns what it had."""
    had = work(office)[member]
    passes(office, SESSION_MS, member)
    assert member not in office.group.members
    return had


def parked(office: Office) -> dict[str, int]:
    """What is parked, with its deadline on the office's own clock."""
    schedule = office.group.schedule
    return {
        str(each): due - WALL_MS
        for each, due in schedule.parked.items()
        if each not in schedule.fired
    }


def everything(office: Office) -> list[str]:
    """All that is assigned to anybody."""
    return sorted(name for share in work(office).values() for name in share)


def test_what_a_crash_lost_waits_until_its_deadline_and_goes_to_others_then(
    office: Office,
) -> None:
    had = crashes(office, "b")
    assert parked(office) == dict.fromkeys(had, office.now_ms + DELAY_MS)
    kept = work(office)["a"]
    passes(office, DELAY_MS - 1)
    assert work(office) == {"a": kept}
    passes(office, 1)
    assert work(office) == {"a": ["A", "B"]}
    assert (office.group.schedule, office.group.losses) == (ScheduledRebalance(), {})
    assert office.group.state is GroupState.STABLE


def test_a_clean_leave_parks_nothing(office: Office) -> None:
    office.asks(office.request("b", -1))
    settle(office)
    assert (parked(office), work(office)) == ({}, {"a": ["A", "B"]})


def test_a_temporary_leave_parks_nothing_and_moves_nothing_until_its_wait_is_over(
    office: Office,
) -> None:
    kept = work(office)["a"]
    office.asks(office.request("b", -2, instance_id="i"))
    passes(office, DELAY_MS - 1)
    assert (parked(office), work(office)) == ({}, {"a": kept, "b": []})
    passes(office, 1)
    assert (parked(office), work(office)) == ({}, {"a": ["A", "B"]})


def test_a_second_crash_shares_the_running_deadline(office: Office) -> None:
    office.asks(office.joining("c"))
    settle(office)
    crashes(office, "b")
    due_ms = office.now_ms + DELAY_MS
    crashes(office, "a")
    assert set(parked(office).values()) == {due_ms}
    passes(office, due_ms - office.now_ms)
    assert work(office) == {"c": ["A", "B"]}


def test_a_deadline_that_passed_while_the_coordinator_was_down_fires_once_it_is_back(
    office: Office,
) -> None:
    crashes(office, "b")
    office.now_ms += DELAY_MS
    office.open()
    passes(office, 1)
    assert office.group.state is GroupState.STABLE
    assert (parked(office), work(office)) == ({}, {"a": ["A", "B"]})


def test_a_restart_of_the_coordinator_moves_no_deadline(office: Office) -> None:
    crashes(office, "b")
    due = parked(office)
    passes(office, DELAY_MS // 2)
    office.open()
    passes(office, DELAY_MS // 2 - 1)
    assert parked(office) == due
    passes(office, 1)
    assert parked(office) == {}


def test_a_crash_after_a_restart_of_the_coordinator_is_a_loss_like_any(office: Office) -> None:
    had = work(office)["b"]
    office.open()
    office.asks(office.request("b"))
    crashes(office, "b")
    assert sorted(parked(office)) == had


def test_delay_0_parks_nothing(office: Office) -> None:
    office.settings = replace(SETTINGS, max_delay_ms=0)
    office.open()
    crashes(office, "b")
    settle(office)
    assert (parked(office), work(office)) == ({}, {"a": ["A", "B"]})


def test_a_member_that_never_said_that_it_runs_anything_parks_nothing(office: Office) -> None:
    office.put("C")
    office.asks(office.joining("c"))
    for member in beat(office, "c"):
        office.compute(member)
    assert office.group.target_of["c"], "the target means it to have work"
    crashes(office, "c")
    settle(office)
    assert (parked(office), everything(office)) == ({}, ["A", "B", "C"])


def test_a_group_that_becomes_empty_parks_nothing(office: Office) -> None:
    crashes(office, "b")
    crashes(office, "a")
    assert (office.group.state, parked(office), office.group.losses) == (GroupState.EMPTY, {}, {})
    office.asks(office.joining("c"))
    settle(office)
    assert work(office) == {"c": ["A", "B"]}


RETURNS = {
    "instance-id": ("b2", {"instance_id": "i"}),
    "member-id": ("b", {"url": "http://elsewhere"}),
    "url": ("b2", {"url": "http://b"}),
}


@pytest.mark.parametrize(("member", "said"), RETURNS.values(), ids=RETURNS)
def test_who_returns_gets_its_work_back_at_once(
    office: Office, member: str, said: dict[str, str]
) -> None:
    had = crashes(office, "b")
    passes(office, DELAY_MS // 2)
    office.asks(replace(office.joining(member), **said))  # type: ignore[arg-type]
    settle(office)
    assert (work(office)[member], parked(office)) == (had, {})
    assert office.group.losses == {}


def test_who_joined_anew_before_its_old_session_expired_gets_its_work_back(
    office: Office,
) -> None:
    had = work(office)["b"]
    office.asks(replace(office.joining("b2"), url="http://b"))
    passes(office, SESSION_MS, "b")
    settle(office)
    assert (work(office)["b2"], parked(office)) == (had, {})


def test_another_newcomer_waits_the_deadline_out(office: Office) -> None:
    had = crashes(office, "b")
    office.asks(office.joining("c"))
    passes(office, DELAY_MS // 2)
    assert not set(had) & set(everything(office))
    passes(office, DELAY_MS // 2)
    assert everything(office) == ["A", "B"]


def test_what_is_new_is_placed_at_once_though_work_is_parked(office: Office) -> None:
    had = crashes(office, "b")
    office.put("C")
    settle(office)
    assert (sorted(parked(office)), "C" in everything(office)) == (had, True)


def test_what_an_overdue_member_was_to_keep_is_parked_and_the_rest_moves(office: Office) -> None:
    for name in ("C", "D"):
        office.put(name)
    settle(office)
    office.asks(office.joining("c"))
    for member in beat(office):
        office.compute(member)
    revoking = next(name for name in "ab" if len(office.group.target_of[name]) == 1)
    had = work(office)[revoking]
    office.asks(office.full(revoking, " ".join(had)))
    (kept,) = map(str, office.group.target_of[revoking])
    until_ms = office.now_ms + 60_000
    while office.now_ms < until_ms:
        office.passes(min(HEARTBEAT_MS, until_ms - office.now_ms))
        if revoking in office.group.members:
            office.asks(office.full(revoking, " ".join(had)))
        settle(office, revoking)
    assert office.group.bump is not None
    assert office.group.bump.cause == Cause(Why.REBALANCE_EXPIRED, f"http://{revoking}")
    assert sorted(parked(office)) == [kept]
    assert everything(office) == sorted({"A", "B", "C", "D"} - {kept})
