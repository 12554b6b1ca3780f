"""Describes one group, as a classic, consumer (KIP-848) or connect group.

DescribeGroups, ConsumerGroupDescribe and ConnectGroupDescribe each know only groups of their own
type, but for connect groups, which are described as Connect's as well; tools try several. The group
of a node's workers has no offsets, and holds connectors, so tools do not delete it.
"""

from dataclasses import replace
from typing import Final

from ...events.group import Group, Member
from ...events.model import CONNECT, GroupType
from ..classic.state import RoundPhase
from ..consumer.offsets.calls import fetch_offsets
from ..group.computing.elect import Electorate
from ..group.group_shard import GroupShard
from ..group.state.own_settings import describe_settings
from ..group.translation.outside import DESCRIBED_PROTOCOL, describe_worker
from ..messages.errors import Error
from ..messages.groups import (
    DescribeConnectGroup,
    DescribeConnectGroupReply,
    DescribeConsumerGroup,
    DescribeConsumerGroupReply,
    DescribedConsumer,
    DescribedWorker,
    DescribeGroup,
    DescribeGroupConfigs,
    DescribeGroupConfigsReply,
    DescribeGroupReply,
    HostReply,
    ListedGroup,
    ListGroups,
    ListGroupsReply,
    RemoveGroup,
)
from ..messages.offsets import OffsetCall, OffsetCommit, OffsetFetch
from .refusals import DEAD, refuse_host_call

CLASSIC, CONSUMER = "classic", "consumer"
DEFAULT_ASSIGNOR = "uniform"
"""The server assignor if no member names one."""


ToolCall = (
    ListGroups
    | DescribeGroup
    | DescribeConsumerGroup
    | DescribeConnectGroup
    | DescribeGroupConfigs
    | RemoveGroup
    | OffsetCall
)
"""What tools ask of the group of a node's workers that is answered without a decision."""

NOT_BY_TOOLS: Final = (
    "this is the group of fairlead's own workers: it has no offsets, and is deleted with its"
    " connectors by REST (DELETE /groups/{})"
)


def answer_tool(shard: GroupShard, call: ToolCall) -> HostReply:
    """Return the answer to a tool about the only group of a process, that of a node's workers."""
    group, exists = shard.group, shard.group.exists
    if isinstance(call, ListGroups):
        listed, configured = (list_group(shard),), (group.group_id,) if group.configs else ()
        return ListGroupsReply(listed if exists else (), number=call.number, configured=configured)
    if isinstance(call, DescribeGroupConfigs):
        soft = shard.state.soft
        found = describe_settings(soft.own, soft.node or soft.settings, group.configs)
        return DescribeGroupConfigsReply(Error.NONE, found, number=call.number)
    if isinstance(call, RemoveGroup | OffsetCall):
        return replace(_answer_change(shard, call), number=call.number)
    if not exists:
        reply = refuse_host_call(
            call, Error.GROUP_ID_NOT_FOUND, unknown_group_message(call.group_id)
        )
        assert isinstance(reply, Description)  # noqa: S101  # as the call asks for it
        return reply
    return replace(describe(shard, call), number=call.number)


def _answer_change(shard: GroupShard, call: RemoveGroup | OffsetCall) -> HostReply:
    """Refuse what tools may not do with the group; it has no offset to tell."""
    if isinstance(call, OffsetFetch):
        return fetch_offsets(shard.state.ledger, call, None)
    error, message = Error.INVALID_GROUP_ID, NOT_BY_TOOLS.format(call.group_id)
    if shard.group.members or not shard.classic.coordinator.is_empty:
        is_commit = isinstance(call, OffsetCommit)
        error = Error.UNKNOWN_MEMBER_ID if is_commit else Error.NON_EMPTY_GROUP
    reply = refuse_host_call(call, error, message)
    assert isinstance(reply, HostReply)  # noqa: S101  # as it is for these calls
    return reply


Description = DescribeGroupReply | DescribeConsumerGroupReply | DescribeConnectGroupReply


def describe(
    shard: GroupShard, call: DescribeGroup | DescribeConsumerGroup | DescribeConnectGroup
) -> Description:
    """Describe a group as it is asked for."""
    if isinstance(call, DescribeGroup):
        return describe_classic(shard)
    if isinstance(call, DescribeConsumerGroup):
        return describe_consumers(shard)
    return describe_workers(shard)


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
    preferred = Electorate.of(group).server_assignor(shard.state.soft.server_assignors)
    return DescribeConsumerGroupReply(
        Error.NONE,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        preferred or (group.target.assignor if group.members else "") or DEFAULT_ASSIGNOR,
        tuple(_describe_member(group, each) for _, each in sorted(group.members.items())),
        group.topics or {},
    )


def describe_workers(shard: GroupShard) -> DescribeConnectGroupReply:
    """Describe a connect group, with what each member may run, holds and is to have."""
    group = shard.group
    if not _is_of_workers(shard):
        message = f"Group {group.group_id} is not a connect group."
        return DescribeConnectGroupReply(Error.GROUP_ID_NOT_FOUND, message=message)
    return DescribeConnectGroupReply(
        Error.NONE,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        group.target.assignor if group.members else "",
        tuple(_describe_worker(group, each) for _, each in sorted(group.members.items())),
    )


def _describe_worker(group: Group, member: Member) -> DescribedWorker:
    metadata, current = member.metadata, member.current
    return DescribedWorker(
        member.member_id,
        current.member_epoch,
        metadata.instance_id,
        metadata.rack,
        metadata.client_id,
        metadata.client_host,
        metadata.url,
        frozenset(current.assigned),
        frozenset(current.assigned) | frozenset(current.pending),
        group.share_of(member.member_id),
        current.data,
        metadata.classic is not None,
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
