"""Groups of consumers, and what groups have committed, in the process of many groups."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from fairlead.actors.classic.bytes.consumer import Subscription, encode_subscription
from fairlead.actors.group.group_shard import IDLE_MS
from fairlead.actors.group.host import ENOUGH_SPACE
from fairlead.actors.messages.classic import JoinGroup, SyncGroup
from fairlead.actors.messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    Partitions,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    DescribeConsumerGroup,
    DescribeGroup,
    ListedGroup,
    ListGroups,
    RemoveGroup,
    TellTopics,
)
from fairlead.actors.messages.offsets import OffsetCommit, OffsetDelete, OffsetFetch, TopicOffset
from fairlead.events.log.space import DiskSpace
from fairlead.events.model import ClassicProtocol
from fairlead.events.records import Topic
from fairlead_tests.consumer.driver import topic
from fairlead_tests.shards.driver import ShardDriver

A, B = "a", "b"
T4 = topic("t4", 4)


def asked(driver: ShardDriver, call: Any) -> Any:
    (reply,) = driver.asks(call)
    return reply


def joins(
    driver: ShardDriver, group_id: str, member_id: str, **told: Any
) -> ConsumerGroupHeartbeatReply:
    join = ConsumerGroupHeartbeat(
        group_id, member_id, 0, None, None, 20_000, ("t4",), topic_partitions={}, **told
    )
    reply = asked(driver, join)
    assert isinstance(reply, ConsumerGroupHeartbeatReply)
    return reply


def beats(
    driver: ShardDriver, member_id: str, epoch: int, owned: Partitions | None = None
) -> ConsumerGroupHeartbeatReply:
    reply = asked(driver, ConsumerGroupHeartbeat(A, member_id, epoch, topic_partitions=owned))
    assert isinstance(reply, ConsumerGroupHeartbeatReply)
    return reply


def commit(driver: ShardDriver, group_id: str, offset: int, **told: Any) -> list[Error]:
    offsets = (TopicOffset("t4", 1, offset),)
    return [each.error for each in asked(driver, OffsetCommit(group_id, offsets, **told)).verdicts]


def committed(driver: ShardDriver, group_id: str) -> list[int]:
    return [each.offset for each in asked(driver, OffsetFetch(group_id)).offsets]


def states(driver: ShardDriver) -> list[ListedGroup]:
    return list(asked(driver, ListGroups()).groups)


def test_consumers_share_a_topic_out_and_go_on_after_a_restart(driver: ShardDriver) -> None:
    driver.asks(TellTopics({"t4": T4}))
    assert joins(driver, A, "m1").assignment == {T4.topic_id: (0, 1, 2, 3)}
    assert joins(driver, A, "m2").assignment == {}
    kept = beats(driver, "m1", 2).assignment
    assert kept is not None
    beats(driver, "m1", 2, kept)
    driver.close()
    driver.open()
    taken = beats(driver, "m2", 3).assignment
    assert taken is not None
    assert sorted((*kept[T4.topic_id], *taken[T4.topic_id])) == [0, 1, 2, 3]
    assert commit(driver, A, 5, member_id="m2", epoch=3) == [Error.NONE]
    assert commit(driver, A, 5, member_id="m2", epoch=2) == [Error.STALE_MEMBER_EPOCH]


def test_topics_that_are_told_later_reach_the_groups_that_are_there(driver: ShardDriver) -> None:
    assert joins(driver, A, "m1").assignment == {}
    driver.asks(TellTopics({"t4": T4}))
    told = beats(driver, "m1", 2).assignment or beats(driver, "m1", 2).assignment
    assert told == {T4.topic_id: (0, 1, 2, 3)}
    driver.asks(TellTopics({"t4": Topic(T4.topic_id, 5)}))
    assert beats(driver, "m1", 3).assignment == {T4.topic_id: (0, 1, 2, 3, 4)}


def test_a_consumer_that_is_silent_for_its_session_is_out(driver: ShardDriver) -> None:
    driver.asks(TellTopics({"t4": T4}))
    joins(driver, A, "m1")
    driver.passes(6_500)
    assert beats(driver, "m1", 2).error is Error.UNKNOWN_MEMBER_ID
    assert states(driver) == [ListedGroup(A, "consumer", "Empty", "consumer")]
    assert driver.groups.next_tick_ms(driver.now) > driver.now_ms + IDLE_MS


def test_offsets_are_each_groups_own_and_outlast_the_process(driver: ShardDriver) -> None:
    assert commit(driver, A, 7) == commit(driver, "ab", 8) == [Error.NONE]
    for _ in range(2):
        assert (committed(driver, A), committed(driver, "ab"), committed(driver, B)) == (
            [7],
            [8],
            [],
        )
        assert [each.group_id for each in states(driver)] == [A, "ab"]
        driver.close()
        driver.open()


def test_a_classic_member_commits_with_its_generation(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    assert commit(driver, A, 3, member_id=member_id, epoch=1) == [Error.NONE]
    assert commit(driver, A, 4, member_id=member_id, epoch=2) == [Error.ILLEGAL_GENERATION]
    assert commit(driver, A, 4) == [Error.UNKNOWN_MEMBER_ID]
    assert committed(driver, A) == [3]


def test_offsets_of_topics_that_are_not_there_are_refused(driver: ShardDriver) -> None:
    driver.asks(TellTopics({"t4": topic("t4", 1)}))
    assert commit(driver, A, 7) == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert len(driver.groups) == 0


def test_a_group_that_is_deleted_leaves_nothing_and_counts_anew(driver: ShardDriver) -> None:
    driver.asks(TellTopics({"t4": T4}))
    joins(driver, A, "m1")
    commit(driver, A, 7, member_id="m1", epoch=2)
    assert asked(driver, RemoveGroup(A)).error is Error.NON_EMPTY_GROUP
    beats(driver, "m1", -1)
    removed, told = driver.asks(RemoveGroup(A), OffsetFetch(A))
    assert removed.error is Error.NONE
    assert told.offsets == ()  # type: ignore[union-attr]
    assert len(driver.groups) == 0
    driver.close()
    driver.open()
    assert len(driver.groups) == 0
    driver.asks(TellTopics({"t4": T4}))
    assert joins(driver, A, "m2").member_epoch == 2


def test_a_group_whose_last_offsets_are_deleted_is_forgotten(driver: ShardDriver) -> None:
    commit(driver, A, 7)
    deleted = asked(driver, OffsetDelete(A, {"t4": (1,)}))
    assert [each.error for each in deleted.verdicts] == [Error.NONE]
    assert len(driver.groups) == 0


def test_groups_whose_offsets_have_expired_go_each_with_the_last_over_restarts_as_well(
    driver: ShardDriver,
) -> None:
    settings = driver.settings
    driver.asks(TellTopics({"t4": T4}))
    joins(driver, A, "m1")
    commit(driver, A, 7, member_id="m1", epoch=2)
    driver.passes(settings.offsets_retention_ms // 2)
    commit(driver, B, 8)
    assert [each.state for each in states(driver)] == ["Empty"] * 2
    driver.close()
    driver.open()
    driver.passes(settings.offsets_retention_ms // 2)
    driver.passes(2 * settings.offsets_check_interval_ms)
    assert (committed(driver, A), committed(driver, B)) == ([], [8])
    assert [each.group_id for each in states(driver)] == [B]
    driver.close()
    driver.open()
    assert [each.group_id for each in states(driver)] == [B]
    driver.asks(TellTopics({"t4": T4}))
    assert joins(driver, A, "m2").member_epoch == 2, "it counts from the beginning"
    beats(driver, "m2", -1)
    driver.passes(settings.offsets_retention_ms)
    assert len(driver.groups) == 0


def test_many_groups_are_not_looked_at_all_at_once(driver: ShardDriver) -> None:
    names = [f"group-{number}" for number in range(20)]
    for each in names:
        commit(driver, each, 7)
    driver.close()
    driver.now_ms += driver.settings.offsets_retention_ms
    driver.open()
    left = set[int]()
    while names:
        driver.passes(driver.settings.offsets_check_interval_ms // 10)
        names = [each.group_id for each in states(driver)]
        left.add(len(names))
    assert len(left) > 5


def test_a_group_of_consumers_without_members_has_the_default_assignor(driver: ShardDriver) -> None:
    driver.asks(TellTopics({"t4": T4}))
    joins(driver, A, "m1", server_assignor="range")
    before = asked(driver, DescribeConsumerGroup(A))
    beats(driver, "m1", -1)
    after = asked(driver, DescribeConsumerGroup(A))
    told = [(each.state, each.assignor) for each in (before, after)]
    assert told == [("Stable", "range"), ("Empty", "uniform")]


def test_each_kind_of_group_is_described_as_what_it_is(driver: ShardDriver) -> None:
    driver.asks(TellTopics({"t4": T4}))
    joins(driver, A, "m1")
    driver.member_of(B)
    told = asked(driver, DescribeConsumerGroup(A))
    assert (told.state, told.group_epoch, told.assignor) == ("Stable", 2, "uniform")
    (member,) = told.members
    assert (member.member_id, member.names, len(member.assigned)) == ("m1", ("t4",), 4)
    assert asked(driver, DescribeGroup(A)).message == "Group a is not a classic group."
    assert asked(driver, DescribeConsumerGroup(B)).message == "Group b is not a consumer group."
    assert asked(driver, DescribeConsumerGroup("c")).message == "Group c not found."
    assert states(driver) == [
        ListedGroup(A, "consumer", "Stable", "consumer"),
        ListedGroup(B, "game", "Stable", "classic"),
    ]


def test_a_key_that_no_log_can_hold_is_refused_and_harms_nobody(driver: ShardDriver) -> None:
    group_id, name = "g" * 255, "t" * 249
    offsets = (TopicOffset(name, (1 << 31) - 1, 1),)
    (verdict,) = asked(driver, OffsetCommit(group_id, offsets)).verdicts
    assert verdict.error is Error.INVALID_REQUEST
    assert len(driver.groups) == 0


@pytest.mark.parametrize("group_id", ["", "a\0b"])
def test_a_consumer_of_a_group_without_a_name_is_refused(
    driver: ShardDriver, group_id: str
) -> None:
    assert joins(driver, group_id, "m1").error is Error.INVALID_REQUEST


def test_a_consumer_that_comes_before_topics_are_told_is_to_ask_again(
    driver: ShardDriver,
) -> None:
    driver.asks(TellTopics({"t4": T4}))
    told = encode_subscription(Subscription(["t4"]))
    offered = (ClassicProtocol("range", told),)
    call = JoinGroup(A, "", "consumer", offered, 6_000, 20_000, asks_for_id=False)
    member_id = asked(driver, call).member_id
    driver.asks(SyncGroup(A, member_id, 1, assignments={member_id: b""}))
    driver.close()
    driver.open()
    assert joins(driver, A, "M").error is Error.COORDINATOR_LOAD_IN_PROGRESS
    driver.asks(TellTopics({"t4": T4}))
    assert joins(driver, A, "M").error is Error.NONE


def test_topics_that_change_while_the_disk_is_full_are_known_once_it_is_not(
    driver: ShardDriver,
) -> None:
    driver.asks(TellTopics({"t4": T4}))
    epoch = joins(driver, A, "M").member_epoch
    driver.space = DiskSpace(driver.folder, 0)
    driver.asks(TellTopics({"t4": topic("t4", 8)}))
    driver.space = ENOUGH_SPACE
    driver.asks(ListGroups())
    driver.passes(2_000)
    assert beats(driver, "M", epoch).assignment == {"t4#0": tuple(range(8))}


def test_a_group_that_has_offsets_alone_is_deleted_with_them(driver: ShardDriver) -> None:
    driver.asks(TellTopics({"t4": T4}))
    assert commit(driver, B, 5) == [Error.NONE]
    assert asked(driver, RemoveGroup(B)).error is Error.NONE
    assert committed(driver, B) == []
    assert asked(driver, ListGroups()).groups == ()


def test_ids_that_make_no_key_together_are_refused(driver: ShardDriver) -> None:
    driver.asks(TellTopics({"t4": T4}))
    group_id = "g" * 255
    assert joins(driver, group_id, "M").error is Error.NONE
    offered = (ClassicProtocol("range", encode_subscription(Subscription(["t4"]))),)
    call = JoinGroup(group_id, "", "consumer", offered, 6_000, 20_000, client_id="c" * 256)
    assert asked(driver, replace(call, asks_for_id=False)).error is Error.INVALID_REQUEST


def test_what_becomes_of_a_group_is_told_once(
    driver: ShardDriver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "fairlead.actors.shards.telling")
    driver.asks(TellTopics({"t4": T4}))
    joins(driver, A, "m1")
    joins(driver, A, "m2")
    kept = beats(driver, "m1", 2).assignment
    beats(driver, "m1", 2, kept)
    beats(driver, "m2", 3)
    driver.close()
    driver.open()  # what is told is not told again
    driver.asks(TellTopics({"t4": T4}))
    beats(driver, "m1", -1)
    beats(driver, "m2", -1)
    asked(driver, RemoveGroup(A))
    member = driver.member_of("b\n")
    driver.leaves("b\n", member)
    a, b = "group a of Kafka's clients", "group b\\n of Kafka's clients"
    assert [(each.levelname, each.getMessage().strip('"')) for each in caplog.records] == [
        ("INFO", f"{a} was made"),
        ("DEBUG", f"{a} has a new member m1"),
        ("INFO", f"{a} has rebalanced: epoch 2, members: 1 (subscription-changed m1)"),
        ("DEBUG", f"{a} has a new member m2"),
        ("INFO", f"{a} has rebalanced: epoch 3, members: 2 (member-joined m2)"),
        ("DEBUG", f"{a} has lost its member m1"),
        ("DEBUG", f"{a} has lost its member m2"),
        ("INFO", f"{a} is empty (member-left m2)"),
        ("INFO", f"{a} was deleted"),
        ("INFO", f"{b} was made"),
        ("DEBUG", f"{b} has a new member {member}"),
        ("INFO", f"{b} has rebalanced: generation 1, members: 1 (member-joined {member})"),
        ("DEBUG", f"{b} has lost its member {member}"),
        ("INFO", f"{b} is empty (member-left {member})"),
    ]


def test_nothing_is_kept_of_the_quota_of_strangers(driver: ShardDriver) -> None:
    driver.settings = replace(driver.settings, requests_per_second=1)
    driver.close()
    driver.open()
    driver.asks(TellTopics({"t4": T4}))
    joins(driver, A, "m1")
    assert beats(driver, "stranger", 1).error is Error.UNKNOWN_MEMBER_ID
    quota = driver.groups._groups[A].shard.state.quota
    assert quota._full_at_us.keys() == {"m1"}
    beats(driver, "m1", -1)
    assert quota._full_at_us == {}
