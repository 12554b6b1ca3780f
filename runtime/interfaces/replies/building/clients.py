"""Builds replies about groups of Kafka clients from their state.

A group stores the assignments of a classic leader as opaque bytes; they are decoded here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from .....actors.classic.bytes.consumer import decode_assignment
from .....actors.classic.bytes.primitives import UnreadableError
from .....actors.classic.embedded import CONSUMER
from .....events.commits import ConsumerOffset
from .....events.group import Group
from .....events.model import (
    CONNECT,
    NOTHING,
    ClassicMember,
    GroupType,
    MemberState,
    Resource,
    Resources,
)
from .....events.records import ClassicGroup
from ..groups import (
    CommittedOffset,
    GenerationDescription,
    SubscriptionDescription,
    TopicDescription,
)
from ..node import GrantedResource, MemberDescription
from .node import id_of, resource_ids

_Read = Callable[[ClassicGroup, ClassicMember], Iterable[Resource]]


def read_shares(record: ClassicGroup) -> Mapping[str, Resources] | None:
    """Return the assignment of each consumer or Connect worker in a generation, by member id.

    None for other protocol types. Undecodable bytes count as an empty assignment.
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
    """Return what a worker runs now: its leader's assignment with assigned and revoked parts."""
    # A command that only reads starts in half the time without what computes assignments.
    from .....actors.group.translation.connect import CONNECT_TRANSLATION  # noqa: PLC0415

    return CONNECT_TRANSLATION.held_resources(
        record.protocol or "", member, record.generation
    ).assigned


_READ: Final[Mapping[str, _Read]] = {CONSUMER: _of_consumer, CONNECT: _of_worker}
"""Decoders of assignments, by protocol type."""


def owners_of_partitions(group: Group) -> Mapping[Resource, str]:
    """Return the member id of the owner of each partition; "" for those that no member has.

    What is assigned to members that are no consumers are no partitions.
    """
    if group.type is GroupType.CONNECT:
        return {}
    if group.classic is None:
        return {each: group.owner.get(each, "") for each in group.configured}
    is_of_consumers = group.classic.protocol_type == CONSUMER
    shares = (read_shares(group.classic) or {}) if is_of_consumers else {}
    return {each: member_id for member_id, held in shares.items() for each in held}


def describe_offsets(committed: Iterable[ConsumerOffset]) -> Iterator[CommittedOffset]:
    """Yield the committed offsets of a group as replies."""
    for each in committed:
        place = each.topic, each.partition, each.offset
        yield CommittedOffset(*place, each.leader_epoch, each.metadata, each.time_ms)


def describe_classic_members(group: Group) -> list[MemberDescription]:
    """Return the classic members of a group of Kafka clients, with their assignments."""
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
    """Yield the topics that a group reads, ordered by name."""
    for name, topic in sorted((group.topics or {}).items()):
        yield TopicDescription(name, topic.topic_id, topic.partitions, topic.is_released)


def describe_subscriptions(group: Group) -> Iterator[SubscriptionDescription]:
    """Yield the subscriptions of consumers, ordered by member id."""
    for member_id, each in sorted(group.subscriptions.items()):
        yield SubscriptionDescription(member_id, [*each.names], each.pattern, [*each.matched])


def describe_generation(last: ClassicGroup) -> GenerationDescription:
    """Return a generation of a classic group as a reply."""
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
