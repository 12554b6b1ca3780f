"""Offsets of a transaction are pending until its marker, and each marker ends its own."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import ListTransactions, ListTransactionsReply, WaitsFor
from fairlead.actors.messages.offsets import (
    EndTransaction,
    EndTransactionReply,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OpenTransaction,
    TopicOffset,
)
from fairlead.actors.messages.orders import DeleteGroup
from fairlead.events.log.space import DiskSpace
from fairlead_tests.consumer.classic import joining
from fairlead_tests.consumer.driver import ConsumerDriver, topic
from fairlead_tests.shards.driver import ShardDriver

UNSTABLE = Error.UNSTABLE_OFFSET_COMMIT
PRODUCER = 7


@pytest.fixture
def driver() -> ConsumerDriver:
    return ConsumerDriver()


def commit(
    driver: ConsumerDriver, offset: int, after: int | None = None, partition: int = 0, **said: Any
) -> Error:
    """Commit an offset of t4, in a transaction whose marker is at `after` or behind it."""
    transaction = None if after is None else OpenTransaction("copy", PRODUCER, 0, after)
    offsets = (TopicOffset("t4", partition, offset),)
    reply = driver.asks(OffsetCommit("g", offsets, transaction=transaction, **said))
    found: Error = reply.verdicts[0].error
    return found


def end(driver: ConsumerDriver, marker: int, *, commits: bool = True, of: int = PRODUCER) -> None:
    reply = driver.asks(EndTransaction("g", of, marker, commits))
    assert reply.error is Error.NONE


def fetch(driver: ConsumerDriver, *, stable: bool = True, partition: int = 0) -> int | Error:
    asked = {"t4": (partition,)}
    (found,) = driver.asks(OffsetFetch("g", asked, needs_stable=stable)).offsets
    error: Error = found.error
    offset: int = found.offset
    return offset if error is Error.NONE else error


def test_an_offset_is_told_once_its_transaction_is_committed(driver: ConsumerDriver) -> None:
    assert commit(driver, 5) is Error.NONE
    assert commit(driver, 9, after=100) is Error.NONE
    assert (fetch(driver), fetch(driver, stable=False)) == (UNSTABLE, 5)
    end(driver, 100)
    assert (fetch(driver), fetch(driver, stable=False)) == (9, 9)


def test_an_offset_goes_with_its_transaction_if_that_is_aborted(driver: ConsumerDriver) -> None:
    commit(driver, 5)
    commit(driver, 9, after=100)
    end(driver, 103, commits=False)
    assert fetch(driver) == 5


def test_all_offsets_are_told_with_those_that_are_pending(driver: ConsumerDriver) -> None:
    commit(driver, 5)
    commit(driver, 9, after=100)
    commit(driver, 6, partition=2)
    found = driver.asks(OffsetFetch("g", needs_stable=True)).offsets
    assert [(each.partition, each.offset, each.error) for each in found] == [
        (0, -1, UNSTABLE),
        (2, 6, Error.NONE),
    ]


def test_markers_of_others_and_of_earlier_transactions_end_nothing(driver: ConsumerDriver) -> None:
    commit(driver, 9, after=100)
    end(driver, 100, of=PRODUCER + 1)
    end(driver, 99)
    assert fetch(driver) is UNSTABLE
    end(driver, 100)
    assert fetch(driver) == 9


def test_a_marker_that_is_read_again_does_not_end_the_next_transaction(
    driver: ConsumerDriver,
) -> None:
    commit(driver, 9, after=100)
    end(driver, 101)
    commit(driver, 12, after=102)
    end(driver, 101)
    assert fetch(driver) is UNSTABLE
    end(driver, 102, commits=False)
    assert fetch(driver) == 9


def test_two_transactions_of_a_producer_may_wait_for_their_markers(driver: ConsumerDriver) -> None:
    commit(driver, 9, after=100)
    commit(driver, 12, after=102)
    end(driver, 101)
    assert (fetch(driver), fetch(driver, stable=False)) == (UNSTABLE, 9)
    end(driver, 104, commits=False)
    assert fetch(driver) == 9


def test_the_last_of_two_commits_in_a_transaction_counts(driver: ConsumerDriver) -> None:
    commit(driver, 12, after=100)
    commit(driver, 9, after=101)
    end(driver, 105)
    assert fetch(driver) == 9


def test_pending_offsets_outlive_the_process(driver: ConsumerDriver) -> None:
    commit(driver, 9, after=100)
    driver.open()
    assert fetch(driver) is UNSTABLE
    end(driver, 100)
    driver.open()
    assert fetch(driver) == 9


def test_what_is_committed_or_deleted_meanwhile_takes_the_place_of_pending_offsets(
    driver: ConsumerDriver,
) -> None:
    commit(driver, 9, after=100)
    commit(driver, 4)
    assert fetch(driver) == 4
    commit(driver, 9, after=100)
    driver.asks(OffsetDelete("g", {"t4": (0,)}))
    assert fetch(driver) == -1
    end(driver, 101)
    assert fetch(driver) == -1


def test_a_member_commits_in_a_transaction_with_its_epoch(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4")
    assert commit(driver, 9, after=1, member_id="A", epoch=2) is Error.NONE
    assert commit(driver, 9, after=1, member_id="A", epoch=1) is Error.ILLEGAL_GENERATION
    assert commit(driver, 9, after=1, member_id="B", epoch=2) is Error.UNKNOWN_MEMBER_ID
    assert commit(driver, 9, after=1) is Error.NONE  # as producers before KIP-447


def test_a_classic_member_commits_in_a_transaction_with_its_generation(
    driver: ConsumerDriver,
) -> None:
    driver.ask(joining())
    driver.passes(10)
    (member,) = driver.shard.classic.coordinator.members()
    assert commit(driver, 9, 1, member_id=member.member_id, epoch=7) is Error.ILLEGAL_GENERATION
    assert commit(driver, 9, after=1, member_id="B", epoch=1) is Error.UNKNOWN_MEMBER_ID
    # In a round, before its SyncGroup:
    assert commit(driver, 9, 1, member_id=member.member_id, epoch=1) is Error.NONE
    assert fetch(driver) is UNSTABLE


def test_a_generation_of_a_group_that_is_not_there_is_illegal(driver: ConsumerDriver) -> None:
    assert commit(driver, 9, after=1, member_id="A", epoch=3) is Error.ILLEGAL_GENERATION
    assert commit(driver, 9, after=1) is Error.NONE


def test_a_topic_that_was_deleted_meanwhile_gets_no_offset(driver: ConsumerDriver) -> None:
    commit(driver, 9, after=100)
    driver.sees({"t4": topic("t4", 4, life=1)})
    end(driver, 100)
    assert driver.shard.state.ledger.client_offsets() == []


def test_nothing_expires_while_an_offset_is_pending() -> None:
    brief = GroupSettings(offsets_retention_ms=10_000, offsets_check_interval_ms=1_000)
    driver = ConsumerDriver(settings=brief)
    commit(driver, 5, partition=1)
    commit(driver, 9, after=100)
    driver.passes(30_000)
    assert fetch(driver, partition=1) == 5
    end(driver, 100, commits=False)
    driver.passes(30_000)
    assert driver.shard.state.ledger.client_offsets() == []


def test_a_deleted_group_leaves_no_pending_offsets(driver: ConsumerDriver) -> None:
    commit(driver, 9, after=100)
    driver.asks_plain(DeleteGroup("g"))
    assert driver.shard.state.ledger.client_offsets() == []


def test_a_marker_waits_for_space_on_the_disk(driver: ConsumerDriver) -> None:
    commit(driver, 9, after=100)
    driver.shard.set_disk_space(DiskSpace(Path(), 0), driver.now)
    reply = driver.asks(EndTransaction("g", PRODUCER, 100, is_committed=True))
    assert reply.error is Error.COORDINATOR_NOT_AVAILABLE
    assert fetch(driver) is UNSTABLE


def waited_for(driver: ShardDriver) -> frozenset[WaitsFor]:
    (reply,) = driver.asks(ListTransactions())
    assert isinstance(reply, ListTransactionsReply)
    return reply.transactions


def test_a_process_names_the_transactions_that_its_groups_wait_for(tmp_path: Path) -> None:
    driver = ShardDriver(tmp_path)
    transaction = OpenTransaction("copy", PRODUCER, 0, 100)
    offsets = (TopicOffset("t", 0, 3),)
    driver.asks(OffsetCommit("a", offsets, transaction=transaction), OffsetCommit("b", offsets))
    driver.close()
    driver.open()
    assert waited_for(driver) == {WaitsFor("a", PRODUCER, 100)}
    driver.asks(EndTransaction("a", PRODUCER, 100, is_committed=True))
    assert waited_for(driver) == set()


def test_the_end_of_a_transaction_makes_no_group(tmp_path: Path) -> None:
    driver = ShardDriver(tmp_path)
    driver.numbers = count(1)
    end = EndTransaction("g", PRODUCER, 100, is_committed=True)
    assert driver.asks(end) == [EndTransactionReply(number=1)]
    assert len(driver.groups) == 0
