"""Describes one group, as a classic group or as a consumer group (KIP-848).

DescribeGroups and ConsumerGroupDescribe each know only groups of their own type; tools try both.
"""

from dataclasses import replace

from ...events.group import Group, Member
from ...events.model import CONNECT, GroupType
from ..classic.state import RoundPhase
from ..consumer.decide import SERVER_ASSIGNORS
from ..group.computing.elect import Electorate
from ..group.group_shard import GroupShard
from ..group.translation.outside import DESCRIBED_PROTOCOL, describe_worker
from ..messages.errors import Error
from ..messages.groups import (
    DescribeConsumerGroup,
    DescribeConsumerGroupReply,
    DescribedConsumer,
    DescribeGroup,
    DescribeGroupReply,
    HostReply,
    ListedGroup,
    ListGroups,
    ListGroupsReply,
)
from .refusals import DEAD, refuse_host_call

CLASSIC, CONSUMER = "classic", "consumer"
DEFAULT_ASSIGNOR = "uniform"
"""The server assignor if no member names one."""


ReadCall = ListGroups | DescribeGroup | DescribeConsumerGroup
"""What tools ask about a group."""


def answer_tool(shard: GroupShard, call: ReadCall) -> HostReply:
    """Return the answer to a tool about the only group of a process."""
    exists = shard.group.exists
    if isinstance(call, ListGroups):
        return ListGroupsReply((list_group(shard),) if exists else (), number=call.number)
    if not exists:
        reply = refuse_host_call(
            call, Error.GROUP_ID_NOT_FOUND, unknown_group_message(call.group_id)
        )
        assert isinstance(reply, DescribeGroupReply | DescribeConsumerGroupReply)  # noqa: S101
        return reply
    describe = describe_classic if isinstance(call, DescribeGroup) else describe_consumers
    return replace(describe(shard), number=call.number)


def list_group(shard: GroupShard) -> ListedGroup:
    """Return the entry of a group in the list of groups."""
    group, classic = shard.group, shard.classic.coordinator
    if _is_of_consumers(shard):
        return ListedGroup(group.group_id, CONSUMER, group.state.value, CONSUMER)
    if _is_of_workers(shard):
        return ListedGroup(group.group_id, CONNECT, group.state.value, CONNECT)
    return ListedGroup(group.group_id, classic.protocol_type, classic.phase.value, CLASSIC)


def _is_of_consumers(shard: GroupShard) -> bool:
    """Return whether it is a KIP-848 consumer group, or was one before it became empty."""
    return shard.group.type is GroupType.CONSUMER and shard.classic.coordinator.is_unused


def _is_of_workers(shard: GroupShard) -> bool:
    """Return whether it is a connect group, or was one before it became empty."""
    is_of_connect = shard.kind.translation.protocol_type == CONNECT
    group = shard.group
    has_been = bool(group.members) or group.bump is not None
    return is_of_connect and has_been and group.type is GroupType.CONNECT


def unknown_group_message(group_id: str) -> str:
    """Return Kafka's message for an unknown group."""
    return f"Group {group_id} not found."


def describe_classic(shard: GroupShard) -> DescribeGroupReply:
    """Describe a classic group; during a rebalance without the former assignments."""
    group, classic = shard.group, shard.classic.coordinator
    if _is_of_consumers(shard):
        message = f"Group {group.group_id} is not a classic group."
        return DescribeGroupReply(Error.GROUP_ID_NOT_FOUND, DEAD, message=message)
    if _is_of_workers(shard):
        return _describe_workers(shard)
    last, is_stable = group.classic, classic.phase is RoundPhase.STABLE
    protocol = last.protocol if last and is_stable else None
    members = classic.members()
    if not is_stable:
        members = tuple(replace(each, protocols=(), assignment=b"") for each in members)
    fields = classic.phase.value, classic.protocol_type, protocol or ""
    return DescribeGroupReply(Error.NONE, *fields, members)


def _describe_workers(shard: GroupShard) -> DescribeGroupReply:
    """Describe a connect group as Kafka Connect's workers describe theirs, in their own bytes.

    The protocol is the newest one of Connect.
    """
    group = shard.group
    offset = shard.kind.translation.config_offset(group)
    members = tuple(describe_worker(each, offset) for _, each in sorted(group.members.items()))
    return DescribeGroupReply(Error.NONE, group.state.value, CONNECT, DESCRIBED_PROTOCOL, members)


def describe_consumers(shard: GroupShard) -> DescribeConsumerGroupReply:
    """Describe a consumer group, with the current and target assignment of each member."""
    group = shard.group
    if not _is_of_consumers(shard):
        message = f"Group {group.group_id} is not a consumer group."
        return DescribeConsumerGroupReply(Error.GROUP_ID_NOT_FOUND, message=message)
    preferred = Electorate.of(group).server_assignor(SERVER_ASSIGNORS)
    return DescribeConsumerGroupReply(
        Error.NONE,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        preferred or (group.target.assignor if group.members else "") or DEFAULT_ASSIGNOR,
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
