"""A shard hosts groups of Connect workers as it hosts those of consumers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.messages.classic import JoinGroupReply
from fairlead.actors.messages.computing import Prepare, PrepareReply
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    ConnectCall,
    DescribeGroup,
    HostCall,
    ListGroups,
    RemoveGroup,
)
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.shards.hosting import CONNECTORS
from fairlead.events.model import GroupType
from fairlead.runtime.simulation.invariants.group import same
from fairlead_tests.classic.workers import as_worker
from fairlead_tests.shards.driver import ShardDriver, joining

A = "crew"


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ShardDriver]:
    driver = ShardDriver(tmp_path)
    yield driver
    driver.close()


def ask(driver: ShardDriver, call: HostCall) -> Any:
    (reply,) = driver.asks(call)
    return reply


def beat(driver: ShardDriver, member_id: str, epoch: int, sequence: int) -> HeartbeatReply:
    request = Heartbeat(
        A,
        member_id,
        epoch,
        f"process of {member_id}",
        sequence,
        url=f"http://{member_id}/" if not epoch else None,
        rebalance_timeout_ms=60_000 if not epoch else -1,
        server_assignor="uniform" if not epoch else None,
        owned=() if epoch >= 0 else None,
        coordinator_epoch=driver.groups.coordinator_epoch,
    )
    reply = ask(driver, ConnectCall(request))
    assert isinstance(reply, HeartbeatReply)
    return reply


def joins(driver: ShardDriver, member_id: str) -> HeartbeatReply:
    return beat(driver, member_id, 0, 1)


def group_of(driver: ShardDriver) -> GroupType:
    return driver.groups._groups[A].shard.group.type


def test_the_first_heartbeat_of_a_worker_makes_a_connect_group(driver: ShardDriver) -> None:
    joined = joins(driver, "w1")
    assert (joined.error, joined.member_epoch) == (Error.NONE, 1)
    assert driver.groups._groups[A].shard.kind.translation is CONNECTORS.translation
    assert group_of(driver) is GroupType.CONNECT


def test_its_members_are_rebuilt_from_the_log_that_all_groups_share(driver: ShardDriver) -> None:
    joins(driver, "w1")
    driver.member_of("other")
    driver.close()
    driver.open()
    hosted = driver.groups._groups
    assert hosted[A].shard.group.members.keys() == {"w1"}
    assert hosted[A].shard.kind.translation is CONNECTORS.translation
    assert hosted["other"].shard.kind.translation is not CONNECTORS.translation


def test_a_classic_worker_makes_one_as_well_and_a_modern_one_upgrades_it(
    driver: ShardDriver,
) -> None:
    join = replace(joining(A), **as_worker("http://old/"))  # type: ignore[arg-type]
    joined = driver.asks(join)[0]
    assert isinstance(joined, JoinGroupReply)
    assert (joined.error, group_of(driver)) == (Error.NONE, GroupType.CLASSIC)
    assert joins(driver, "w2").error is Error.NONE
    assert group_of(driver) is GroupType.CONNECT
    assert len(driver.groups._groups[A].shard.group.members) == 2


def test_a_consumer_is_told_that_it_is_no_group_of_its_kind(driver: ShardDriver) -> None:
    joins(driver, "w1")
    call = ConsumerGroupHeartbeat(A, "c", 0, None, None, 20_000, ("t",), topic_partitions={})
    reply = ask(driver, call)
    assert reply.error is Error.GROUP_ID_NOT_FOUND


def test_it_is_deleted_once_it_is_empty_and_its_epoch_goes_on(driver: ShardDriver) -> None:
    joins(driver, "w1")
    refused = ask(driver, RemoveGroup(A))
    assert refused.error is Error.NON_EMPTY_GROUP
    beat(driver, "w1", -1, 9)
    before = driver.groups._groups[A].shard.group.group_epoch
    removed = ask(driver, RemoveGroup(A))
    assert removed.error is Error.NONE
    described = ask(driver, DescribeGroup(A))
    assert described.error is Error.GROUP_ID_NOT_FOUND
    assert ask(driver, ListGroups()).groups == ()
    driver.close()
    driver.open()
    assert joins(driver, "w2").member_epoch > before


def test_a_refused_call_of_connects_protocol_gets_an_answer_of_its_kind(
    driver: ShardDriver,
) -> None:
    request = Heartbeat("", "w", 0, "p", 1)
    reply = ask(driver, ConnectCall(request))
    assert isinstance(reply, HeartbeatReply)
    assert reply.error is Error.INVALID_REQUEST
    for group_id, error in (("", Error.INVALID_REQUEST), ("g" * 256, Error.INVALID_GROUP_ID)):
        asked = ask(driver, ConnectCall(Prepare(group_id, "w", 0)))
        assert isinstance(asked, PrepareReply)
        assert asked.error is error
    unknown = ask(driver, ConnectCall(Prepare("other", "w", 0)))
    assert unknown.error is Error.GROUP_ID_NOT_FOUND


def classic_joins(driver: ShardDriver) -> str:
    join = replace(joining(A), **as_worker("http://old/"))  # type: ignore[arg-type]
    joined = driver.asks(join)[0]
    assert isinstance(joined, JoinGroupReply)
    return joined.member_id


def test_a_classic_one_is_deleted_with_its_last_offset_as_a_group_of_consumers(
    driver: ShardDriver,
) -> None:
    driver.leaves(A, classic_joins(driver))
    driver.passes(driver.settings.offsets_retention_ms + 86_400_000)
    assert len(driver.groups) == 0
    driver.close()
    driver.open()
    assert len(driver.groups) == 0


def test_a_classic_one_leaves_nothing_once_it_is_deleted(driver: ShardDriver) -> None:
    driver.leaves(A, classic_joins(driver))
    assert ask(driver, RemoveGroup(A)).error is Error.NONE
    assert len(driver.groups) == 0


def test_a_group_that_becomes_one_as_it_is_deleted_keeps_both_in_the_log(
    driver: ShardDriver,
) -> None:
    call = ConsumerGroupHeartbeat(A, "c", 0, None, None, 20_000, ("t",), topic_partitions={})
    ask(driver, call)
    ask(driver, replace(call, member_epoch=-1))
    join = replace(joining(A), **as_worker("http://old/"))  # type: ignore[arg-type]
    removed, joined = driver.asks(RemoveGroup(A), join)
    assert (removed.error, joined.error) == (Error.NONE, Error.NONE)
    group = driver.groups._groups[A].shard.group
    driver.close()
    driver.open()
    hosted = driver.groups._groups[A].shard
    assert hosted.kind.translation is CONNECTORS.translation
    same(hosted.group, group)
