"""Offsets of topics that were deleted leave their group, and no others ever do."""

from pathlib import Path

import pytest

from fairlead.actors.consumer.offsets.clean_up import GONE_MS
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.offsets import OffsetCommit, OffsetFetch, TopicOffset
from fairlead.events.log.frame import Entry
from fairlead.events.log.space import DiskSpace
from fairlead.events.records import Topic
from fairlead_tests.consumer.driver import ConsumerDriver, MemoryLog, topic

SETTINGS = GroupSettings(session_timeout_ms=1_800_000, initial_delay_ms=0)
BOTH = {"t2": topic("t2", 1), "t4": topic("t4", 4)}


def committing(topics: dict[str, Topic] = BOTH) -> ConsumerDriver:
    """Return a group with an offset of each of its topics."""
    driver = ConsumerDriver(settings=SETTINGS, topics=topics)
    offsets = tuple(TopicOffset(name, 0, 7) for name, each in topics.items())
    reply = driver.asks(OffsetCommit("g", offsets))
    assert [each.error for each in reply.verdicts] == [Error.NONE] * len(topics)
    return driver


def committed(driver: ConsumerDriver) -> set[str]:
    """Return the topics with offsets in the group's log."""
    return {each.topic for each in driver.shard.state.ledger.consumer_offsets()}


def without(name: str) -> dict[str, Topic]:
    return {key: each for key, each in BOTH.items() if key != name}


def test_offsets_of_a_topic_leave_their_group_a_while_after_it_was_deleted() -> None:
    driver = committing()
    driver.sees(without("t2"))
    driver.passes(GONE_MS - 1)
    assert committed(driver) == {"t2", "t4"}
    driver.passes(1)
    assert committed(driver) == {"t4"}
    found = driver.asks(OffsetFetch("g")).offsets
    assert [(each.topic, each.offset) for each in found] == [("t4", 7)]


def test_offsets_of_a_topic_that_was_deleted_while_nobody_looked_leave_it_too() -> None:
    driver = committing()
    driver.open(is_told=False)
    driver.sees(without("t2"))
    driver.passes(GONE_MS)
    assert committed(driver) == {"t4"}


def test_a_topic_that_was_created_again_has_none_of_its_old_offsets() -> None:
    driver = committing()
    driver.sees({**BOTH, "t2": topic("t2", 1, life=1)})
    driver.passes(GONE_MS)
    assert committed(driver) == {"t4"}


def test_the_last_offset_of_a_group_leaves_as_well() -> None:
    driver = committing({"t2": BOTH["t2"]})
    driver.sees({})
    driver.passes(GONE_MS)
    assert committed(driver) == set()


def test_a_topic_that_is_missing_for_a_moment_keeps_its_offsets() -> None:
    driver = committing()
    for _ in range(3):
        driver.sees({})
        driver.passes(GONE_MS - 1)
        driver.sees(BOTH)
        driver.passes(GONE_MS)
    assert committed(driver) == {"t2", "t4"}


@pytest.mark.parametrize("topics", [{}, {"other": topic("other", 1)}, {"t4": topic("t4", 4, 9)}])
def test_another_cluster_than_the_one_of_the_offsets_takes_none_of_them(
    topics: dict[str, Topic],
) -> None:
    driver = committing()
    driver.open(is_told=False)
    driver.sees(topics)
    driver.passes(10 * GONE_MS)
    assert committed(driver) == {"t2", "t4"}


def test_offsets_leave_once_the_disk_has_room_for_that(tmp_path: Path) -> None:
    driver = committing()
    driver.shard.set_disk_space(DiskSpace(tmp_path, 0), driver.now)
    driver.sees(without("t2"))
    driver.passes(GONE_MS)
    assert committed(driver) == {"t2", "t4"}
    driver.shard.set_disk_space(DiskSpace(tmp_path, 1 << 40), driver.now)
    driver.passes(GONE_MS)
    assert committed(driver) == {"t4"}


def test_only_the_offsets_of_topics_that_have_changed_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver, read = committing(), list[str]()
    scan = MemoryLog.scan

    def noting(log: MemoryLog, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        read.append(key_prefix.decode().strip("\0"))
        return scan(log, kind, key_prefix)

    monkeypatch.setattr(MemoryLog, "scan", noting)
    driver.sees(BOTH)
    driver.sees({**BOTH, "t2": topic("t2", 9)})
    assert read == []
    driver.sees({**BOTH, "t9": topic("t9", 1)})
    driver.sees({**without("t4"), "t9": topic("t9", 1, life=1)})
    driver.passes(GONE_MS)
    assert read == ["t9", "t4", "t9", "t4"]
    assert committed(driver) == {"t2"}


def test_topics_that_another_cluster_may_have_are_looked_at_again_at_each_change() -> None:
    driver = committing()
    driver.open(is_told=False)
    driver.sees({})
    driver.passes(GONE_MS)
    assert committed(driver) == {"t2", "t4"}
    driver.sees(without("t2"))  # the first cluster after all, and t2 was deleted in it
    driver.sees({**without("t2"), "t9": topic("t9", 1)})
    driver.passes(GONE_MS)
    assert committed(driver) == {"t4"}
