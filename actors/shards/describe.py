"""What people are told of one group: as one of classic members, or of consumers by KIP-848.

Each of the two calls knows groups of its own type alone; tools ask with one and then the other.
"""

from dataclasses import replace

from ...events.group import Group, Member
from ...events.model import GroupType
from ..classic.state import RoundPhase
from ..group.sides import Sides
from ..messages.errors import Error
from ..messages.groups import (
    DescribeConsumerGroupReply,
    DescribedConsumer,
    DescribeGroupReply,
    ListedGroup,
)
from .refusals import DEAD

CLASSIC, CONSUMER = "classic", "consumer"
DEFAULT_ASSIGNOR = "uniform"
"""What computes unless members name another."""


def list_group(sides: Sides) -> ListedGroup:
    """Return what a list of groups says of one."""
    group, classic = sides.group, sides.classic
    if _is_of_consumers(sides):
        return ListedGroup(group.group_id, CONSUMER, group.state.value, CONSUMER)
    return ListedGroup(group.group_id, classic.protocol_type, classic.phase.value, CLASSIC)


def _is_of_consumers(sides: Sides) -> bool:
    """Tell whether it is a group of consumers by KIP-848, or was one last."""
    return sides.group.type is GroupType.CONSUMER and sides.classic.is_unused


def say_unknown(group: Group) -> str:
    """Return that there is no such group, in Kafka's words."""
    return f"Group {group.group_id} not found."


def describe_classic(sides: Sides) -> DescribeGroupReply:
    """Tell of a group of classic members; what a round goes on in is told without what was."""
    group, classic = sides.group, sides.classic
    if _is_of_consumers(sides):
        message = f"Group {group.group_id} is not a classic group."
        return DescribeGroupReply(Error.GROUP_ID_NOT_FOUND, DEAD, message=message)
    last, is_stable = group.classic, classic.phase is RoundPhase.STABLE
    protocol = last.protocol if last and is_stable else None
    members = classic.members()
    if not is_stable:
        members = tuple(replace(each, protocols=(), assignment=b"") for each in members)
    told = classic.phase.value, classic.protocol_type, protocol or ""
    return DescribeGroupReply(Error.NONE, *told, members)


def describe_consumers(sides: Sides) -> DescribeConsumerGroupReply:
    """Tell of a group of consumers, with what each has and is to have."""
    group = sides.group
    if not _is_of_consumers(sides):
        message = f"Group {group.group_id} is not a consumer group."
        return DescribeConsumerGroupReply(Error.GROUP_ID_NOT_FOUND, message=message)
    return DescribeConsumerGroupReply(
        Error.NONE,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        group.target.assignor or DEFAULT_ASSIGNOR,
        tuple(_describe_member(group, each) for _, each in sorted(group.members.items())),
        group.topics or {},
    )


def _describe_member(group: Group, member: Member) -> DescribedConsumer:
    metadata = member.metadata
    subscription = group.subscriptions.get(member.member_id)
    return DescribedConsumer(
        member.member_id,
        member.current.member_epoch,
        metadata.instance_id,
        metadata.rack,
        metadata.client_id,
        metadata.client_host,
        subscription.names if subscription else (),
        subscription.pattern if subscription else "",
        frozenset(member.current.assigned),
        group.share_of(member.member_id),
        metadata.classic is not None,
    )
