"""What is told of groups of Kafka's clients alone: generations, members, topics, committed offsets.

The group carries what a leader of classic consumers assigns as bytes: they are read here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from ....actors.classic.bytes.consumer import decode_assignment
from ....actors.classic.bytes.primitives import UnreadableError
from ....actors.classic.embedded import CONSUMER
from ....actors.group.translation.connect import CONNECT_TRANSLATION
from ....events.group import Group
from ....events.kafka.consumers import ConsumerOffset
from ....events.model import (
    CONNECT,
    NOTHING,
    ClassicMember,
    GroupType,
    MemberState,
    Resource,
    Resources,
)
from ....events.records import ClassicGroup
from .node import GrantedResource, MemberDescription, id_of, resource_ids


class GenerationDescription(Struct, frozen=True):
    """A generation of a classic group."""

    generation: int
    cause: str
    subject: str
    time_ms: int
    protocol_type: str
    protocol: str | None
    leader: str
    members: list[str]
    """Their instance ids, or else their member ids."""


class TopicDescription(Struct, frozen=True):
    """A topic that a group of consumers shares out, or that its members give up."""

    name: str
    topic_id: str
    partitions: int
    is_released: bool
    """Whether members give it up."""


class SubscriptionDescription(Struct, frozen=True):
    """What a consumer wants to read."""

    member_id: str
    names: list[str]
    pattern: str
    """A regular expression of RE2; empty: there is none."""
    matched: list[str]
    """The topics that the pattern stands for."""


_Read = Callable[[ClassicGroup, ClassicMember], Iterable[Resource]]


class CommittedOffset(Struct, frozen=True):
    """How far a group has read a partition of a topic."""

    topic: str
    partition: int
    offset: int
    """That of the next record to be read."""
    leader_epoch: int
    metadata: str
    time_ms: int


def read_shares(record: ClassicGroup) -> Mapping[str, Resources] | None:
    """Return what a generation gives each consumer, or worker of Connect, by member id.

    None: they are neither. What nobody can read is nothing: their members could not either.
    """
    read = _READ.get(record.protocol_type)
    if read is None:
        return None
    return {each.member_id: _share_of(record, each, read) for each in record.members}


def _share_of(record: ClassicGroup, member: ClassicMember, read: _Read) -> Resources:
    try:
        return frozenset(read(record, member))
    except UnreadableError:
        return NOTHING


def _of_consumer(_: ClassicGroup, member: ClassicMember) -> Iterable[Resource]:
    return decode_assignment(member.assignment).partitions if member.assignment else ()


def _of_worker(record: ClassicGroup, member: ClassicMember) -> Iterable[Resource]:
    """Return what a worker runs by now: its leader tells it what comes, and what goes."""
    told = record.protocol or "", member, record.generation
    return CONNECT_TRANSLATION.held(*told).assigned


_READ: Final[Mapping[str, _Read]] = {CONSUMER: _of_consumer, CONNECT: _of_worker}
"""By protocol type."""


def describe_offsets(committed: Iterable[ConsumerOffset]) -> Iterator[CommittedOffset]:
    """Yield how far a group has read."""
    for each in committed:
        place = each.topic, each.partition, each.offset
        yield CommittedOffset(*place, each.leader_epoch, each.metadata, each.time_ms)


def describe_classic_members(group: Group) -> list[MemberDescription]:
    """Return the classic members of a group of Kafka's clients, with what they have."""
    last = group.classic
    if last is None:
        return []
    shares = read_shares(last) or {}
    return [
        MemberDescription(
            each.member_id,
            each.member_id,
            each.instance_id,
            None,
            [],
            1,
            (MemberState.STABLE.name if last.is_synced else "UNASSIGNED"),
            last.generation,
            [GrantedResource(*id_of(one), last.generation) for one in sorted(held)],
            [],
            resource_ids(held),
            [one.name for one in each.protocols],
            each.rebalance_timeout_ms,
            GroupType.CLASSIC.value,
            each.client_id,
            each.client_host,
        )
        for each in sorted(last.members, key=lambda each: each.member_id)
        for held in [shares.get(each.member_id, frozenset())]
    ]


def describe_topics(group: Group) -> Iterator[TopicDescription]:
    """Yield the topics that a group shares out, by name."""
    for name, topic in sorted((group.topics or {}).items()):
        yield TopicDescription(name, topic.topic_id, topic.partitions, topic.is_released)


def describe_subscriptions(group: Group) -> Iterator[SubscriptionDescription]:
    """Yield what consumers want to read, by member id."""
    for member_id, each in sorted(group.subscriptions.items()):
        yield SubscriptionDescription(member_id, [*each.names], each.pattern, [*each.matched])


def describe_generation(last: ClassicGroup) -> GenerationDescription:
    """Return a generation of classic members."""
    return GenerationDescription(
        last.generation,
        last.cause.why.value,
        last.cause.subject,
        last.time_ms,
        last.protocol_type,
        last.protocol,
        last.leader,
        sorted(each.instance_id or each.member_id for each in last.members),
    )
