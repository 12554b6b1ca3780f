"""Committed offsets expire once nobody has had a use for them for long enough (KIP-211)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fairlead.actors.consumer.offsets.clean_up import Expired, OffsetUse, find_expired
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.classic import JoinGroup, LeaveGroup, Leaver, SyncGroup
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.offsets import OffsetCommit, OffsetFetch, TopicOffset
from fairlead.events.commits import ConsumerOffset
from fairlead.events.log.space import DiskSpace
from fairlead.events.model import Resource
from fairlead_tests.classic.driver import offers
from fairlead_tests.consumer.classic import ALL, given, joining
from fairlead_tests.consumer.driver import ConsumerDriver, topic

RETENTION_MS, LOOK_MS, SESSION_MS = 600_000, 10_000, 1_800_000
SETTINGS = GroupSettings(
    session_timeout_ms=SESSION_MS,
    initial_delay_ms=0,
    offsets_retention_ms=RETENTION_MS,
    offsets_check_interval_ms=LOOK_MS,
)
TOPICS = {"t2": topic("t2", 1), "t4": topic("t4", 4)}
T2, T4 = ("t2", 0), ("t4", 1)


@pytest.fixture
def driver() -> ConsumerDriver:
    return ConsumerDriver(settings=SETTINGS, topics=TOPICS)


def commit(driver: ConsumerDriver, *places: tuple[str, int], **said: Any) -> None:
    offsets = tuple(TopicOffset(*each, 7) for each in places or (T2, T4))
    reply = driver.asks(OffsetCommit("g", offsets, **said))
    assert [each.error for each in reply.verdicts] == [Error.NONE] * len(offsets)


def committed(driver: ConsumerDriver) -> list[tuple[str, int]]:
    return [(each.topic, each.partition) for each in driver.asks(OffsetFetch("g")).offsets]


def passes(driver: ConsumerDriver, milliseconds: int = 0) -> None:
    """Let so much time pass, and until offsets were looked at after it."""
    driver.passes(milliseconds + 2 * LOOK_MS)


def is_gone(driver: ConsumerDriver) -> bool:
    """Tell whether nothing of the group is left in its logs, nor anything that it could be."""
    logs = driver.control.entries, driver.offsets.entries
    latest = [each for log in logs for each in {(e.type, e.key): e for e in log}.values()]
    return not any(each.value for each in latest) and driver.group.state.value == "Empty"


def test_what_is_used_is_kept_and_all_else_for_the_retention_after_its_last_use() -> None:
    offsets = [ConsumerOffset("a", 0, 7, time_ms=10), ConsumerOffset("b", 0, 7, time_ms=40)]
    first, last = offsets
    assert find_expired(offsets, OffsetUse(()), 100, 109) == Expired([], True, 110)
    assert find_expired(offsets, OffsetUse(()), 100, 110) == Expired([first], True, 140)
    assert find_expired(offsets, OffsetUse(()), 100, 140) == Expired([first, last], False, None)
    assert find_expired(offsets, OffsetUse(("b",)), 100, 140) == Expired([first], True, None)
    assert find_expired(offsets, OffsetUse((), until_ms=30), 100, 129) == Expired([], True, 130)
    assert find_expired(offsets, OffsetUse((), until_ms=30), 100, 139) == Expired(
        [first], True, 140
    )


def test_where_nobody_ever_was_a_member_each_expires_after_its_commit(
    driver: ConsumerDriver,
) -> None:
    commit(driver, T2)
    passes(driver, RETENTION_MS // 2)
    commit(driver, T4)
    passes(driver, RETENTION_MS // 2)
    assert committed(driver) == [T4]
    passes(driver, RETENTION_MS // 2)
    assert committed(driver) == []
    assert is_gone(driver)


def test_what_is_committed_anew_has_all_of_its_time_anew(driver: ConsumerDriver) -> None:
    for _ in range(10):
        commit(driver)
        driver.passes(RETENTION_MS - 1)
    assert committed(driver) == [T2, T4]


def leave_consumer(driver: ConsumerDriver) -> None:
    driver.beats("A", -1)


def leave_classic(driver: ConsumerDriver) -> None:
    (member,) = driver.shard.classic.coordinator.members()
    driver.asks(LeaveGroup("g", (Leaver(member.member_id),)))


def join_consumer(driver: ConsumerDriver) -> dict[str, Any]:
    return {"member_id": "A", "epoch": driver.joins("A", "t4").member_epoch}


def join_classic(driver: ConsumerDriver) -> dict[str, Any]:
    member_id = driver.asks(replace(joining(), session_timeout_ms=SESSION_MS)).member_id
    reply = driver.asks(SyncGroup("g", member_id, 1, assignments={member_id: given([])}))
    assert reply.error is Error.NONE
    return {"member_id": member_id, "epoch": 1}


Join = Callable[[ConsumerDriver], dict[str, Any]]
OF_EITHER_PROTOCOL = pytest.mark.parametrize(
    ("join", "leave"),
    [(join_consumer, leave_consumer), (join_classic, leave_classic)],
    ids=["consumer", "classic"],
)


@OF_EITHER_PROTOCOL
def test_what_members_read_does_not_expire_and_all_else_does_after_its_commit(
    driver: ConsumerDriver, join: Join, leave: Callable[[ConsumerDriver], None]
) -> None:
    del leave
    commit(driver, **join(driver))
    passes(driver, RETENTION_MS - 3 * LOOK_MS)
    assert committed(driver) == [T2, T4]
    passes(driver, 3 * LOOK_MS)
    assert committed(driver) == [T4]
    assert not is_gone(driver)


@OF_EITHER_PROTOCOL
def test_those_of_a_group_that_has_become_empty_expire_after_that_and_it_goes_with_them(
    driver: ConsumerDriver, join: Join, leave: Callable[[ConsumerDriver], None]
) -> None:
    commit(driver, T4, **join(driver))
    driver.passes(RETENTION_MS + LOOK_MS)
    leave(driver)
    driver.passes(RETENTION_MS - 1)
    assert committed(driver) == [T4]
    driver.open()
    assert committed(driver) == [T4]
    passes(driver)
    assert committed(driver) == []
    assert is_gone(driver)


@OF_EITHER_PROTOCOL
def test_an_empty_group_without_offsets_is_deleted_at_the_next_look(
    driver: ConsumerDriver, join: Join, leave: Callable[[ConsumerDriver], None]
) -> None:
    join(driver)
    leave(driver)
    assert not is_gone(driver)
    passes(driver)
    assert is_gone(driver)


def test_those_of_a_topic_that_is_subscribed_to_no_more_have_expired_with_their_age(
    driver: ConsumerDriver,
) -> None:
    commit(driver, **join_consumer(driver))
    driver.passes(RETENTION_MS)
    driver.beats("A", subscribed_topic_names=("t2",))
    passes(driver)
    assert committed(driver) == []


def test_members_that_are_no_consumers_keep_all(driver: ConsumerDriver) -> None:
    player = JoinGroup("g", "", "game", offers("chess"), SESSION_MS, 20_000, asks_for_id=False)
    member_id = driver.asks(player).member_id
    driver.asks(SyncGroup("g", member_id, 1))
    commit(driver, member_id=member_id, epoch=1)
    passes(driver, RETENTION_MS)
    assert committed(driver) == [T2, T4]
    leave_classic(driver)
    passes(driver, RETENTION_MS)
    assert is_gone(driver)


def slow(member_id: str = "", owned: list[Resource] | None = None) -> JoinGroup:
    """What a member says to join that takes its time for a round."""
    said = joining(member_id, owned)
    return replace(said, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=2 * RETENTION_MS)


def test_nothing_expires_while_classic_consumers_agree_on_a_generation(
    driver: ConsumerDriver,
) -> None:
    first = driver.asks(slow()).member_id
    waiting = driver.ask(slow())
    driver.asks(slow(first))
    second = driver.said[waiting].member_id
    for each in (first, second):
        driver.asks(SyncGroup("g", each, 2))
    commit(driver, member_id=first, epoch=2)
    driver.ask(slow(first, ALL))
    passes(driver, RETENTION_MS)
    assert committed(driver) == [T2, T4]
    driver.asks(slow(second))
    passes(driver)
    assert committed(driver) == [T2, T4]
    driver.asks(SyncGroup("g", first, 3))
    passes(driver)
    assert committed(driver) == [T4]


def test_a_group_that_somebody_is_about_to_join_is_not_deleted(driver: ConsumerDriver) -> None:
    join_consumer(driver)
    leave_consumer(driver)
    asked = replace(joining(), asks_for_id=True, session_timeout_ms=RETENTION_MS)
    assert driver.asks(asked).error is Error.MEMBER_ID_REQUIRED
    passes(driver)
    assert not is_gone(driver)
    passes(driver, RETENTION_MS)
    assert is_gone(driver)


def test_without_room_nothing_is_forgotten(driver: ConsumerDriver, tmp_path: Any) -> None:
    commit(driver)
    driver.shard.set_disk_space(DiskSpace(tmp_path, 0), driver.now)
    passes(driver, RETENTION_MS)
    assert committed(driver) == [T2, T4]
    driver.shard.set_disk_space(DiskSpace(tmp_path, 1 << 40), driver.now)
    passes(driver)
    assert committed(driver) == []


def test_a_group_is_looked_at_only_when_something_may_have_expired(
    driver: ConsumerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    scan = driver.offsets.scan

    def noted(kind: int, key_prefix: bytes = b"") -> list[Any]:
        looks.append(driver.now_ms)
        return scan(kind, key_prefix)

    member = join_consumer(driver)
    commit(driver, T4, **member)
    monkeypatch.setattr(driver.offsets, "scan", noted)
    passes(driver)
    assert len(looks) == 1
    looks.clear()
    for _ in range(100):
        driver.passes(RETENTION_MS // 100)
        commit(driver, T4, **member)
    assert len(looks) <= 2
    looks.clear()
    for name in ("t2", "t4") * 5:
        driver.beats("A", subscribed_topic_names=(name,))
        driver.passes(LOOK_MS // 10)
    assert len(looks) <= 1
