"""Settings of groups of Kafka's clients: of whoever is in the group, before it and after it."""

from typing import Any

from fairlead.actors.messages.classic import JoinGroupReply
from fairlead.actors.messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    AlterGroupConfigs,
    ConnectCall,
    DescribeGroup,
    DescribeGroupConfigs,
    HostCall,
    ListGroups,
    RemoveGroup,
    TellTopics,
)
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.offsets import OffsetCommit, TopicOffset
from fairlead.events.model import GroupType
from fairlead_tests.consumer.driver import topic
from fairlead_tests.shards.driver import ShardDriver, joining

G = "g"
SESSION, WORKERS_SESSION = "consumer.session.timeout.ms", "session.timeout.ms"
WEEK_MS = 604_800_000


def asked(driver: ShardDriver, call: HostCall) -> Any:
    (reply,) = driver.asks(call)
    return reply


def alter(driver: ShardDriver, **configs: str | None) -> Any:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    return asked(driver, AlterGroupConfigs(G, named))


def own(driver: ShardDriver) -> dict[str, str]:
    """Return the settings that the group has of its own."""
    settings = asked(driver, DescribeGroupConfigs(G)).settings
    return {each.name: each.value for each in settings if each.is_own}


def beats(driver: ShardDriver, epoch: int) -> Error:
    reply = asked(driver, ConsumerGroupHeartbeat(G, "m", epoch, topic_partitions={}))
    assert isinstance(reply, ConsumerGroupHeartbeatReply)
    return reply.error


def joins(driver: ShardDriver) -> ConsumerGroupHeartbeatReply:
    join = ConsumerGroupHeartbeat(G, "m", 0, None, None, 20_000, ("t",), topic_partitions={})
    reply = asked(driver, join)
    assert isinstance(reply, ConsumerGroupHeartbeatReply)
    return reply


def worker_joins(driver: ShardDriver) -> Any:
    join = Heartbeat(
        G,
        "w",
        0,
        "process",
        1,
        rebalance_timeout_ms=60_000,
        server_assignor="uniform",
        owned=(),
        coordinator_epoch=driver.groups.coordinator_epoch,
    )
    return asked(driver, ConnectCall(join))


def test_a_session_is_that_of_the_group_as_soon_as_it_is_set(driver: ShardDriver) -> None:
    asked(driver, TellTopics({"t": topic("t", 1)}))
    assert joins(driver).error is Error.NONE
    assert alter(driver, consumer_session_timeout_ms="45000").error is Error.NONE
    assert beats(driver, 2) is Error.NONE
    driver.passes(44_000)
    assert beats(driver, 2) is Error.NONE
    driver.passes(46_000)
    assert beats(driver, 2) is Error.UNKNOWN_MEMBER_ID


def test_settings_are_there_after_a_restart_and_good_for_whoever_joins(
    driver: ShardDriver,
) -> None:
    configs = {SESSION: "60000", WORKERS_SESSION: "30000"}
    asked(driver, AlterGroupConfigs(G, configs))
    driver.close()
    driver.open()
    assert own(driver) == configs
    worker = worker_joins(driver)
    assert (worker.error, worker.session_timeout_ms) == (Error.NONE, 30_000)
    assert driver.groups._groups[G].shard.group.type is GroupType.CONNECT


def test_a_group_that_has_settings_alone_is_not_there_for_tools(driver: ShardDriver) -> None:
    alter(driver, consumer_session_timeout_ms="60000")
    listed = asked(driver, ListGroups())
    assert (listed.groups, listed.configured) == ((), (G,))
    assert asked(driver, DescribeGroup(G)).error is Error.GROUP_ID_NOT_FOUND
    assert asked(driver, RemoveGroup(G)).error is Error.GROUP_ID_NOT_FOUND
    joined = asked(driver, joining(G))
    assert isinstance(joined, JoinGroupReply)
    assert (joined.error, joined.generation) == (Error.NONE, 1)


def test_settings_outlive_their_group_until_they_are_reset(driver: ShardDriver) -> None:
    asked(driver, OffsetCommit(G, (TopicOffset("t", 0, 7),)))
    alter(driver, consumer_session_timeout_ms="60000")
    assert asked(driver, RemoveGroup(G)).error is Error.NONE
    assert own(driver) == {SESSION: "60000"}
    driver.close()
    driver.open()
    asked(driver, OffsetCommit(G, (TopicOffset("t", 0, 7),)))
    driver.passes(2 * WEEK_MS)
    assert asked(driver, ListGroups()).groups == (), "its offset has expired"
    assert own(driver) == {SESSION: "60000"}
    assert alter(driver, consumer_session_timeout_ms=None).error is Error.NONE
    assert (own(driver), len(driver.groups)) == ({}, 0)


def test_what_is_refused_makes_no_group(driver: ShardDriver) -> None:
    refused = alter(driver, consumer_session_timeout_ms="1")
    assert refused.error is Error.INVALID_CONFIG
    refused = alter(
        driver, group_min_session_timeout_ms="7000", group_max_session_timeout_ms="6000"
    )
    assert (refused.error, refused.message) == (
        Error.INVALID_CONFIG,
        "group.min.session.timeout.ms = 7000 is above group.max.session.timeout.ms = 6000: no"
        " classic member could ask for any session; nothing was changed",
    )
    assert (own(driver), len(driver.groups)) == ({}, 0)


def test_a_session_of_consumers_is_longer_than_their_interval(driver: ShardDriver) -> None:
    """The node of this test has sessions of 6 s."""
    refused = alter(driver, consumer_heartbeat_interval_ms="15000")
    assert (refused.error, refused.message) == (
        Error.INVALID_CONFIG,
        "consumer.session.timeout.ms = 6000 must be greater than consumer.heartbeat.interval.ms ="
        " 15000; nothing was changed",
    )
    both = {"consumer_heartbeat_interval_ms": "15000", "consumer_session_timeout_ms": "45000"}
    assert alter(driver, **both).error is Error.NONE
