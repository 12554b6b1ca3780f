"""Asks brokers of transactions with offsets of groups: whether they are open, and how they ended.

A broker keeps the offsets of a group in a partition of `__consumer_offsets`, which the group's id
determines. The groups here have their offsets in logs of their own, but a transaction that includes
a group's offsets ends with a marker in that partition all the same: it is the only thing there that
this program reads. See `transactions` for what it is good for.
"""
# pyright: basic

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from kio.records.readers import read_batch
from kio.schema.errors import ErrorCode

from ....actors.messages.errors import Error
from ....actors.messages.offsets import OpenTransaction
from ....actors.transport.ports import HostPort
from ..wire.frames import item_class, make, request_class
from ..wire.served import ADD_OFFSETS_TO_TXN, FETCH, FIND_COORDINATOR, LIST_OFFSETS, METADATA
from .ends import CONSUMER, LATEST, METADATA_VERSION, OFFSETS_VERSION
from .login import BrokerSecurity
from .upstream import BrokerUnavailable, Upstream

TOPIC: Final = "__consumer_offsets"
COORDINATOR_VERSION, ADD_VERSION, FETCH_VERSION = 3, 3, 12
OF_GROUPS, OF_TRANSACTIONS = 0, 1
"""The key types of FindCoordinator."""
EARLIEST: Final = -2
"""The timestamp that stands for the begin."""
MOST_COORDINATORS: Final = 10_000
"""How many coordinators of transactions are remembered."""
ANSWER_SECONDS: Final = 10.0
LONG_POLL: Final = timedelta(seconds=5)
FETCH_BYTES: Final = 1 << 20

BATCH: Final = struct.Struct(">qiibihiqqq")
"""The start of a batch of records: base offset, length, leader epoch, magic, checksum, attributes,
last offset delta, two timestamps, producer id."""
BATCH_START: Final = 12
"""The bytes of base offset and length, which the length does not count."""
RECORDS_OF_NOW: Final = 2
"""The magic of batches that can be control batches."""
CONTROL: Final = 1 << 5
"""The attribute of a batch that has a marker."""
COMMIT: Final = 1
"""The type of a marker, in its key, that says that the transaction is committed; 0: aborted."""
MARKER_KEY: Final = struct.Struct(">hh")
"""The key of a marker: version, type."""

FENCED: Final = frozenset({ErrorCode.invalid_producer_epoch, ErrorCode.producer_fenced})
NOT_LED: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.kafka_storage_error,
    }
)
"""The errors after which the leaders are looked up again."""
DENIED: Final = frozenset(
    {ErrorCode.transactional_id_authorization_failed, ErrorCode.group_authorization_failed}
)


class TransactionMarker(NamedTuple):
    """The end of a transaction, in the partition of a group."""

    producer_id: int
    offset: int
    is_committed: bool


class FetchedMarkers(NamedTuple):
    """The markers in a part of a partition."""

    markers: Sequence[TransactionMarker]
    next_offset: int
    """Where to read on."""


class TopicMissing(Exception):  # noqa: N818  # says what happened
    """No broker has had a group yet, so the topic of their offsets is about to be created."""


class GroupPartitions:
    """Asks brokers about the partitions of groups; each is asked one thing at a time."""

    def __init__(self, bootstrap: Sequence[HostPort], security: BrokerSecurity) -> None:
        self._bootstrap, self._security = bootstrap, security
        self._connections: dict[tuple[HostPort | None, int], _Connection] = {}
        self._leaders: Mapping[int, HostPort] = {}
        """The leaders of the partitions that have one, by number."""
        self._count = 0
        """The number of partitions, which never changes; 0: it is not known yet."""
        self._coordinators: dict[str, HostPort] = {}
        """Where transactions are coordinated, by transactional id."""

    def close(self) -> None:
        """Close all connections."""
        for each in self._connections.values():
            each.close()

    async def number_for(self, group_id: str) -> int:
        """Return the number of a group's partition, as brokers compute it.

        Raises `TopicMissing`, `BrokerUnavailable`, and I/O errors.
        """
        if not self._count:
            await self._find_leaders(group_id)
        return java_hash(group_id) % self._count

    async def end_of(self, number: int) -> int:
        """Return the end of a partition; raises as `number_for`."""
        return await self._offset_at(number, LATEST)

    async def _offset_at(self, number: int, time: int) -> int:
        partition = {"partition_index": number, "timestamp": time}
        fields = {"replica_id": CONSUMER, "isolation_level": 0}
        found = await self._ask_leader(number, LIST_OFFSETS, OFFSETS_VERSION, partition, fields)
        _check(found.error_code, number)
        return int(found.offset)

    async def include(self, transaction: OpenTransaction, group_id: str) -> Error:
        """Add a group's offsets to an open transaction, if they are not in it yet.

        Returns why that cannot be; it is not open any more, say. Raises as `number_for`.
        """
        transactional_id = transaction.transactional_id
        coordinator = await self._coordinator_of(transactional_id)
        try:
            answer = await self._at(coordinator).ask(
                ADD_OFFSETS_TO_TXN,
                ADD_VERSION,
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                group_id=group_id,
            )
        except BaseException:
            self._coordinators.pop(transactional_id, None)
            raise
        error = _translate(answer.error_code)
        if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            self._coordinators.pop(transactional_id, None)
        return error

    async def fetch(self, number: int, offset: int) -> FetchedMarkers:
        """Return the markers in a partition from an offset on; waits a few seconds for one.

        Raises as `number_for`. If the brokers have dropped what was there, it goes on behind that.
        """
        partition = {"partition": number, "fetch_offset": offset}
        partition["partition_max_bytes"] = FETCH_BYTES
        fields = {"max_wait": LONG_POLL, "min_bytes": 1, "forgotten_topics_data": ()}
        answer = await self._ask_leader(number, FETCH, FETCH_VERSION, partition, fields)
        if answer.error_code is ErrorCode.offset_out_of_range:
            first = await self._offset_at(number, EARLIEST)
            if first <= offset:
                raise BrokerUnavailable(f"{TOPIC}-{number} is another one: it ends before {offset}")
            return FetchedMarkers((), first)
        _check(answer.error_code, number)
        return read_markers(answer.records or b"", offset)

    # -- who is asked

    async def _ask_leader(
        self,
        number: int,
        api: int,
        version: int,
        partition: Mapping[str, Any],
        fields: Mapping[str, Any],
    ) -> Any:
        """Ask the leader of a partition about it; return what it answers about the partition."""
        if number not in self._leaders:
            await self._find_leaders("")
        if number not in self._leaders:
            raise BrokerUnavailable(f"{TOPIC}-{number} has no leader")
        kind = item_class(request_class(api, version), "topics")
        item = item_class(kind, "partitions")
        topic = make(kind, name=TOPIC, topic=TOPIC, partitions=(make(item, **partition),))
        # A fetch waits for records, and nothing else has to wait behind it.
        leader = self._at(self._leaders[number], number if api == FETCH else -1)
        try:
            answer = await leader.ask(api, version, topics=(topic,), **fields)
            (about,) = answer.topics if api == LIST_OFFSETS else answer.responses
            (partition_answer,) = about.partitions
        except ValueError:
            raise BrokerUnavailable(f"it answers otherwise than asked about {TOPIC}") from None
        except BaseException:
            self._leaders = {}
            raise
        if partition_answer.error_code in NOT_LED:
            self._leaders = {}
        return partition_answer

    async def _find_leaders(self, group_id: str) -> None:
        """Find who leads what; a broker that is asked for a group's coordinator makes the topic."""
        bootstrap = self._at()
        kind = item_class(request_class(METADATA, METADATA_VERSION), "topics")
        answer = await bootstrap.ask(
            METADATA,
            METADATA_VERSION,
            topics=(kind(name=TOPIC),),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        partitions = answer.topics[0].partitions
        if not partitions:
            key = {"key": group_id, "key_type": OF_GROUPS}
            await bootstrap.ask(FIND_COORDINATOR, COORDINATOR_VERSION, **key)
            raise TopicMissing(TOPIC)
        places = {each.node_id: HostPort(each.host, each.port) for each in answer.brokers}
        self._count = len(partitions)
        self._leaders = {
            each.partition_index: places[each.leader_id]
            for each in partitions
            if each.leader_id in places
        }

    async def _coordinator_of(self, transactional_id: str) -> HostPort:
        if transactional_id not in self._coordinators:
            key = {"key": transactional_id, "key_type": OF_TRANSACTIONS}
            answer = await self._at().ask(FIND_COORDINATOR, COORDINATOR_VERSION, **key)
            if answer.error_code is not ErrorCode.none:
                raise BrokerUnavailable(f"no coordinator of transactions: {answer.error_message}")
            if len(self._coordinators) >= MOST_COORDINATORS:
                self._coordinators.clear()
            self._coordinators[transactional_id] = HostPort(answer.host, answer.port)
        return self._coordinators[transactional_id]

    def _at(self, place: HostPort | None = None, purpose: int = -1) -> "_Connection":
        """Return the connection to one broker, by default to any of them."""
        key = place, purpose
        if key not in self._connections:
            places = self._bootstrap if place is None else [place]
            self._connections[key] = _Connection(partial(Upstream, places, self._security))
        return self._connections[key]


class _Connection:
    """A connection that is opened again after a failure."""

    def __init__(self, connect: Callable[[], Upstream]) -> None:
        self._connect, self._lock = connect, asyncio.Lock()
        self._upstream = connect()

    async def ask(self, api: int, version: int, **fields: Any) -> Any:
        """Send a request when those before it are answered, and return the response."""
        async with self._lock:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._upstream.ask(api, version, **fields)
            except BaseException:  # the response may still come
                self.close()
                self._upstream = self._connect()
                raise

    def close(self) -> None:
        self._upstream.close()


def _translate(error: ErrorCode) -> Error:
    """Return the error of a commit for that of the coordinator of its transaction."""
    if error is ErrorCode.none:
        return Error.NONE
    if error in FENCED:
        return Error.INVALID_PRODUCER_EPOCH
    if error in DENIED:
        return Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if error is ErrorCode.not_coordinator or error.retriable:
        return Error.COORDINATOR_LOAD_IN_PROGRESS
    return Error.INVALID_TXN_STATE


def _check(error: ErrorCode, number: int) -> None:
    """Raise `BrokerUnavailable` for the error of a partition."""
    if error is not ErrorCode.none:
        raise BrokerUnavailable(f"{TOPIC}-{number}: {error.name}")


def read_markers(records: bytes, offset: int) -> FetchedMarkers:
    """Return the markers among records; the last batch may be cut.

    Batches are passed over by their lengths, whatever they have. One that begins before `offset` is
    passed over as well: brokers return whole batches.
    """
    markers: list[TransactionMarker] = []
    start, next_offset = 0, offset
    while start + BATCH.size <= len(records):
        base, length, _, magic, _, attributes, delta, _, _, producer_id = BATCH.unpack_from(
            records, start
        )
        end = start + BATCH_START + length
        if end > len(records):
            break
        is_marker = magic == RECORDS_OF_NOW and bool(attributes & CONTROL)
        if is_marker and base >= offset:
            batch, _ = read_batch(records[start:end], 0)
            _, kind = MARKER_KEY.unpack_from(batch.records[0].key or b"")
            markers.append(TransactionMarker(producer_id, base, kind == COMMIT))
        last = base + delta if magic == RECORDS_OF_NOW else base
        next_offset = max(next_offset, last + 1)
        start = end
    return FetchedMarkers(markers, next_offset)


def java_hash(text: str) -> int:
    """Return the absolute value of Java's hash of a text."""
    bits = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", errors="surrogatepass")):
        bits = (31 * bits + unit) & 0xFFFFFFFF
    signed = bits - (1 << 32) if bits >> 31 else bits
    return 0 if signed == -(1 << 31) else abs(signed)
