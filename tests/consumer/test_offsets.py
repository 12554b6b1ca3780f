"""Offsets are committed by members with their epoch, and by others while there are none."""

from typing import Any

import pytest

from fairlead.actors.messages.classic import JoinGroup, LeaveGroup, Leaver, SyncGroup
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.offsets import (
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    TopicOffset,
)
from fairlead.actors.messages.orders import DeleteGroup
from fairlead.events.log.space import DiskSpace
from fairlead_tests.classic.driver import offers
from fairlead_tests.consumer.classic import joining
from fairlead_tests.consumer.driver import ConsumerDriver, topic


@pytest.fixture
def driver() -> ConsumerDriver:
    return ConsumerDriver()


def commit(driver: ConsumerDriver, *offsets: TopicOffset, **said: Any) -> list[Error]:
    offsets = offsets or (TopicOffset("t4", 1, 7),)
    reply = driver.asks(OffsetCommit(driver.group_id, offsets, **said))
    return [each.error for each in reply.verdicts]


def fetch(driver: ConsumerDriver, **said: Any) -> Any:
    reply = driver.asks(OffsetFetch(driver.group_id, **said))
    found = {(each.topic, each.partition): each.offset for each in reply.offsets}
    return found if reply.error is Error.NONE else reply.error


def test_a_member_commits_and_fetches_with_its_epoch(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4")
    assert commit(driver, member_id="A", epoch=2) == [Error.NONE]
    assert commit(driver, member_id="A", epoch=1) == [Error.STALE_MEMBER_EPOCH]
    assert commit(driver, member_id="B", epoch=2) == [Error.UNKNOWN_MEMBER_ID]
    assert commit(driver) == [Error.UNKNOWN_MEMBER_ID]
    assert fetch(driver, member_id="A", epoch=2) == {("t4", 1): 7}
    assert fetch(driver, member_id="A", epoch=3) is Error.STALE_MEMBER_EPOCH
    assert fetch(driver, member_id="B", epoch=2) is Error.UNKNOWN_MEMBER_ID
    assert fetch(driver, partitions={"t4": (1, 2)}) == {("t4", 1): 7, ("t4", 2): -1}


def test_an_epoch_that_has_passed_is_good_for_what_the_member_had_then_and_has_still(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4")
    driver.passes(1_000)
    driver.joins("B", "t4")
    driver.beats("A", 2)
    current = driver.group.members["A"].current
    given_up = min(each.task for each in current.pending)
    kept = min(each.task for each in current.assigned)
    both = TopicOffset("t4", kept, 7), TopicOffset("t4", given_up, 7)
    assert commit(driver, *both, member_id="A", epoch=2) == [Error.NONE] * 2
    left = {"t4": tuple(each.task for each in current.assigned)}
    driver.beats("A", 2, topic_partitions=left)
    assert driver.group.members["A"].current.member_epoch == 3
    assert commit(driver, both[0], member_id="A", epoch=2) == [Error.NONE]
    assert commit(driver, *both, member_id="A", epoch=2) == [Error.STALE_MEMBER_EPOCH] * 2
    assert commit(driver, both[0], member_id="A", epoch=1) == [Error.STALE_MEMBER_EPOCH]
    assert commit(driver, both[0], member_id="A", epoch=4) == [Error.STALE_MEMBER_EPOCH]
    driver.beats("B", 3)
    assert commit(driver, both[1], member_id="B", epoch=2) == [Error.STALE_MEMBER_EPOCH]


def test_who_is_no_member_commits_while_there_is_none_and_the_group_comes_into_being(
    driver: ConsumerDriver,
) -> None:
    assert commit(driver, epoch=3, knows_epochs=False) == [Error.ILLEGAL_GENERATION]
    assert commit(driver) == [Error.NONE]
    driver.joins("A", "t4")
    assert commit(driver) == [Error.UNKNOWN_MEMBER_ID]
    driver.beats("A", -1)
    assert commit(driver, TopicOffset("t4", 1, 0)) == [Error.NONE]
    assert fetch(driver) == {("t4", 1): 0}


def test_a_topic_that_is_made_anew_is_read_from_its_beginning(driver: ConsumerDriver) -> None:
    commit(driver)
    driver.sees({})
    assert fetch(driver) == {("t4", 1): 7}, "it may only be out of sight"
    driver.sees({"t4": topic("t4", 4, life=1)})
    assert fetch(driver) == {}
    assert fetch(driver, partitions={"t4": (1,)}) == {("t4", 1): -1}
    driver.open()
    assert fetch(driver) == {}
    assert commit(driver, TopicOffset("t4", 1, 2)) == [Error.NONE]
    assert fetch(driver) == {("t4", 1): 2}


def test_what_was_committed_is_told_whole_also_by_the_next_process(driver: ConsumerDriver) -> None:
    told = TopicOffset("t4", 3, 1 << 40, 5, "note")
    commit(driver, told)
    driver.open()
    assert driver.asks(OffsetFetch("g", {"t4": (3,)})).offsets == (told,)


def test_each_offset_is_judged_by_itself(driver: ConsumerDriver) -> None:
    errors = commit(
        driver,
        TopicOffset("t4", 0, 1),
        TopicOffset("t4", 4, 1),
        TopicOffset("nobody", 0, 1),
        TopicOffset("t4", 1, 1, metadata="x" * 4_097),
        TopicOffset("t4", 2, 1, leader_epoch=-2),
        TopicOffset("t4", 3, 1 << 64),
        TopicOffset("\udc80", 0, 1),
    )
    assert errors == [
        *([Error.UNKNOWN_TOPIC_OR_PARTITION] * 3),
        Error.NONE,
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.INVALID_REQUEST,
        Error.INVALID_REQUEST,
    ]
    assert fetch(driver) == {("t4", 0): 1}


@pytest.mark.parametrize(
    ("metadata", "error"),
    [("\u4e00" * 4_096, Error.NONE), ("\U0001f600" * 2_049, Error.OFFSET_METADATA_TOO_LARGE)],
)
def test_metadata_of_an_offset_are_counted_in_units_of_utf_16(
    driver: ConsumerDriver, metadata: str, error: Error
) -> None:
    assert commit(driver, TopicOffset("t4", 0, 1, metadata=metadata)) == [error]


def test_an_offset_that_is_not_encodable_is_refused_with_its_call(driver: ConsumerDriver) -> None:
    assert commit(driver, TopicOffset("t4", 0, 1, metadata="\udc80")) == [Error.INVALID_REQUEST]
    assert fetch(driver, partitions={"\udc80": (0,)}) == {("\udc80", 0): -1}


def test_a_classic_member_commits_with_its_generation(driver: ConsumerDriver) -> None:
    player = JoinGroup("g", "", "game", offers("chess"), 6_000, 20_000, asks_for_id=False)
    member_id = driver.asks(player).member_id
    said = {"member_id": member_id, "epoch": 1}
    assert commit(driver, **said) == [Error.REBALANCE_IN_PROGRESS]
    driver.asks(SyncGroup("g", member_id, 1))
    assert commit(driver, **said) == [Error.NONE]
    assert commit(driver, member_id=member_id, epoch=2) == [Error.ILLEGAL_GENERATION]
    assert commit(driver, member_id="nobody", epoch=1) == [Error.UNKNOWN_MEMBER_ID]
    assert commit(driver) == [Error.UNKNOWN_MEMBER_ID]
    for _ in range(3):
        driver.passes(4_000)
        assert commit(driver, **said) == [Error.NONE], "who commits is alive"
    assert driver.asks(OffsetDelete("g", {"t4": (1,)})).error is Error.NON_EMPTY_GROUP
    driver.asks(LeaveGroup("g", (Leaver(member_id),)))
    assert commit(driver, **said) == [Error.UNKNOWN_MEMBER_ID]
    assert fetch(driver) == {("t4", 1): 7}


def test_offsets_are_deleted_but_for_topics_that_are_read(driver: ConsumerDriver) -> None:
    assert driver.asks(OffsetDelete("g", {"t4": (1,)})).error is Error.GROUP_ID_NOT_FOUND
    commit(driver)
    driver.joins("A", "t4")
    (told,) = driver.asks(OffsetDelete("g", {"t4": (1,)})).verdicts
    assert told.error is Error.GROUP_SUBSCRIBED_TO_TOPIC
    driver.beats("A", subscribed_topic_names=())
    (told,) = driver.asks(OffsetDelete("g", {"t4": (1,)})).verdicts
    assert (told.error, fetch(driver)) == (Error.NONE, {})
    driver.open()
    assert fetch(driver) == {}


def test_offsets_of_what_classic_consumers_read_are_kept_and_others_are_deleted(
    driver: ConsumerDriver,
) -> None:
    driver.sees({"t2": topic("t2", 1), "t4": topic("t4", 4)})
    commit(driver, TopicOffset("t2", 0, 5), TopicOffset("t4", 1, 7))
    driver.asks(joining())
    reply = driver.asks(OffsetDelete("g", {"t4": (1,), "t2": (0,)}))
    assert [each.error for each in reply.verdicts] == [Error.GROUP_SUBSCRIBED_TO_TOPIC, Error.NONE]
    assert fetch(driver) == {("t4", 1): 7}


def test_a_group_that_is_deleted_takes_its_offsets_along(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4")
    commit(driver, member_id="A", epoch=2)
    driver.beats("A", -1)
    assert driver.asks_plain(DeleteGroup("g")).error is Error.NONE
    assert fetch(driver) == {}


def test_nothing_is_committed_while_room_is_low_and_all_is_told(
    driver: ConsumerDriver, tmp_path: Any
) -> None:
    commit(driver)
    driver.shard.set_disk_space(DiskSpace(tmp_path, 0), driver.now)
    assert commit(driver, TopicOffset("t4", 1, 9)) == [Error.COORDINATOR_NOT_AVAILABLE]
    assert fetch(driver) == {("t4", 1): 7}


def test_calls_of_other_groups_and_calls_that_are_too_large_are_refused(
    driver: ConsumerDriver,
) -> None:
    many = tuple(range(100_001))
    assert driver.asks(OffsetFetch("other")).error is Error.NOT_COORDINATOR
    assert driver.asks(OffsetFetch("g", {"t4": many})).error is Error.INVALID_REQUEST
