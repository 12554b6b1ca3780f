"""A heartbeat without news is held until there is news, its time is over, or its client hurries."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.messages.classic import ClassicHeartbeat, ClassicHeartbeatReply
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import EndHold, TellTopics
from fairlead.actors.shards.hosting import HostedGroups
from fairlead.events.log.space import DiskSpace
from fairlead_tests.consumer.driver import topic
from fairlead_tests.shards.driver import ShardDriver, joining

A = "a"
T4 = topic("t4", 4)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ShardDriver]:
    driver = ShardDriver(tmp_path, kind=HostedGroups)
    driver.asks(TellTopics({"t4": T4}))
    yield driver
    driver.close()


def beat(driver: ShardDriver, member_id: str, generation: int = 1) -> list[Any]:
    return driver.asks(ClassicHeartbeat(A, member_id, generation))


def joins(driver: ShardDriver, member_id: str) -> Any:
    join = ConsumerGroupHeartbeat(A, member_id, 0, None, None, 20_000, ("t4",), topic_partitions={})
    return driver.asks(join)


def errors(told: list[Any]) -> list[Error]:
    return [each.error for each in told]


def modern(driver: ShardDriver, member_id: str, epoch: int, **told: Any) -> list[Any]:
    return driver.asks(ConsumerGroupHeartbeat(A, member_id, epoch, **told))


def test_a_classic_heartbeat_is_answered_when_a_round_begins(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    assert [each.error for each in beat(driver, member_id)] == [Error.NONE], (
        "how often is not known"
    )
    driver.passes(1_000)
    assert beat(driver, member_id) == []
    told = driver.asks(joining(A))
    assert [each for each in told if isinstance(each, ClassicHeartbeatReply)] != []
    assert Error.REBALANCE_IN_PROGRESS in errors(told)


def test_it_is_answered_within_80_percent_of_its_interval(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    beat(driver, member_id)
    driver.passes(1_000)
    assert beat(driver, member_id) == []
    assert driver.passes(790) == []
    assert errors(driver.passes(20)) == [Error.NONE]


def test_a_client_that_waits_with_something_else_is_answered(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    beat(driver, member_id)
    driver.passes(1_000)
    assert beat(driver, member_id) == []
    number = next(driver.numbers) - 1
    assert driver.asks(EndHold(A, number)) == [ClassicHeartbeatReply(Error.NONE, number=number)]
    assert driver.asks(EndHold(A, number)) == driver.asks(EndHold("none", 1)) == []


def test_a_client_that_waits_from_the_beginning_is_answered(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    beat(driver, member_id)
    driver.passes(1_000)
    driver.groups.submit(ClassicHeartbeat(A, member_id, 1, number=1_000), 1, driver.now)
    driver.groups.submit(EndHold(A, 1_000), 1, driver.now)
    assert errors(driver.asks()) == [Error.NONE]


def test_it_is_answered_in_time_on_a_full_disk(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    beat(driver, member_id)
    driver.passes(1_000)
    assert beat(driver, member_id) == []
    driver.space = DiskSpace(driver.folder, 0)
    driver.asks()
    assert errors(driver.passes(1_000)) == [Error.NONE]


def test_a_heartbeat_that_comes_twice_leaves_nobody_waiting(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    beat(driver, member_id)
    driver.passes(1_000)
    assert beat(driver, member_id) == []
    driver.passes(500)
    assert [each.error for each in beat(driver, member_id)] == [Error.NONE]


def test_who_beats_all_the_time_is_never_held(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    for _ in range(20):
        assert [each.error for each in beat(driver, member_id)] == [Error.NONE]
        driver.passes(10)


def test_a_consumer_hears_at_once_what_it_is_to_give_up_and_to_take(driver: ShardDriver) -> None:
    joins(driver, "m1")
    modern(driver, "m1", 2)
    driver.passes(900)
    assert modern(driver, "m1", 2) == []
    joined, revoked = sorted(joins(driver, "m2"), key=lambda each: each.member_id, reverse=True)
    assert isinstance(revoked, ConsumerGroupHeartbeatReply)
    assert (joined.assignment, revoked.member_epoch) == ({}, 2)
    kept = revoked.assignment
    assert kept is not None
    modern(driver, "m2", 3)
    driver.passes(900)
    assert modern(driver, "m2", 3) == []
    told = modern(driver, "m1", 2, topic_partitions=kept)
    given = {each.member_id: each for each in told}
    assert (given["m1"].member_epoch, given["m1"].assignment) == (3, None)
    taken = given["m2"].assignment
    assert sorted((*kept[T4.topic_id], *taken[T4.topic_id])) == [0, 1, 2, 3]
