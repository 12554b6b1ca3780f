"""Replies to heartbeats without changes are cached, until their group changes."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead.actors.consumer.calls import HeartbeatCache
from fairlead.actors.messages.classic import ClassicHeartbeat
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from fairlead.actors.messages.errors import Error
from fairlead.events.group import Group
from fairlead_tests.consumer.classic import alone, joining
from fairlead_tests.consumer.driver import SESSION_MS, ConsumerDriver

JOIN = ConsumerGroupHeartbeat(
    "g",
    "m",
    0,
    rebalance_timeout_ms=20_000,
    subscribed_topic_names=("t4",),
    topic_partitions={},
)
BEAT = ConsumerGroupHeartbeat("g", "m", 2, number=9)


def joined() -> ConsumerDriver:
    driver = ConsumerDriver()
    assert driver.asks(JOIN).member_epoch == 2
    assert driver.repeats(BEAT) is None, "it has to be decided first"
    return driver


def test_a_repeated_heartbeat_has_the_same_reply_and_writes_nothing() -> None:
    driver = joined()
    first, end = driver.asks(BEAT), driver.group.end
    assert driver.repeats(BEAT) == replace(first, number=9)
    assert (first.error, first.assignment, driver.group.end) == (Error.NONE, None, end)


def test_a_repeated_heartbeat_extends_the_session() -> None:
    driver = joined()
    driver.asks(BEAT)
    for _ in range(4):
        assert driver.repeats(BEAT)
        driver.passes(SESSION_MS - 1)
    assert driver.group.members.keys() == {"m"}
    driver.passes(SESSION_MS + 1)
    assert driver.group.members == {}


def test_a_change_of_the_group_ends_the_cache() -> None:
    driver = joined()
    driver.asks(BEAT)
    assert driver.repeats(BEAT)
    assert driver.repeats(replace(BEAT, member_epoch=9)) is None
    driver.asks(replace(JOIN, member_id="n"))
    assert driver.repeats(BEAT) is None
    assert driver.asks(BEAT).assignment is not None, "it is to give up what the other is to have"


def test_a_reply_from_before_a_change_is_not_cached() -> None:
    group = Group("g")
    cache = HeartbeatCache(group)
    reply = ConsumerGroupHeartbeatReply(Error.NONE, "m", 2)
    cache.add(BEAT, group.end - 1, reply)
    assert cache.reply_to(BEAT) is None
    cache.add(BEAT, group.end, reply)
    assert cache.reply_to(BEAT) is reply
    assert cache.reply_to(replace(BEAT, client_host="/elsewhere")) is None
    group.end += 1
    assert cache.reply_to(BEAT) is None


@pytest.mark.parametrize(
    "more",
    [
        {"rack_id": "r"},
        {"instance_id": "i"},
        {"server_assignor": "range"},
        {"rebalance_timeout_ms": 20_000},
        {"subscribed_topic_names": ("t4",)},
        {"subscribed_topic_regex": "t.*"},
        {"topic_partitions": {}},
        {"member_epoch": 0},
        {"member_epoch": -1},
    ],
    ids=lambda more: " ".join(f"{key} {value}" for key, value in more.items()),
)
def test_a_heartbeat_that_says_anything_is_decided_and_its_reply_is_not_kept(
    more: dict[str, Any],
) -> None:
    group = Group("g")
    cache, beat = HeartbeatCache(group), replace(BEAT, **more)
    reply = ConsumerGroupHeartbeatReply(Error.NONE, "m", 2)
    cache.add(BEAT, group.end, reply)
    assert cache.reply_to(beat) is None
    cache.add(beat, group.end, reply)
    assert cache.reply_to(beat) is None


def test_a_classic_heartbeat_is_answered_during_its_generation() -> None:
    driver = ConsumerDriver()
    beat = ClassicHeartbeat("g", alone(driver), 1, number=9)
    for _ in range(4):
        told = driver.repeats(beat)
        assert told == replace(driver.asks(beat), number=9)
        assert told
        assert told.error is Error.NONE
        driver.passes(SESSION_MS - 1)
    for other in (replace(beat, generation=2), replace(beat, member_id="n")):
        assert driver.repeats(other) is None
    driver.ask(joining())
    assert driver.repeats(beat) is None
    assert driver.asks(beat).error is Error.REBALANCE_IN_PROGRESS
