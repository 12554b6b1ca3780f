"""Validates ConsumerGroupHeartbeat, and converts it and its reply from and to those of any group.

Requests are validated as by a Kafka broker, with the same errors in the same order. This does not
depend on the group.
"""

from collections.abc import Collection, Mapping
from typing import Final

from ...events.model import LONGEST_TOPIC, Resource, is_topic_name
from ...events.records import Topic
from ..messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    Partitions,
    Subscribed,
)
from ..messages.errors import SUCCESS, Error, listing
from ..messages.members import JOIN_EPOCH, TEMPORARY_LEAVE_EPOCH, Heartbeat, HeartbeatReply

MOST_TOPICS: Final = 10_000
"""The maximum number of topics in a subscription, and of topics with owned partitions."""

MOST_PARTITIONS: Final = 100_000
"""The maximum number of owned partitions."""

Refusal = tuple[Error, str]


def refuse_request(request: ConsumerGroupHeartbeat, assignors: Collection[str]) -> Refusal | None:
    """Return the error of an invalid request, None if it is valid."""
    found = _flaw_in_ids(request) or _flaw_in_epoch(request) or _flaw_in_size(request)
    if found:
        return Error.INVALID_REQUEST, f"{found}; nothing was changed"
    named = request.server_assignor
    if named is not None and named not in assignors:
        known = listing(assignors, " or ", " or ")
        return (
            Error.UNSUPPORTED_ASSIGNOR,
            f"there is no server assignor {named[:40]!a}: name {known}",
        )
    return None


def _flaw_in_ids(request: ConsumerGroupHeartbeat) -> str:
    if not request.group_id.strip():
        return "GroupId is empty: name the group"
    if not request.member_id and not request.asks_for_id:
        return "MemberId is empty: make one, and keep it while the process lives"
    if request.instance_id == "":
        return "InstanceId is empty: leave it out, or give it a value"
    return "RackId is empty: leave it out, or give it a value" if request.rack_id == "" else ""


def _flaw_in_epoch(request: ConsumerGroupHeartbeat) -> str:
    epoch = request.member_epoch
    if epoch < TEMPORARY_LEAVE_EPOCH:
        return f"MemberEpoch is {epoch}: it must be -2 or more"
    if epoch == TEMPORARY_LEAVE_EPOCH and request.instance_id is None:
        return "a temporary leave (epoch -2) needs an InstanceId: send it, or leave with epoch -1"
    return _flaw_in_join(request) if epoch == JOIN_EPOCH else ""


def _flaw_in_join(request: ConsumerGroupHeartbeat) -> str:
    if request.rebalance_timeout_ms == -1:
        return "a join (epoch 0) needs a RebalanceTimeoutMs"
    if request.topic_partitions is None or request.topic_partitions:
        return "a join (epoch 0) must say that it owns nothing: TopicPartitions present and empty"
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "a join (epoch 0) needs a subscription: SubscribedTopicNames, or a regex"
    return ""


def _flaw_in_size(request: ConsumerGroupHeartbeat) -> str:
    names, owned = request.subscribed_topic_names or (), request.topic_partitions or {}
    if max(len(names), len(owned)) > MOST_TOPICS:
        return f"more than {MOST_TOPICS} topics are named: subscribe by a regex"
    if sum(map(len, owned.values())) > MOST_PARTITIONS:
        return f"more than {MOST_PARTITIONS} partitions are owned"
    if not all(map(is_topic_name, (*names, *owned))):
        return f"a topic is empty, longer than {LONGEST_TOPIC} characters, or not encodable"
    return ""


def as_heartbeat(
    request: ConsumerGroupHeartbeat, topics: Mapping[str, Topic], matched: tuple[str, ...]
) -> Heartbeat:
    """Convert a request to a heartbeat of any group; `topics` are those of the group."""
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    has_subscription = names is not None or pattern is not None
    leaves = request.member_epoch < JOIN_EPOCH  # it has revoked the partitions that it names
    return Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        instance_id=request.instance_id,
        rack=request.rack_id,
        client_id=request.client_id or None,
        client_host=request.client_host or None,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        server_assignor=request.server_assignor,
        owned=None if leaves else _owned(request.topic_partitions, topics),
        subscription=Subscribed(names, pattern, matched) if has_subscription else None,
    )


def _owned(
    partitions: Partitions | None, topics: Mapping[str, Topic]
) -> tuple[Resource, ...] | None:
    """Return owned partitions; if the group does not know a topic, its id serves as its name."""
    if partitions is None:
        return None
    names = {topic.topic_id: name for name, topic in topics.items()} if partitions else {}
    return tuple(
        Resource(names.get(topic_id, topic_id), number)
        for topic_id, numbers in partitions.items()
        for number in numbers
    )


def as_reply(
    reply: HeartbeatReply, topics: Mapping[str, Topic], number: int
) -> ConsumerGroupHeartbeatReply:
    """Convert a reply to Kafka's; with an error it has no member id, as on a broker."""
    if reply.error not in SUCCESS:
        return ConsumerGroupHeartbeatReply(reply.error, message=reply.message, number=number)
    partitions: dict[str, tuple[int, ...]] | None = None
    if reply.assignment is not None:
        numbers: dict[str, list[int]] = {}
        for name, partition in sorted(reply.assignment):
            if (topic := topics.get(name)) is not None:
                numbers.setdefault(topic.topic_id, []).append(partition)
        partitions = {topic_id: tuple(each) for topic_id, each in numbers.items()}
    return ConsumerGroupHeartbeatReply(
        reply.error,
        reply.member_id,
        reply.member_epoch,
        reply.heartbeat_interval_ms,
        reply.throttle_time_ms,
        partitions,
        number=number,
    )
