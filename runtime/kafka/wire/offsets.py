"""Translates OffsetCommit, OffsetFetch and OffsetDelete.

From version 8 on, an OffsetFetch request has several groups, and becomes one call for each.
"""
# pyright: basic

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ....actors.messages.errors import Error
from ....actors.messages.offsets import (
    NO_EPOCH,
    OffsetCommit,
    OffsetCommitReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    PartitionVerdict,
    TopicOffset,
)
from .frames import Request, item_class, make
from .terms import NO_TIME, code

MANY_GROUPS: Final = 8
"""The first version of OffsetFetch with several groups."""
COUNTS_EPOCHS: Final = 9
"""The first version of OffsetCommit with member epochs."""
TELLS_OF_ALL: Final = 2
"""The first version with an error for the whole response, and with requests for all partitions."""


def ask_to_commit(request: Request, _: str) -> Sequence[OffsetCommit]:
    """Translate an OffsetCommit request."""
    message = request.message
    offsets = (
        TopicOffset(
            topic.name,
            each.partition_index,
            each.committed_offset,
            getattr(each, "committed_leader_epoch", -1),
            each.committed_metadata,
        )
        for topic in message.topics
        for each in topic.partitions
    )
    epoch = getattr(message, "generation_id_or_member_epoch", NO_EPOCH)
    instance_id = getattr(message, "group_instance_id", None)
    knows_epochs = request.head.version >= COUNTS_EPOCHS
    at = message.group_id, tuple(offsets), message.member_id, epoch, instance_id
    return [OffsetCommit(*at, knows_epochs=knows_epochs)]


def answer_commit(_: Request, kind: Any, replies: Sequence[OffsetCommitReply]) -> Any:
    """Build the OffsetCommit response."""
    (reply,) = replies
    return make(kind, throttle_time=NO_TIME, topics=_verdicts(kind, reply.verdicts))


def _verdicts(kind: Any, verdicts: Iterable[PartitionVerdict]) -> tuple[Any, ...]:
    return _by_topic(
        kind,
        verdicts,
        lambda item, each: make(item, partition_index=each.partition, error_code=code(each.error)),
    )


def _by_topic(
    kind: Any,
    partitions: Iterable[Any],
    to_wire: Callable[[Any, Any], Any],
    names: Iterable[str] = (),
) -> tuple[Any, ...]:
    """Group partitions by topic, in their order, as the topics of a response of this class.

    The topics of these names are among them, first and also without a partition.
    """
    topic_class = item_class(kind, "topics")
    partition_class = item_class(topic_class, "partitions")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for each in partitions:
        found.setdefault(each.topic, []).append(to_wire(partition_class, each))
    topics = found.items()
    return tuple(
        make(topic_class, name=name, partitions=tuple(entries)) for name, entries in topics
    )


def ask_to_fetch(request: Request, _: str) -> Sequence[OffsetFetch]:
    """Translate an OffsetFetch request into one call for each group."""
    asked = request.message
    return [_fetch(each) for each in getattr(asked, "groups", (asked,))]


def _fetch(asked: Any) -> OffsetFetch:
    member_id = getattr(asked, "member_id", None)
    epoch = getattr(asked, "member_epoch", NO_EPOCH)
    return OffsetFetch(asked.group_id, _partitions(asked.topics), member_id, epoch)


def _partitions(topics: Iterable[Any] | None) -> Mapping[str, tuple[int, ...]] | None:
    """Return the partition numbers by topic; a topic that occurs twice has the numbers of both."""
    if topics is None:
        return None
    found: dict[str, list[int]] = {}
    for each in topics:
        found.setdefault(each.name, []).extend(each.partition_indexes)
    return {name: tuple(numbers) for name, numbers in found.items()}


def answer_fetch(request: Request, kind: Any, replies: Sequence[OffsetFetchReply]) -> Any:
    """Build the OffsetFetch response."""
    if request.head.version >= MANY_GROUPS:
        item, requested = item_class(kind, "groups"), request.message.groups
        groups = tuple(
            make(item, group_id=each.group_id, **_group_fields(item, reply, each))
            for each, reply in zip(requested, replies, strict=True)
        )
        return make(kind, throttle_time=NO_TIME, groups=groups)
    (reply,) = replies
    values = _group_fields(kind, reply, request.message)
    if request.head.version < TELLS_OF_ALL and reply.error is not Error.NONE:
        requested = _fetch(request.message).partitions or {}
        partitions = (
            TopicOffset(name, each) for name, numbers in requested.items() for each in numbers
        )
        values["topics"] = _offsets(kind, partitions, reply.error)
    return make(kind, throttle_time=NO_TIME, **values)


def _group_fields(kind: Any, reply: OffsetFetchReply, asked: Any) -> dict[str, Any]:
    has_names = reply.error is Error.NONE
    names = [each.name for each in asked.topics or ()] if has_names else ()
    topics = _offsets(
        kind, reply.offsets, Error.NONE, [each for each in names if each not in reply.denied]
    )
    denied = (TopicOffset(topic, each) for topic in reply.denied for each in reply.denied[topic])
    topics += _offsets(kind, denied, Error.TOPIC_AUTHORIZATION_FAILED)
    return {"topics": topics, "error_code": code(reply.error)}


def _offsets(
    kind: Any, offsets: Iterable[TopicOffset], error: Error, names: Iterable[str] = ()
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
            error_code=code(error),
        ),
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
