"""Groups of consumers are converted live from one protocol to the other, and lose nothing by it."""

from dataclasses import replace

import pytest

from fairlead.actors.classic.embedded import read_subscription
from fairlead.actors.group.state.settings import MigrationPolicy
from fairlead.actors.messages.classic import LeaveGroup, Leaver
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.offsets import OffsetCommit, TopicOffset
from fairlead.events.model import GroupType, Why
from fairlead_tests.consumer.classic import ALL, alone, beats, joining, syncs
from fairlead_tests.consumer.driver import SETTINGS, ConsumerDriver


def test_a_consumer_that_joins_converts_a_classic_group_and_its_member_goes_on() -> None:
    driver = ConsumerDriver()
    member_id = alone(driver)
    reply = driver.joins("M", "t4")
    assert (reply.error, reply.member_epoch, reply.assignment) == (Error.NONE, 2, {})
    assert driver.group.type is GroupType.CONSUMER
    assert driver.group.bump is not None
    assert driver.group.bump.cause.why is Why.GROUP_UPGRADED
    driver.open()
    assert beats(driver, member_id, 1) is Error.REBALANCE_IN_PROGRESS
    assert driver.asks(joining(member_id, ALL)).generation == 1, "it is to give something up"
    kept = syncs(driver, member_id, 1)
    assert len(kept) == 2
    assert beats(driver, member_id, 1) is Error.REBALANCE_IN_PROGRESS
    assert driver.asks(joining(member_id, kept)).generation == 2
    assert syncs(driver, member_id, 2) == kept
    assert beats(driver, member_id, 2) is Error.NONE
    taken = driver.beats("M", 2).assignment
    assert sorted(taken["t4#0"]) == [each.task for each in ALL if each not in kept]


def test_when_the_last_consumer_leaves_the_group_is_classic_and_its_members_agree_anew() -> None:
    driver = ConsumerDriver()
    member_id = alone(driver)
    driver.joins("M", "t4")
    driver.beats("M", -1)
    assert (driver.group.type, driver.group.topics, driver.group.subscriptions) == (
        GroupType.CLASSIC,
        None,
        {},
    )
    assert beats(driver, member_id, 1) is Error.REBALANCE_IN_PROGRESS
    joined = driver.asks(joining(member_id, ALL))
    assert (joined.leader, joined.generation) == (member_id, driver.group.group_epoch)


def test_a_classic_consumer_is_told_its_partitions_without_a_look_at_what_all_others_say() -> None:
    driver = ConsumerDriver()
    driver.joins("M", "t4")
    *_, last = [driver.asks(joining(rack=f"r{number}")) for number in range(3)]
    read_subscription.cache_clear()
    syncs(driver, last.member_id, last.generation)
    assert read_subscription.cache_info().misses == 1, "each may name thousands of topics"


def test_a_classic_consumer_that_joins_consumers_is_one_of_them() -> None:
    driver = ConsumerDriver()
    driver.joins("M", "t4")
    joined = driver.asks(joining())
    assert (joined.error, joined.generation, joined.leader) == (Error.NONE, 3, "")
    assert syncs(driver, joined.member_id, 3) == []
    driver.asks(LeaveGroup("g", (Leaver(joined.member_id),)))
    assert driver.group.subscriptions.keys() == {"M"}
    driver.settles()
    assert driver.holds() == {"M": "t4-0 t4-1 t4-2 t4-3"}


def test_each_member_of_a_mixed_group_commits_by_its_own_count() -> None:
    driver = ConsumerDriver()
    member_id = alone(driver)
    driver.joins("M", "t4")
    offsets = (TopicOffset("t4", 0, 5),)
    for who, epoch, error in (
        (member_id, 1, Error.NONE),
        (member_id, 2, Error.ILLEGAL_GENERATION),
        ("M", 2, Error.NONE),
        ("M", 1, Error.STALE_MEMBER_EPOCH),
    ):
        (told,) = driver.asks(OffsetCommit("g", offsets, who, epoch)).verdicts
        assert told.error is error


@pytest.mark.parametrize("generation", [b"", (7).to_bytes(4)])
def test_what_librdkafka_hands_back_to_a_sticky_member_does_not_keep_its_group_classic(
    generation: bytes,
) -> None:
    driver = ConsumerDriver()
    had = b"\0\0\0\1" + b"\0\2t4" + b"\0\0\0\2" + (0).to_bytes(4) + (3).to_bytes(4)
    alone(driver, had + generation)
    assert driver.joins("M", "t4").error is Error.NONE
    assert driver.group.type is GroupType.CONSUMER


@pytest.mark.parametrize("why", ["policy", "user data"])
def test_a_group_that_cannot_be_converted_stays_classic(why: str) -> None:
    policy = MigrationPolicy.DISABLED if why == "policy" else MigrationPolicy.BIDIRECTIONAL
    driver = ConsumerDriver(settings=replace(SETTINGS, migration_policy=policy))
    member_id = alone(driver, b"x" if why == "user data" else None)
    assert driver.joins("M", "t4").error is Error.GROUP_ID_NOT_FOUND
    assert driver.group.type is GroupType.CLASSIC
    assert beats(driver, member_id, 1) is Error.NONE


def test_a_group_that_was_classic_meanwhile_tells_a_consumer_no_epoch_of_before() -> None:
    driver = ConsumerDriver(settings=replace(SETTINGS, assignment_interval_ms=1_000))
    driver.joins("A", "t4")
    driver.beats("A", -1)
    joined = driver.asks(joining())
    driver.asks(LeaveGroup("g", (Leaver(joined.member_id),)))
    reply = driver.joins("B", "t4")
    assert (reply.error, [*driver.group.members]) == (Error.NONE, ["B"])
    assert reply.member_epoch == driver.group.group_epoch > joined.generation
    assert driver.holds()["B"] == "t4-0 t4-1 t4-2 t4-3"
