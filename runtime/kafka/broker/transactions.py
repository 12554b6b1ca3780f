"""Offsets that are committed in transactions (KIP-98, KIP-447): when they count.

The transaction is the brokers', the offsets are in the log of their group. A producer tells the
coordinator of its transaction, a broker, that this includes a group's offsets (AddOffsetsToTxn),
and commits them here (TxnOffsetCommit). They are pending in the log of the group. When the
transaction ends, the coordinator writes a marker into the partition that brokers have for the
group. While any group waits, its partition is read, and the group is told of the marker: the
offsets are committed, or dropped.

A marker must not end another transaction than its own, also if it is read late, or again by the
next process. So the end of the partition goes with the offsets as their lower bound:

* *Markers of earlier transactions of the producer are before it.* A coordinator adds nothing to a
  transaction until all markers of the last one are written, and the producer has had the group
  added before it commits.
* *The marker of this one is behind it.* After the end was read, the coordinator is asked to add the
  group once more. It agrees if the transaction is open; so its marker is not written yet.

A group may hear of a marker twice, and of one that is none of its business: neither changes
anything. Offsets whose marker the brokers have dropped (they keep it for a day at least) stay
pending until people set or delete the offsets of these partitions.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final
from weakref import WeakValueDictionary

from ....actors.messages.errors import Error
from ....actors.messages.groups import WaitsFor
from ....actors.messages.offsets import EndTransaction, OffsetCommit, OpenTransaction
from ..wire.bounds import FrameRefused
from .group_partition import GroupPartitions, TopicMissing, TransactionMarker
from .upstream import BrokerUnavailable

LOGGER = logging.getLogger(__name__)
PAUSE_SECONDS: Final = 0.2
"""The interval at which a broker or a group that does not answer is asked again."""
AWAY: Final = (BrokerUnavailable, FrameRefused, TopicMissing, OSError, EOFError)
"""How brokers fail; it is tried again."""

Warn = Callable[[str, str], None]
Tell = Callable[[EndTransaction], Awaitable[bool]]
"""Tells a group of the end of a transaction; returns whether that is durable."""


class CommitRefused(Exception):  # noqa: N818  # says what happened
    """The offsets of a transaction cannot be committed now, or at all."""

    def __init__(self, error: Error, message: str) -> None:
        super().__init__(message)
        self.error = error


class Transactions:
    """The transactions that groups wait for, as far as this process knows of them."""

    def __init__(self, partitions: GroupPartitions, warn: Warn, tell: Tell) -> None:
        self._partitions, self._warn, self._tell = partitions, warn, tell
        self._waiting: dict[int, Counter[WaitsFor]] = {}
        """What is waited for in each partition that is read, with the number of commits."""
        self._offsets: dict[int, int] = {}
        """Where each of these partitions is read next."""
        self._readers: dict[int, asyncio.Task[None]] = {}
        """What reads a partition, by its number."""
        self._locks: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()
        """Held by commits of a producer for a group while they are sent: a marker waits."""

    def close(self) -> None:
        """Read no more."""
        for each in self._readers.values():
            each.cancel()
        self._partitions.close()

    async def wait_for(self, transactions: Sequence[WaitsFor]) -> None:
        """Read on for transactions that an earlier process has waited for; retries for ever."""
        for each in transactions:
            while True:
                try:
                    number = await self._partitions.number_for(each.group_id)
                    break
                except AWAY as away:
                    self._warn("ends of transactions cannot be seen:", str(away))
                    await asyncio.sleep(PAUSE_SECONDS)
            self._add(number, each)

    async def commit(
        self, call: OffsetCommit, send: Callable[[OffsetCommit], Awaitable[object]]
    ) -> object:
        """Send a commit in a transaction to its group; return the reply, raises `CommitRefused`."""
        assert call.transaction is not None  # noqa: S101  # else there is nothing to wait for
        transaction, group_id = call.transaction, call.group_id
        lock = self._locks.setdefault((group_id, transaction.producer_id), asyncio.Lock())
        async with lock:
            try:
                number = await self._partitions.number_for(group_id)
                after = await self._partitions.end_of(number)
                waits = WaitsFor(group_id, transaction.producer_id, after)
                self._add(number, waits)
                await self._verify(transaction, group_id, number, waits)
            except AWAY as away:
                self._warn("a transaction cannot be verified:", str(away))
                raise CommitRefused(Error.COORDINATOR_LOAD_IN_PROGRESS, str(away)) from None
            return await send(replace(call, transaction=replace(transaction, after=after)))

    async def _verify(
        self, transaction: OpenTransaction, group_id: str, number: int, waits: WaitsFor
    ) -> None:
        """Raise `CommitRefused` unless the transaction is open."""
        try:
            error = await self._partitions.include(transaction, group_id)
        except BaseException:
            self._drop(number, waits)
            raise
        if error is not Error.NONE:
            self._drop(number, waits)
            raise CommitRefused(error, "the coordinator of the transaction says so")

    # -- what is waited for

    def _add(self, number: int, waits: WaitsFor) -> None:
        waiting = self._waiting.setdefault(number, Counter())
        waiting[waits] += 1
        if number in self._readers:
            self._offsets[number] = min(waits.after, self._offsets[number])
        else:
            self._offsets[number] = min(each.after for each in waiting)
            self._readers[number] = asyncio.create_task(self._read(number))

    def _drop(self, number: int, waits: WaitsFor) -> None:
        """Wait no more for one of the commits; a marker may have ended all of them meanwhile."""
        waiting = self._waiting.get(number, Counter[WaitsFor]())
        waiting[waits] -= 1
        if waiting[waits] <= 0:
            del waiting[waits]

    async def _read(self, number: int) -> None:
        """Read a partition while any group waits for a marker there."""
        waiting = self._waiting[number]
        try:
            while waiting:
                offset = self._offsets[number]
                try:
                    markers, next_offset = await self._partitions.fetch(number, offset)
                except AWAY as away:
                    self._warn("ends of transactions cannot be seen:", str(away))
                    await asyncio.sleep(PAUSE_SECONDS)
                    continue
                for each in markers:
                    await self._end(waiting, each)
                if self._offsets[number] == offset:  # else there are earlier ones to be read
                    self._offsets[number] = next_offset
        except Exception:
            LOGGER.exception("ends of transactions in %d are read on after the next commit", number)
        finally:
            del self._readers[number], self._offsets[number]

    async def _end(self, waiting: Counter[WaitsFor], marker: TransactionMarker) -> None:
        """Tell all groups that wait for it of the end of a transaction."""
        ended = [
            each
            for each in waiting
            if each.producer_id == marker.producer_id and each.after <= marker.offset
        ]
        for group_id in sorted({each.group_id for each in ended}):
            lock = self._locks.setdefault((group_id, marker.producer_id), asyncio.Lock())
            async with lock:
                end = EndTransaction(group_id, *marker)
                while not await self._tell(end):
                    await asyncio.sleep(PAUSE_SECONDS)
        for each in ended:
            waiting.pop(each, None)
