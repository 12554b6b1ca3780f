"""Describes the log records of groups of Kafka clients, each in one line."""

from .....events.kafka.consumers import ConsumerOffset, ConsumerSubscription, SubscribedTopics
from .....events.model import ClassicMember
from .....events.records import ClassicGroup
from ...replies.building.clients import read_shares
from .names import MemberNames
from .phrases import format_resource_set


def generation(names: MemberNames, record: ClassicGroup) -> str:
    """Describe a generation of classic members, and the assignment by its leader."""
    cause = names.cause(record.cause.why.value, record.cause.subject)
    subject = f"classic generation {record.generation}: {cause}"
    if not record.members:
        return f"{subject}; nobody is in it"
    told = ", ".join(sorted(_seat(names, each) for each in record.members))
    if record.is_synced and (given := read_shares(record)) is not None:
        shares = (
            f"{_seat(names, each)} = {format_resource_set(given[each.member_id])}"
            for each in record.members
        )
        told = "; ".join(sorted(shares))
    phase = "assigned" if record.is_synced else "to be assigned"
    led = f"led by {names.full_name(record.leader)}"
    return f"{subject}; {record.protocol_type} {record.protocol}, {led}, {phase}: {told}"


def _seat(names: MemberNames, member: ClassicMember) -> str:
    name = names.full_name(member.member_id)
    return name if name != member.member_id else member.instance_id or name


def topics(record: SubscribedTopics) -> str:
    """Describe the topics that a group reads."""
    told = (
        f"{name} ({'given up' if each.is_released else each.partitions})"
        for name, each in sorted(record.topics.items())
    )
    return f"topics, with their partitions: {', '.join(told) or 'none'}"


def subscription(names: MemberNames, record: ConsumerSubscription) -> str:
    """Describe the subscription of a consumer."""
    pattern = f", {record.pattern!r}: {', '.join(record.matched)}" if record.pattern else ""
    by_name = ", ".join(record.names) or "no topic by name"
    return f"{names.short_name(record.member_id)} subscribes to {by_name}{pattern}"


def read_offset(record: ConsumerOffset) -> str:
    """Describe the committed offset of a partition."""
    note = f", {record.metadata!r}" if record.metadata else ""
    return f"{record.topic}-{record.partition} is read up to {record.offset}{note}"
