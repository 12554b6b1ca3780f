"""A marker in the brokers' partition of a group ends the transaction that it belongs to."""
# pyright: basic

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_batch

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import WaitsFor
from fairlead.actors.messages.offsets import (
    EndTransaction,
    OffsetCommit,
    OffsetCommitReply,
    OpenTransaction,
    TopicOffset,
)
from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.kafka.broker.group_partition import (
    CONTROL,
    FetchedMarkers,
    GroupPartitions,
    TransactionMarker,
    java_hash,
    read_markers,
)
from fairlead.runtime.kafka.broker.login import UNPROTECTED
from fairlead.runtime.kafka.broker.transactions import CommitRefused, Transactions
from fairlead.runtime.kafka.broker.upstream import BrokerUnavailable
from fairlead.runtime.kafka.wire.served import FETCH, LIST_OFFSETS, METADATA, TXN_OFFSET_COMMIT
from fairlead_tests.kafka_listener.behind import Behind, behind
from fairlead_tests.kafka_listener.served import listening
from fairlead_tests.kafka_listener.spoken import ask

ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"
PRODUCER = 7


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop."""

    @wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **fixtures), 60))

    return run


# -- what is read


def batch(offset: int, *keys: bytes, attributes: int = 0, producer: int = PRODUCER) -> bytes:
    """Return a batch of records as brokers store it."""
    record: Any = Record
    made: Any = NewRecordBatch
    same = {"attributes": 0, "timestamp": datetime.now(UTC), "value": b"v", "headers": ()}
    records = tuple(record(offset=at, key=key, **same) for at, key in enumerate(keys))
    head = {"producer_id": producer, "producer_epoch": 0, "base_sequence": -1}
    write_batch(out := io.BytesIO(), made(records=records, attributes=attributes, **head))
    return offset.to_bytes(8, "big") + out.getvalue()[8:]


def marker(offset: int, key: bytes, producer: int = PRODUCER) -> bytes:
    return batch(offset, key, attributes=CONTROL, producer=producer)


def test_markers_are_read_among_records_of_others() -> None:
    records = batch(3, b"a", b"b", b"c") + marker(6, COMMIT) + batch(7, b"d") + marker(8, ABORT, 9)
    assert read_markers(records, 3) == FetchedMarkers(
        [TransactionMarker(7, 6, True), TransactionMarker(9, 8, False)], 9
    )


def test_a_marker_before_what_was_asked_for_is_passed_over() -> None:
    assert read_markers(marker(6, COMMIT) + batch(7, b"d"), 7) == FetchedMarkers([], 8)


def test_a_batch_that_is_cut_is_read_the_next_time() -> None:
    whole = batch(3, b"a")
    assert read_markers(whole + marker(4, COMMIT)[:-1], 3) == FetchedMarkers([], 4)
    assert read_markers(whole + marker(4, COMMIT)[:20], 3) == FetchedMarkers([], 4)
    assert read_markers(b"", 3) == FetchedMarkers([], 3)


def test_a_batch_of_the_oldest_form_is_passed_over() -> None:
    old = bytearray(batch(3, b"a"))
    old[16] = 1
    assert read_markers(bytes(old) + marker(4, COMMIT), 3) == FetchedMarkers(
        [TransactionMarker(7, 4, True)], 5
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", 0),
        ("connect-cluster", 1_440_343_063),
        ("Zürich 😀", 1_456_975_611),
        ("polygenelubricants", 0),  # Integer.MIN_VALUE has no absolute value
    ],
)
def test_a_group_has_the_partition_that_brokers_compute(text: str, found: int) -> None:
    assert java_hash(text) == found


UNTHROTTLED = {"ThrottleTimeMs": 0}


def at(broker: Behind, *, first: int, **fetched: Any) -> GroupPartitions:
    """Let a broker lead a partition that begins at an offset, and ask it."""
    place = {"NodeId": 1, "Host": "127.0.0.1", "Port": broker.port}
    led = {"ErrorCode": 0, "PartitionIndex": 0, "LeaderId": 1}
    topic = {"ErrorCode": 0, "Name": "__consumer_offsets", "Partitions": [led]}
    broker.says(
        METADATA, 9, {**UNTHROTTLED, "Brokers": [place], "ClusterId": "x", "Topics": [topic]}
    )
    begins = {"PartitionIndex": 0, "ErrorCode": 0, "Timestamp": -1, "Offset": first}
    named = {"Name": "__consumer_offsets", "Partitions": [begins]}
    broker.says(LIST_OFFSETS, 6, {**UNTHROTTLED, "Topics": [named]})
    found = {"PartitionIndex": 0, "HighWatermark": 9, "AbortedTransactions": None, **fetched}
    named = {"Topic": "__consumer_offsets", "Partitions": [found]}
    broker.says(FETCH, 12, {**UNTHROTTLED, "ErrorCode": 0, "Responses": [named]})
    return GroupPartitions([HostPort("127.0.0.1", broker.port)], UNPROTECTED)


@in_loop
async def test_what_the_brokers_have_dropped_is_passed_over() -> None:
    async with behind() as broker:
        partitions = at(broker, first=5, ErrorCode=1, Records=None)
        assert await partitions.fetch(0, 3) == FetchedMarkers((), 5)
        partitions.close()


@in_loop
async def test_a_partition_that_ends_before_what_is_waited_for_is_asked_again_later() -> None:
    async with behind() as broker:
        partitions = at(broker, first=0, ErrorCode=1, Records=None)
        with pytest.raises(BrokerUnavailable, match="it ends before 3"):
            await partitions.fetch(0, 3)
        partitions.close()


# -- what is waited for


class Partitions:
    """A double of the brokers, whose partition is a list of markers."""

    def __init__(self) -> None:
        self.end, self.markers, self.verdict = 100, list[TransactionMarker](), Error.NONE
        self.changed = asyncio.Event()
        self.fetched = list[int]()
        self.on_include: Callable[[], Awaitable[None]] | None = None
        self.away = 0
        """How many fetches fail."""

    def close(self) -> None:
        pass

    async def number_for(self, group_id: str) -> int:
        return len(group_id)

    async def end_of(self, number: int) -> int:
        del number
        return self.end

    async def include(self, transaction: OpenTransaction, group_id: str) -> Error:
        del transaction, group_id
        if self.on_include is not None:
            await self.on_include()
        return self.verdict

    async def fetch(self, number: int, offset: int) -> FetchedMarkers:
        del number
        self.fetched.append(offset)
        if self.away:
            self.away -= 1
            raise BrokerUnavailable("it is away")
        while not (found := [each for each in self.markers if each.offset >= offset]):
            self.changed.clear()
            await self.changed.wait()
        return FetchedMarkers(found, found[-1].offset + 1)

    def ends(self, *, commits: bool = True, producer: int = PRODUCER) -> None:
        """Write a marker at the end."""
        self.markers.append(TransactionMarker(producer, self.end, commits))
        self.end += 1
        self.changed.set()


class Group:
    """A double of a group: what it was told, in order."""

    def __init__(self) -> None:
        self.heard = list[OffsetCommit | EndTransaction]()
        self.changed = asyncio.Event()
        self.refuses = 0

    async def commits(self, call: OffsetCommit) -> OffsetCommitReply:
        self.heard.append(call)
        return OffsetCommitReply(())

    async def ends(self, end: EndTransaction) -> bool:
        if self.refuses:
            self.refuses -= 1
            return False
        self.heard.append(end)
        self.changed.set()
        return True


@asynccontextmanager
async def waiting() -> AsyncIterator[tuple[Transactions, Partitions, Group]]:
    partitions: Any = Partitions()
    group = Group()
    transactions = Transactions(partitions, lambda *_: None, group.ends)
    try:
        yield transactions, partitions, group
    finally:
        transactions.close()


def call_at(after: int = 0) -> OffsetCommit:
    transaction = OpenTransaction("copy", PRODUCER, 0, after)
    return OffsetCommit("g", (TopicOffset("t", 0, 7),), transaction=transaction)


@in_loop
async def test_a_group_is_told_of_the_marker_behind_its_offsets() -> None:
    async with waiting() as (transactions, partitions, group):
        partitions.ends()  # of an earlier transaction
        await transactions.commit(call_at(), group.commits)
        partitions.ends(producer=PRODUCER + 1)
        partitions.ends(commits=False)
        await group.changed.wait()
        assert group.heard == [call_at(101), EndTransaction("g", PRODUCER, 102, False)]


@in_loop
async def test_a_marker_waits_for_the_commit_that_it_ends() -> None:
    async with waiting() as (transactions, partitions, group):

        async def ends() -> None:  # another producer fences this one in the middle of its commit
            partitions.ends(commits=False)
            await asyncio.sleep(0.01)

        partitions.on_include = ends
        await transactions.commit(call_at(), group.commits)
        await group.changed.wait()
        assert group.heard == [call_at(100), EndTransaction("g", PRODUCER, 100, False)]


@pytest.mark.parametrize(
    "error", [Error.INVALID_PRODUCER_EPOCH, Error.COORDINATOR_LOAD_IN_PROGRESS]
)
@in_loop
async def test_a_transaction_that_is_not_open_commits_nothing(error: Error) -> None:
    async with waiting() as (transactions, partitions, group):
        partitions.verdict = error
        with pytest.raises(CommitRefused) as refused:
            await transactions.commit(call_at(), group.commits)
        assert refused.value.error is error
        partitions.verdict = Error.NONE
        partitions.ends()
        await transactions.commit(call_at(), group.commits)
        partitions.ends()
        await group.changed.wait()
        assert group.heard == [call_at(101), EndTransaction("g", PRODUCER, 101, True)]


@in_loop
async def test_a_broker_or_a_group_that_is_away_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairlead.runtime.kafka.broker.transactions.PAUSE_SECONDS", 0.001)
    async with waiting() as (transactions, partitions, group):
        partitions.away, group.refuses = 3, 3
        await transactions.commit(call_at(), group.commits)
        partitions.ends()
        await group.changed.wait()
        assert group.heard == [call_at(100), EndTransaction("g", PRODUCER, 100, True)]


@in_loop
async def test_what_an_earlier_process_waited_for_is_read_from_there() -> None:
    async with waiting() as (transactions, partitions, group):
        partitions.ends(producer=PRODUCER + 1)
        partitions.ends()
        await transactions.commit(call_at(), group.commits)  # it is read from 102 on
        await asyncio.sleep(0)
        await transactions.wait_for([WaitsFor("h", PRODUCER + 1, 100)])
        partitions.ends()
        while len(group.heard) < 3:
            await asyncio.sleep(0.001)
        assert set(group.heard[1:]) == {
            EndTransaction("h", PRODUCER + 1, 100, True),
            EndTransaction("g", PRODUCER, 102, True),
        }


@in_loop
async def test_a_partition_is_read_only_while_a_group_waits() -> None:
    async with waiting() as (transactions, partitions, group):
        await transactions.commit(call_at(), group.commits)
        partitions.ends()
        await group.changed.wait()
        await asyncio.sleep(0.01)
        partitions.ends()
        await asyncio.sleep(0.01)
        assert partitions.fetched == [100]


@in_loop
async def test_without_brokers_the_producer_is_told_to_come_again(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        client = await served.dial()
        offset = {"PartitionIndex": 0, "CommittedOffset": 7, "CommittedLeaderEpoch": 2}
        topic = {"Name": "t", "Partitions": [{**offset, "CommittedMetadata": "m"}]}
        producer = {"TransactionalId": "x", "ProducerId": 7, "ProducerEpoch": 0}
        member = {"GenerationId": -1, "MemberId": "", "GroupInstanceId": None}
        for version in range(5):
            said = await ask(
                client,
                TXN_OFFSET_COMMIT,
                version,
                **producer,
                **member,
                GroupId="g",
                Topics=[topic],
            )
            (told,) = said["Topics"][0]["Partitions"]
            assert told == {"PartitionIndex": 0, "ErrorCode": 14}
