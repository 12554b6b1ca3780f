"""Executes OffsetCommit, OffsetFetch and OffsetDelete on a group's offset log."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from ....events.catalogue import key_of
from ....events.commits import ConsumerOffset
from ....events.entries.codec import UnwritableRecordError
from ....events.group import LARGEST_EPOCH
from ....events.model import is_topic_name
from ....events.records import Tombstone, Topic
from ...group.members.commit import OffsetLedger
from ...messages.errors import Error
from ...messages.offsets import (
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
    """Commit the valid ones of these offsets; `topics` are the cluster's, None: unknown."""
    records: list[ConsumerOffset] = []
    verdicts: list[PartitionVerdict] = []
    for each in call.offsets:
        error = _find_flaw(each, topics)
        verdicts.append(PartitionVerdict(each.topic, each.partition, error))
        if error is Error.NONE:
            committed = each.topic, each.partition, each.offset, each.leader_epoch
            topic_id = topics[each.topic].topic_id if topics else ""
            records.append(ConsumerOffset(*committed, each.metadata or "", now_ms, topic_id))
    try:
        ledger.write(records)
    except UnwritableRecordError as flaw:  # a name is not encodable
        return refuse_call(call, Error.INVALID_REQUEST, str(flaw))
    return OffsetCommitReply(_unknown_first(verdicts), number=call.number)


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
        offsets = tuple(_to_message(each) for each in found if _is_current(each, topics))
    else:
        offsets = tuple(_find(ledger, topics, *each) for each in _flatten(call.partitions))
    return OffsetFetchReply(Error.NONE, offsets, number=call.number)


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
    ledger.write(tombstones)
    return OffsetDeleteReply(Error.NONE, _unknown_first(verdicts), number=call.number)
