"""Translates ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""
# pyright: basic

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from .....actors.messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    Partitions,
)
from .....actors.messages.groups import (
    DescribeConsumerGroup,
    DescribeConsumerGroupReply,
    DescribedConsumer,
)
from .....actors.messages.members import JOIN_EPOCH
from .....events.model import Resources
from .....events.records import Topic
from ..frames import Request, item_class, make
from ..terms import MS, NO_TIME, NOT_ASKED_FOR, code

OWN_IDS: Final = 1
"""The first version in which consumers generate their own ids."""
NO_ID: Final = UUID(int=0)
CLASSIC, MODERN = 0, 1
"""The member types in ConsumerGroupDescribe: classic and KIP-848 members."""


def ask_consumer_heartbeat(request: Request, client_host: str) -> Sequence[ConsumerGroupHeartbeat]:
    """Translate a ConsumerGroupHeartbeat request."""
    message = request.message
    names = message.subscribed_topic_names
    call = ConsumerGroupHeartbeat(
        message.group_id,
        message.member_id,
        message.member_epoch,
        message.instance_id,
        message.rack_id,
        message.rebalance_timeout // MS,
        None if names is None else tuple(names),
        getattr(message, "subscribed_topic_regex", None),
        message.server_assignor,
        _owned(message.topic_partitions),
        client_id=request.client_id,
        client_host=client_host,
        asks_for_id=request.head.version < OWN_IDS and message.member_epoch == JOIN_EPOCH,
    )
    return [call]


def _owned(topics: Iterable[Any] | None) -> Partitions | None:
    if topics is None:
        return None
    found: dict[str, list[int]] = {}
    for each in topics:
        found.setdefault((each.topic_id or NO_ID).hex, []).extend(each.partitions)
    return {topic_id: tuple(numbers) for topic_id, numbers in found.items()}


def answer_consumer(_: Request, kind: Any, replies: Sequence[ConsumerGroupHeartbeatReply]) -> Any:
    """Build the ConsumerGroupHeartbeat response."""
    (reply,) = replies
    assignment = None
    if reply.assignment is not None:
        assignment_class = item_class(kind, "assignment")
        item = item_class(assignment_class, "topic_partitions")
        topics = reply.assignment.items()
        assignment = make(
            assignment_class,
            topic_partitions=tuple(
                make(item, topic_id=UUID(topic_id), partitions=tuple(numbers))
                for topic_id, numbers in topics
            ),
        )
    return make(
        kind,
        throttle_time=timedelta(milliseconds=reply.throttle_time_ms),
        error_code=code(reply.error),
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval=timedelta(milliseconds=reply.heartbeat_interval_ms),
        assignment=assignment,
    )


def ask_to_describe(request: Request, _: str) -> Sequence[DescribeConsumerGroup]:
    """Translate a ConsumerGroupDescribe request into one call for each group."""
    return [DescribeConsumerGroup(group_id) for group_id in request.message.group_ids]


def answer_describe(
    request: Request, kind: Any, replies: Sequence[DescribeConsumerGroupReply]
) -> Any:
    """Build the ConsumerGroupDescribe response."""
    item = item_class(kind, "groups")
    groups = tuple(
        _describe(item, group_id, reply)
        for group_id, reply in zip(request.message.group_ids, replies, strict=True)
    )
    return make(kind, throttle_time=NO_TIME, groups=groups)


def _describe(kind: Any, group_id: str, reply: DescribeConsumerGroupReply) -> Any:
    member_class = item_class(kind, "members")
    return make(
        kind,
        error_code=code(reply.error),
        error_message=reply.message or None,
        group_id=group_id,
        group_state=reply.state,
        group_epoch=reply.group_epoch,
        assignment_epoch=reply.assignment_epoch,
        assignor_name=reply.assignor,
        members=tuple(_member(member_class, each, reply.topics) for each in reply.members),
        authorized_operations=NOT_ASKED_FOR,
    )


def _member(kind: Any, member: DescribedConsumer, topics: Mapping[str, Topic]) -> Any:
    return make(
        kind,
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.names,
        subscribed_topic_regex=member.pattern,
        assignment=_assignment(item_class(kind, "assignment"), member.assigned, topics),
        target_assignment=_assignment(item_class(kind, "target_assignment"), member.target, topics),
        member_type=CLASSIC if member.is_classic else MODERN,
    )


def _assignment(kind: Any, partitions: Resources, topics: Mapping[str, Topic]) -> Any:
    item = item_class(kind, "topic_partitions")
    numbers_by_topic: dict[str, list[int]] = {}
    for name, number in sorted(partitions):
        numbers_by_topic.setdefault(name, []).append(number)
    entries = tuple(
        make(
            item,
            topic_id=UUID(topics[name].topic_id) if name in topics else None,
            topic_name=name,
            partitions=tuple(numbers),
        )
        for name, numbers in numbers_by_topic.items()
    )
    return make(kind, topic_partitions=entries)
