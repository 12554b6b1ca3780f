"""Translates OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete.

From version 8 on, an OffsetFetch request has several groups, and becomes one call for each.
"""
# pyright: basic

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from .....actors.messages.errors import Error
from .....actors.messages.offsets import (
    NO_EPOCH,
    OffsetCommit,
    OffsetCommitReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    OpenTransaction,
    PartitionVerdict,
    TopicOffset,
)
from ..frames import Head, Request, item_class, make
from ..served import OFFSET_COMMIT, OFFSET_FETCH
from ..terms import NO_TIME, NO_TOPIC, NO_TOPIC_IDS, TopicIds, code

BY_TOPIC_ID: Final = {OFFSET_COMMIT: 10, OFFSET_FETCH: 10}
"""The first version of each API that calls topics by their ids."""
MANY_GROUPS: Final = 8
"""The first version of OffsetFetch with several groups."""
COUNTS_EPOCHS: Final = 9
"""The first version of OffsetCommit with member epochs."""
NAMES_MEMBER: Final = 3
"""The first version of TxnOffsetCommit with the member that has read."""
TELLS_OF_ALL: Final = 2
"""The first version with an error for the whole response, and with requests for all partitions."""


def ask_to_commit(request: Request, _: str) -> Sequence[OffsetCommit]:
    """Translate an OffsetCommit request."""
    message = request.message
    epoch = getattr(message, "generation_id_or_member_epoch", NO_EPOCH)
    instance_id = getattr(message, "group_instance_id", None)
    knows_epochs = request.head.version >= COUNTS_EPOCHS
    at = message.group_id, _offsets_in(request), message.member_id, epoch, instance_id
    return [OffsetCommit(*at, knows_epochs=knows_epochs)]


def ask_to_commit_in_transaction(request: Request, _: str) -> Sequence[OffsetCommit]:
    """Translate a TxnOffsetCommit request; up to version 2 no member is named."""
    message = request.message
    producer = message.transactional_id, message.producer_id, message.producer_epoch
    member_id, epoch, instance_id = "", NO_EPOCH, None
    if request.head.version >= NAMES_MEMBER:
        member_id, epoch = message.member_id, message.generation_id
        instance_id = message.group_instance_id
    at = message.group_id, _offsets_in(request), member_id, epoch, instance_id
    return [OffsetCommit(*at, transaction=OpenTransaction(*producer))]


def _offsets_in(request: Request) -> tuple[TopicOffset, ...]:
    return tuple(
        TopicOffset(
            _name_of(topic, request),
            each.partition_index,
            each.committed_offset,
            getattr(each, "committed_leader_epoch", -1),
            each.committed_metadata,
        )
        for topic in request.message.topics
        for each in topic.partitions
    )


def _name_of(topic: Any, request: Request) -> str:
    """Return the name of a topic in a request, which later versions call by its id."""
    return topic.name if hasattr(topic, "name") else request.topic_ids.name_of(topic.topic_id)


def unknown_topic_ids(request: Request) -> frozenset[str]:
    """Return the unknown topic ids that a request has, in the form of names."""
    if not has_topic_ids(request.head):
        return frozenset()
    asked = getattr(request.message, "groups", (request.message,))
    named = (_name_of(topic, request) for each in asked for topic in each.topics or ())
    return frozenset(each for each in named if each.startswith(NO_TOPIC))


def has_topic_ids(head: Head) -> bool:
    """Return whether a request calls topics by their ids."""
    return head.api in BY_TOPIC_ID and head.version >= BY_TOPIC_ID[head.api]


def answer_commit(request: Request, kind: Any, replies: Sequence[OffsetCommitReply]) -> Any:
    """Build the response to OffsetCommit and TxnOffsetCommit."""
    (reply,) = replies
    topics = _verdicts(kind, reply.verdicts, request.topic_ids)
    return make(kind, throttle_time=NO_TIME, topics=topics)


def _verdicts(
    kind: Any, verdicts: Iterable[PartitionVerdict], topic_ids: TopicIds = NO_TOPIC_IDS
) -> tuple[Any, ...]:
    return _by_topic(
        kind,
        verdicts,
        lambda item, each: make(
            item, partition_index=each.partition, error_code=_code(each.topic, each.error)
        ),
        topic_ids,
    )


def _code(topic: str, error: Error) -> ErrorCode:
    return code(Error.UNKNOWN_TOPIC_ID if topic.startswith(NO_TOPIC) else error)


def _by_topic(
    kind: Any,
    partitions: Iterable[Any],
    to_wire: Callable[[Any, Any], Any],
    topic_ids: TopicIds,
    names: Iterable[str] = (),
) -> tuple[Any, ...]:
    """Group partitions by topic, in their order, as the topics of a response of this class.

    The topics of these names are among them, first and also without a partition. Where the response
    has ids, a topic without one is left out, as by a broker.
    """
    topic_class = item_class(kind, "topics")
    partition_class = item_class(topic_class, "partitions")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for each in partitions:
        found.setdefault(each.topic, []).append(to_wire(partition_class, each))
    topics = [(name, topic_ids.id_of(name), entries) for name, entries in found.items()]
    if "topic_id" in topic_class.__dataclass_fields__:
        topics = [each for each in topics if each[1] is not None]
    return tuple(
        make(topic_class, name=name, topic_id=topic_id, partitions=tuple(entries))
        for name, topic_id, entries in topics
    )


def ask_to_fetch(request: Request, _: str) -> Sequence[OffsetFetch]:
    """Translate an OffsetFetch request into one call for each group."""
    asked = request.message
    needs_stable = getattr(asked, "require_stable", False)
    return [
        _fetch(each, request, needs_stable=needs_stable)
        for each in getattr(asked, "groups", (asked,))
    ]


def _fetch(asked: Any, request: Request, *, needs_stable: bool = False) -> OffsetFetch:
    member_id = getattr(asked, "member_id", None)
    epoch = getattr(asked, "member_epoch", NO_EPOCH)
    partitions = _partitions(asked.topics, request)
    return OffsetFetch(asked.group_id, partitions, member_id, epoch, needs_stable)


def _partitions(
    topics: Iterable[Any] | None, request: Request
) -> Mapping[str, tuple[int, ...]] | None:
    """Return the partition numbers by topic; a topic that occurs twice has the numbers of both."""
    if topics is None:
        return None
    found: dict[str, list[int]] = {}
    for each in topics:
        found.setdefault(_name_of(each, request), []).extend(each.partition_indexes)
    return {name: tuple(numbers) for name, numbers in found.items()}


def answer_fetch(request: Request, kind: Any, replies: Sequence[OffsetFetchReply]) -> Any:
    """Build the OffsetFetch response."""
    if request.head.version >= MANY_GROUPS:
        item, requested = item_class(kind, "groups"), request.message.groups
        groups = tuple(
            make(item, group_id=each.group_id, **_group_fields(item, reply, each, request))
            for each, reply in zip(requested, replies, strict=True)
        )
        return make(kind, throttle_time=NO_TIME, groups=groups)
    (reply,) = replies
    values = _group_fields(kind, reply, request.message, request)
    if request.head.version < TELLS_OF_ALL and reply.error is not Error.NONE:
        requested = _fetch(request.message, request).partitions or {}
        values["topics"] = _offsets(kind, _without_offsets(requested, reply.error), request)
    return make(kind, throttle_time=NO_TIME, **values)


def _group_fields(
    kind: Any, reply: OffsetFetchReply, asked: Any, request: Request
) -> dict[str, Any]:
    has_names = reply.error is Error.NONE
    names = [_name_of(each, request) for each in asked.topics or ()] if has_names else ()
    shown = [each for each in names if each not in reply.denied]
    denied = _without_offsets(reply.denied, Error.TOPIC_AUTHORIZATION_FAILED)
    topics = _offsets(kind, reply.offsets, request, shown) + _offsets(kind, denied, request)
    return {"topics": topics, "error_code": code(reply.error)}


def _without_offsets(
    partitions: Mapping[str, tuple[int, ...]], error: Error
) -> Iterator[TopicOffset]:
    for topic, numbers in partitions.items():
        for each in numbers:
            yield TopicOffset(topic, each, error=error)


def _offsets(
    kind: Any, offsets: Iterable[TopicOffset], request: Request, names: Iterable[str] = ()
) -> tuple[Any, ...]:
    """Return offsets by topic; `names` are those asked for, also without any partition."""
    return _by_topic(
        kind,
        offsets,
        lambda item, each: make(
            item,
            partition_index=each.partition,
            committed_offset=each.offset,
            committed_leader_epoch=each.leader_epoch,
            metadata=each.metadata or "",
            error_code=_code(each.topic, each.error),
        ),
        request.topic_ids,
        names,
    )


def ask_to_forget(request: Request, _: str) -> Sequence[OffsetDelete]:
    """Translate an OffsetDelete request."""
    asked = request.message
    found: dict[str, list[int]] = {}
    for topic in asked.topics:
        found.setdefault(topic.name, []).extend(each.partition_index for each in topic.partitions)
    return [OffsetDelete(asked.group_id, {name: tuple(each) for name, each in found.items()})]


def answer_forget(_: Request, kind: Any, replies: Sequence[OffsetDeleteReply]) -> Any:
    """Build the OffsetDelete response, with an error for each partition or for all."""
    (reply,) = replies
    topics = _verdicts(kind, reply.verdicts)
    return make(kind, throttle_time=NO_TIME, error_code=code(reply.error), topics=topics)
