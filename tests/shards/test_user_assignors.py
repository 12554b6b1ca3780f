"""Server assignors of users compute for groups of a shard; a failed one is told, and replaced."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.group.computing.compute import run_assignor
from fairlead.actors.messages.computing import Assignment, EndComputation, Snapshot
from fairlead.actors.messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import ConnectCall, DescribeConsumerGroup, TellTopics
from fairlead.actors.messages.members import Heartbeat, ReadConfigs
from fairlead.actors.shards.actor import OffloadingGroups
from fairlead.events.entries.codec import decode
from fairlead.events.entries.group_keys import SHARED_CONTROL, by_group
from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.model import Cause, Resource, Why
from fairlead.events.records import TargetAssignment
from fairlead_tests.consumer.driver import topic
from fairlead_tests.shards.driver import ShardDriver

G, MINE = "g", "mine"
T = topic("t", 2)
HALF = Resource("t", 0)


def all_to_the_last(snapshot: Snapshot) -> Assignment:
    """Give everything to the member whose id comes last."""
    return Assignment({max(snapshot.members): snapshot.configured})


def half(snapshot: Snapshot) -> Assignment:
    return Assignment({max(snapshot.members): frozenset({HALF})})


def fail(_: Snapshot) -> Assignment:
    raise ValueError("no luck")


MAKERS: dict[str, Callable[[Snapshot], Assignment]] = {
    "works": all_to_the_last,
    "raises": fail,
    "leaves one out": half,
}


@pytest.fixture
def driver(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ShardDriver]:
    driver = ShardDriver(tmp_path, assignors={MINE: MAKERS[request.param]})
    driver.asks(TellTopics({"t": T}))
    yield driver
    driver.close()


def joins(driver: ShardDriver, member_id: str, assignor: str = MINE) -> ConsumerGroupHeartbeatReply:
    join = ConsumerGroupHeartbeat(
        G, member_id, 0, None, None, 20_000, ("t",), server_assignor=assignor, topic_partitions={}
    )
    (reply,) = driver.asks(join)
    assert isinstance(reply, ConsumerGroupHeartbeatReply)
    return reply


def group_of(driver: ShardDriver) -> Group:
    return driver.groups._groups[G].shard.group


@pytest.mark.parametrize("driver", ["works"], indirect=True)
def test_consumers_get_what_the_assignor_that_they_name_gives_them(driver: ShardDriver) -> None:
    assert joins(driver, "a").error is joins(driver, "b").error is Error.NONE
    group = group_of(driver)
    assert (group.target.assignor, group.target.error) == (MINE, "")
    assert group.share_of("b") == {Resource("t", 0), Resource("t", 1)}
    (told,) = driver.asks(DescribeConsumerGroup(G))
    assert getattr(told, "assignor", "") == MINE


@pytest.mark.parametrize(
    ("driver", "error"),
    [
        ("raises", "mine: ValueError: no luck"),
        ("leaves one out", "mine: t-1 is neither assigned nor parked nor unplaceable"),
    ],
    indirect=["driver"],
)
def test_where_it_fails_the_groups_own_computes_at_once_and_the_failure_is_an_epoch(
    driver: ShardDriver, error: str
) -> None:
    assert joins(driver, "a").error is Error.NONE
    group = group_of(driver)
    assert group.bump is not None
    assert (group.bump.cause, group.group_epoch) == (Cause(Why.ASSIGNOR_RETRY, MINE), 3)
    assert (group.target.assignor, group.target.error) == ("uniform", "")
    assert group.share_of("a") == {Resource("t", 0), Resource("t", 1)}
    assert error in failures(driver)


def failures(driver: ShardDriver) -> list[str]:
    """Return the errors of failed attempts in the log."""
    driver.close()
    with LogReader.open(driver.folder / "control", kind=SHARED_CONTROL) as log:
        entries = [entry for part in log.tail(0) for entry in part]
    driver.open()
    records = [decode(each) for own in by_group(entries).values() for each in own]
    return [each.error for each in records if isinstance(each, TargetAssignment)]


@pytest.mark.parametrize("driver", ["raises"], indirect=True)
def test_beside_the_loop_as_well_a_failed_one_is_replaced_at_once(driver: ShardDriver) -> None:
    joins(driver, "a")
    driver.close()
    driver.kind = OffloadingGroups
    driver.open()
    driver.asks(TellTopics({"t": T}))
    joins(driver, "b")
    group, names = group_of(driver), list[str]()
    while computations := driver.groups.take_computations():
        ((group_id, (number, name, computes, snapshot)),) = computations.items()
        names.append(name)
        ended = EndComputation(number, *run_assignor(name, computes, snapshot))
        driver.groups.end_computation(group_id, ended, driver.now)
        driver.asks()
    assert names == [MINE, "uniform"]
    assert (group.target.assignor, group.target.error) == ("uniform", "")
    assert {len(group.share_of(each)) for each in "ab"} == {1}


@pytest.mark.parametrize("driver", ["works"], indirect=True)
def test_workers_of_connect_groups_name_it_as_well(driver: ShardDriver) -> None:
    configured = frozenset({Resource("A"), Resource("A", 0)})
    for name in ("w1", "w2"):
        join = Heartbeat(
            "crew",
            name,
            0,
            f"process of {name}",
            1,
            rebalance_timeout_ms=60_000,
            server_assignor=MINE,
            owned=(),
            coordinator_epoch=driver.groups.coordinator_epoch,
            configs=ReadConfigs(configured, 1),
        )
        (reply,) = driver.asks(ConnectCall(join))
        assert getattr(reply, "error", None) is Error.NONE
    group = driver.groups._groups["crew"].shard.group
    assert (group.target.assignor, group.share_of("w2")) == (MINE, configured)


@pytest.mark.parametrize("driver", ["works"], indirect=True)
def test_an_unknown_name_is_refused_with_those_that_there_are(driver: ShardDriver) -> None:
    refused: Any = joins(driver, "a", "nobodys")
    assert (refused.error, refused.message) == (
        Error.UNSUPPORTED_ASSIGNOR,
        "there is no server assignor 'nobodys': name mine or range or uniform",
    )
