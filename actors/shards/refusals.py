"""Builds error replies for refused calls, for groups and for the host alike."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ..classic.refusals import refusal_of as refusal_of_classic
from ..consumer.offsets.calls import refuse_call
from ..messages.asks import MemberAsk, refuse_asked
from ..messages.classic import ClassicCall
from ..messages.computing import Install, InstallReply, Prepare, PrepareReply
from ..messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from ..messages.errors import Error
from ..messages.groups import (
    AlterGroupConfigs,
    AlterGroupConfigsReply,
    ConnectCall,
    ConnectReply,
    DescribeConnectGroup,
    DescribeConnectGroupReply,
    DescribeConsumerGroup,
    DescribeConsumerGroupReply,
    DescribeGroup,
    DescribeGroupConfigs,
    DescribeGroupConfigsReply,
    DescribeGroupReply,
    ListGroups,
    ListGroupsReply,
    ListTransactions,
    ListTransactionsReply,
    NodeCall,
    NodeReply,
    PackedCall,
    PackedReply,
    RemoveGroup,
    RemoveGroupReply,
    TellTopics,
    TellTopicsReply,
)
from ..messages.members import Heartbeat, HeartbeatReply
from ..messages.offsets import OffsetCall

DEAD = "Dead"
"""Kafka's state of an unknown group."""


def refuse_host_call(call: PackedCall, error: Error, message: str) -> PackedReply:
    """Return the error reply to a call, with the call's number."""
    if isinstance(call, OffsetCall):
        return refuse_call(call, error, message)
    if isinstance(call, ClassicCall):
        return replace(refusal_of_classic(call, error, message), number=call.number)
    return replace(REFUSALS[type(call)](call, error, message), number=call.number)


def _refuse_connect_call(
    request: Heartbeat | Prepare | Install | MemberAsk, error: Error, message: str
) -> ConnectReply:
    if isinstance(request, MemberAsk):
        return ConnectReply(refuse_asked(request.request, error, message))
    if isinstance(request, Heartbeat):
        sender = request.member_id, request.member_epoch, request.incarnation, request.sequence
        return ConnectReply(HeartbeatReply(error, *sender, message))
    kind = PrepareReply if isinstance(request, Prepare) else InstallReply
    return ConnectReply(kind(error, message))


REFUSALS: Final[Mapping[type, Callable[[Any, Error, str], PackedReply]]] = {
    ConnectCall: lambda call, error, message: _refuse_connect_call(call.request, error, message),
    ConsumerGroupHeartbeat: lambda _, error, message: ConsumerGroupHeartbeatReply(
        error, message=message
    ),
    NodeCall: lambda _, error, message: NodeReply(error=error, message=message),
    DescribeGroup: lambda _, error, message: DescribeGroupReply(error, DEAD, message=message),
    DescribeConsumerGroup: lambda _, error, message: DescribeConsumerGroupReply(
        error, message=message
    ),
    DescribeGroupConfigs: lambda _, error, message: DescribeGroupConfigsReply(
        error, message=message
    ),
    AlterGroupConfigs: lambda _, error, message: AlterGroupConfigsReply(error, message),
    DescribeConnectGroup: lambda _, error, message: DescribeConnectGroupReply(
        error, message=message
    ),
    RemoveGroup: lambda _, error, message: RemoveGroupReply(error, message),
    ListGroups: lambda _, error, message: ListGroupsReply((), error, message),
    ListTransactions: lambda _, error, message: ListTransactionsReply(frozenset(), error, message),
    TellTopics: lambda _, error, message: TellTopicsReply(error, message),
}
"""The error reply to each kind of call, but for classic ones and those about offsets."""
