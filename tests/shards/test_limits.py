"""What strangers can make a process of groups keep has bounds, which its members never feel."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.classic.bytes.consumer import Subscription, encode_subscription
from fairlead.actors.group.state.settings import ShardLimits
from fairlead.actors.messages.classic import JoinGroup, SyncGroup
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import TellTopics
from fairlead.actors.messages.offsets import OffsetCommit, TopicOffset
from fairlead.actors.shards.limits import NOTHING, Footprint
from fairlead.events.model import ClassicProtocol
from fairlead_tests.consumer.driver import topic
from fairlead_tests.shards.driver import ShardDriver, joining

FULL = Error.GROUP_MAX_SIZE_REACHED
TOPICS = {"t4": topic("t4", 4)}


@pytest.fixture
def driver(tmp_path: Path) -> ShardDriver:
    return ShardDriver(tmp_path)


def limit(driver: ShardDriver, **limits: int) -> None:
    driver.groups.kept.limits = replace(ShardLimits(), **limits)


def bringing(group_id: str, size: int, member_id: str = "") -> JoinGroup:
    made = joining(group_id, member_id)
    return replace(made, protocols=(ClassicProtocol("chess", bytes(size - len("chess"))),))


def consumer(group_id: str, member_id: str, *names: str) -> ConsumerGroupHeartbeat:
    made = ConsumerGroupHeartbeat(group_id, member_id, 0, rebalance_timeout_ms=20_000)
    return replace(made, subscribed_topic_names=names, topic_partitions={})


def ask(driver: ShardDriver, call: Any) -> Any:
    """Return the reply to a call; None if it waits."""
    replies: list[Any] = [*driver.asks(call)]
    return replies[0] if replies else None


def error(driver: ShardDriver, call: Any) -> Error:
    reply = ask(driver, call)
    return Error.NONE if reply is None else reply.error


def test_members_bring_no_more_metadata_than_allowed_over_all_groups(driver: ShardDriver) -> None:
    limit(driver, metadata_bytes=1_000)
    assert error(driver, bringing("a", 600)) is Error.NONE
    assert error(driver, bringing("b", 600)) is FULL
    assert error(driver, bringing("b", 400)) is Error.NONE
    assert error(driver, consumer("c", "m", "t4")) is FULL
    (member_id,) = driver.groups._groups["a"].shard.classic.coordinator._state.seats
    assert error(driver, bringing("a", 600, member_id)) is Error.NONE  # it brings no more
    assert error(driver, bringing("a", 601, member_id)) is FULL
    driver.leaves("a", member_id)
    assert error(driver, bringing("b2", 600)) is Error.NONE


def test_subscriptions_and_assignments_count_as_metadata_does(driver: ShardDriver) -> None:
    driver.asks(TellTopics(TOPICS))
    limit(driver, metadata_bytes=100)
    assert error(driver, consumer("a", "m", "x" * 60)) is Error.NONE
    assert error(driver, consumer("a", "n", "y" * 60)) is FULL
    joined = ask(driver, bringing("b", 10))
    shares = {joined.member_id: bytes(60)}
    synced = SyncGroup("b", joined.member_id, joined.generation, assignments=shares)
    assert error(driver, synced) is FULL
    shares = {joined.member_id: bytes(30)}
    assert error(driver, replace(synced, assignments=shares)) is Error.NONE
    assert error(driver, consumer("a", "o", "z")) is FULL


def test_classic_members_of_a_group_of_consumers_count_as_well(driver: ShardDriver) -> None:
    driver.asks(TellTopics(TOPICS))
    assert error(driver, consumer("a", "m", "t4")) is Error.NONE
    offer = ClassicProtocol("range", encode_subscription(Subscription(["t4"])))
    join = replace(joining("a"), protocol_type="consumer", protocols=(offer,))
    before = driver.groups.kept.total
    ask(driver, join)
    size = len(offer.name) + len(offer.metadata) + len("t4")  # which is its subscription
    assert driver.groups.kept.total.minus(before) == Footprint(1, size)
    (member_id,) = driver.groups._groups["a"].shard.group.translated
    limit(driver, members=2, metadata_bytes=driver.groups.kept.total.metadata_bytes)
    assert error(driver, join) is FULL
    assert error(driver, replace(join, member_id=member_id)) is not FULL


def test_there_are_no_more_members_than_allowed_over_all_groups(driver: ShardDriver) -> None:
    driver.asks(TellTopics(TOPICS))
    limit(driver, members=2)
    first = driver.member_of("a")
    assert error(driver, consumer("b", "m", "t4")) is Error.NONE
    assert error(driver, joining("c")) is FULL
    assert error(driver, consumer("b", "n", "t4")) is FULL
    assert driver.beat("a", first) is Error.NONE
    offsets = (TopicOffset("t4", 0, 7),)
    reply = ask(driver, OffsetCommit("d", offsets))
    assert [each.error for each in reply.verdicts] == [Error.NONE]


def test_a_static_consumer_that_comes_back_under_another_id_is_no_member_more(
    driver: ShardDriver,
) -> None:
    driver.asks(TellTopics(TOPICS))
    join = replace(consumer("a", "m", "t4"), instance_id="i")
    assert error(driver, join) is Error.NONE
    kept = driver.groups.kept.total
    limit(driver, members=kept.members, metadata_bytes=kept.metadata_bytes)
    assert error(driver, replace(consumer("a", "m"), instance_id="i", member_epoch=-2)) is (
        Error.NONE
    )
    assert error(driver, replace(join, member_id="n")) is Error.NONE
    assert driver.groups.kept.total == kept
    assert error(driver, replace(join, member_id="o", instance_id="j")) is FULL


def test_patterns_count_as_names_do(driver: ShardDriver) -> None:
    driver.asks(TellTopics(TOPICS))
    limit(driver, metadata_bytes=100)
    first = replace(consumer("a", "m"), subscribed_topic_regex="x" * 60)
    assert error(driver, first) is Error.NONE
    assert error(driver, replace(first, member_id="n")) is FULL
    assert error(driver, replace(first, subscribed_topic_regex="x" * 101)) is FULL
    assert error(driver, replace(first, subscribed_topic_regex="x" * 100)) is Error.NONE


def test_a_call_that_brings_nothing_is_not_weighed_before_its_batch_ends(
    driver: ShardDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.member_of("a")
    weighed = list[str]()
    monkeypatch.setattr(
        driver.groups.kept, "set_footprint", lambda group_id, _: weighed.append(group_id)
    )
    ask(driver, OffsetCommit("a", (TopicOffset("t4", 0, 7),)))
    assert weighed == ["a"]


def test_there_are_no_more_groups_than_allowed(driver: ShardDriver) -> None:
    limit(driver, groups=1)
    driver.member_of("a")
    assert error(driver, joining("b")) is FULL


def test_what_is_kept_is_known_again_after_a_restart_and_nothing_once_all_have_left(
    driver: ShardDriver,
) -> None:
    driver.asks(TellTopics(TOPICS))
    member_id = driver.member_of("a")
    driver.asks(consumer("b", "m", "t4"))
    kept = driver.groups.kept.total
    assert (kept.members, kept.metadata_bytes > len("t4")) == (2, True)
    driver.close()
    driver.open()
    assert driver.groups.kept.total == kept
    driver.asks(TellTopics(TOPICS))
    driver.leaves("a", member_id)
    driver.asks(replace(consumer("b", "m"), member_epoch=-1))
    assert driver.groups.kept.total == NOTHING
    assert driver.groups.kept._of_groups == {}
    driver.close()


def test_ids_that_are_too_long_together_for_a_key_are_refused_to_who_joins(
    driver: ShardDriver,
) -> None:
    driver.asks(TellTopics(TOPICS))
    message = "the ids of the group and of the member have more than 440 bytes together"
    for join in (consumer("g", "m" * 440, "t4"), replace(joining("g"), client_id="c" * 440)):
        assert error(driver, join) is Error.INVALID_REQUEST
    assert ask(driver, consumer("g", "m" * 440, "t4")).message == message
    assert error(driver, replace(joining("g"), client_id="c" * 100)) is Error.NONE
    beat = replace(consumer("h", "n", "t4"), member_epoch=1, client_id="c" * 440)
    assert error(driver, beat) is Error.GROUP_ID_NOT_FOUND
