"""Executes OffsetCommit, OffsetFetch and OffsetDelete on a group's offset log."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from ....events.catalogue import key_of
from ....events.commits import ConsumerOffset, PendingOffset
from ....events.entries.codec import UnwritableRecordError
from ....events.group import LARGEST_EPOCH
from ....events.model import is_topic_name
from ....events.records import Record, Tombstone, Topic
from ...group.members.commit import OffsetLedger
from ...messages.errors import Error
from ...messages.offsets import (
    EndTransaction,
    EndTransactionReply,
    OffsetCall,
    OffsetCommit,
    OffsetCommitReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    OffsetReply,
    PartitionVerdict,
    TopicOffset,
)

LONGEST_METADATA: Final = 4_096
"""The maximum length of metadata in UTF-16 units, as Kafka counts `offset.metadata.max.bytes`."""

UNKNOWN: Final = Error.UNKNOWN_TOPIC_OR_PARTITION
LARGEST_INT32: Final = (1 << 31) - 1


def refuse_call(
    call: OffsetCall, error: Error, message: str = "", topics: Mapping[str, Topic] | None = None
) -> OffsetReply:
    """Return the error reply to a call.

    A broker checks the topics of a commit before the group does: unknown ones have their own error
    in any case. `topics` are those of the cluster, None: unknown.
    """
    if isinstance(call, EndTransaction):
        return EndTransactionReply(error, message, call.number)
    if isinstance(call, OffsetFetch):
        return OffsetFetchReply(error, message=message, number=call.number)
    if isinstance(call, OffsetCommit):
        partitions = [(each.topic, each.partition) for each in call.offsets]
        checked = [(each, _flaw_in_partition(*each, topics)) for each in partitions]
        verdicts = [PartitionVerdict(*each, flaw or error) for each, flaw in checked]
        return OffsetCommitReply(_unknown_first(verdicts), message, call.number, error)
    return OffsetDeleteReply(error, message=message, number=call.number)


def _unknown_first(verdicts: Iterable[PartitionVerdict]) -> tuple[PartitionVerdict, ...]:
    """Return verdicts in the order of a broker: unknown topics first."""
    return tuple(sorted(verdicts, key=lambda each: each.error is not UNKNOWN))


def commit_offsets(
    ledger: OffsetLedger, call: OffsetCommit, topics: Mapping[str, Topic] | None, now_ms: int
) -> OffsetReply:
    """Commit the valid ones of these offsets; `topics` are the cluster's, None: unknown.

    In a transaction they are pending until it ends. What is committed without one takes the place
    of what was pending, as at a broker, where the later of two offsets counts.
    """
    offsets: list[ConsumerOffset] = []
    verdicts: list[PartitionVerdict] = []
    for each in call.offsets:
        error = _find_flaw(each, topics)
        verdicts.append(PartitionVerdict(each.topic, each.partition, error))
        if error is Error.NONE:
            committed = each.topic, each.partition, each.offset, each.leader_epoch
            topic_id = topics[each.topic].topic_id if topics else ""
            offsets.append(ConsumerOffset(*committed, each.metadata or "", now_ms, topic_id))
    records: list[Record] = [*offsets]
    if (transaction := call.transaction) is None:
        records += _bury_pending(ledger, {(each.topic, each.partition) for each in offsets})
    else:
        at = transaction.producer_id, transaction.after, transaction.transactional_id
        records = [PendingOffset(each, *at) for each in offsets]
    try:
        ledger.write(records)
    except UnwritableRecordError as flaw:  # a name is not encodable
        return refuse_call(call, Error.INVALID_REQUEST, str(flaw))
    return OffsetCommitReply(_unknown_first(verdicts), number=call.number)


def _bury_pending(
    ledger: OffsetLedger, partitions: Collection[tuple[str, int]]
) -> Iterator[Tombstone]:
    """Yield the tombstones of what is pending of these partitions."""
    for each in ledger.pending_offsets():
        if (each.offset.topic, each.offset.partition) in partitions:
            yield Tombstone(PendingOffset, key_of(each))


def end_transaction(
    ledger: OffsetLedger, call: EndTransaction, topics: Mapping[str, Topic] | None
) -> EndTransactionReply:
    """Commit or drop what a transaction has left pending, except of topics that are gone.

    A marker that is read again finds nothing that it has ended.
    """
    ended = [
        each
        for each in ledger.pending_offsets()
        if each.producer_id == call.producer_id and each.after <= call.marker
    ]
    records: list[Record] = [Tombstone(PendingOffset, key_of(each)) for each in ended]
    if call.is_committed:
        ended.sort(key=lambda each: each.after)
        last = {(each.offset.topic, each.offset.partition): each.offset for each in ended}
        records += (each for each in last.values() if _is_there(each, topics))
    ledger.write(records)
    return EndTransactionReply(number=call.number)


def _is_there(offset: ConsumerOffset, topics: Mapping[str, Topic] | None) -> bool:
    """Return whether a topic has not been deleted; `topics` are those there are, None: unknown."""
    return topics is None or (offset.topic in topics and _is_current(offset, topics))


def _flaw_in_partition(
    name: str, partition: int, topics: Mapping[str, Topic] | None
) -> Error | None:
    """Return UNKNOWN_TOPIC_OR_PARTITION if the partition is invalid, or does not exist."""
    if not is_topic_name(name) or not 0 <= partition <= LARGEST_INT32:
        return UNKNOWN
    topic = None if topics is None else topics.get(name)
    is_missing = topics is not None and (topic is None or partition >= topic.partitions)
    return UNKNOWN if is_missing else None


def _find_flaw(offset: TopicOffset, topics: Mapping[str, Topic] | None) -> Error:
    """Return why an offset is not committed, or NONE."""
    if flaw := _flaw_in_partition(offset.topic, offset.partition, topics):
        return flaw
    # Kafka commits negative offsets as well: they are for the clients to understand.
    if abs(offset.offset) > LARGEST_EPOCH or not -1 <= offset.leader_epoch <= LARGEST_INT32:
        return Error.INVALID_REQUEST
    units = len((offset.metadata or "").encode("utf-16-le", errors="surrogatepass")) // 2
    return Error.OFFSET_METADATA_TOO_LARGE if units > LONGEST_METADATA else Error.NONE


def fetch_offsets(
    ledger: OffsetLedger, call: OffsetFetch, topics: Mapping[str, Topic] | None
) -> OffsetFetchReply:
    """Return committed offsets, except those of a deleted topic with the same name.

    `topics` are those of the cluster, None: unknown. Offsets of an unknown topic are returned.
    """
    topics = topics or {}
    if call.partitions is None:
        found = ledger.consumer_offsets()
        offsets = [_to_message(each) for each in found if _is_current(each, topics)]
    else:
        offsets = [_find(ledger, topics, *each) for each in _flatten(call.partitions)]
    if call.needs_stable and (pending := ledger.pending_offsets()):
        unstable = {(each.offset.topic, each.offset.partition) for each in pending}
        offsets = [_without(each, unstable) for each in offsets]
    return OffsetFetchReply(Error.NONE, tuple(offsets), number=call.number)


def _without(offset: TopicOffset, unstable: Collection[tuple[str, int]]) -> TopicOffset:
    """Return an offset, or an error in place of one that an open transaction may change."""
    partition = offset.topic, offset.partition
    if partition not in unstable:
        return offset
    return TopicOffset(*partition, error=Error.UNSTABLE_OFFSET_COMMIT)


def _flatten(partitions: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, int]]:
    return ((topic, number) for topic, numbers in partitions.items() for number in numbers)


def _find(
    ledger: OffsetLedger, topics: Mapping[str, Topic], topic: str, partition: int
) -> TopicOffset:
    found = ledger.consumer_offset(topic, partition) if is_topic_name(topic) else None
    if found is None or not _is_current(found, topics):
        return TopicOffset(topic, partition)
    return _to_message(found)


def _is_current(offset: ConsumerOffset, topics: Mapping[str, Topic]) -> bool:
    """Return whether an offset belongs to the current topic, not to a deleted one of that name."""
    topic = topics.get(offset.topic)
    return topic is None or offset.topic_id in {"", topic.topic_id}


def _to_message(found: ConsumerOffset) -> TopicOffset:
    partition = found.topic, found.partition
    return TopicOffset(*partition, found.offset, found.leader_epoch, found.metadata)


def delete_offsets(
    ledger: OffsetLedger,
    call: OffsetDelete,
    in_use: Collection[str],
    topics: Mapping[str, Topic] | None,
) -> OffsetDeleteReply:
    """Delete offsets, except those of topics that members subscribe to or that do not exist.

    `topics` are those of the cluster, None: unknown.
    """
    verdicts: list[PartitionVerdict] = []
    tombstones: list[Tombstone] = []
    for topic, partition in _flatten(call.partitions):
        error = _flaw_in_partition(topic, partition, topics) or Error.NONE
        if error is Error.NONE and topic in in_use:
            error = Error.GROUP_SUBSCRIBED_TO_TOPIC
        verdicts.append(PartitionVerdict(topic, partition, error))
        known = ledger.consumer_offset(topic, partition) if error is Error.NONE else None
        if known is not None:
            tombstones.append(Tombstone(ConsumerOffset, key_of(known)))
    deleted = {(each.topic, each.partition) for each in verdicts if each.error is Error.NONE}
    ledger.write([*tombstones, *_bury_pending(ledger, deleted)])
    return OffsetDeleteReply(Error.NONE, _unknown_first(verdicts), number=call.number)
