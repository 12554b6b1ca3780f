"""Builds error replies for refused calls, for groups and for the host alike."""

from dataclasses import replace
from typing import Final

from ..classic.refusals import refusal_of as refusal_of_classic
from ..consumer.offsets.calls import refuse_call
from ..messages.classic import ClassicCall, JoinGroup
from ..messages.computing import InstallReply, Prepare, PrepareReply
from ..messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from ..messages.errors import Error
from ..messages.groups import (
    ConnectCall,
    ConnectReply,
    DescribeConsumerGroup,
    DescribeConsumerGroupReply,
    DescribeGroup,
    DescribeGroupReply,
    HostCall,
    HostReply,
    ListGroups,
    ListGroupsReply,
    RemoveGroup,
    RemoveGroupReply,
    SharedCall,
    TellTopicsReply,
)
from ..messages.members import JOIN_EPOCH, Heartbeat, HeartbeatReply
from ..messages.offsets import OffsetCall

LONGEST_IDS: Final = 440
"""The maximum total length of group id and member id in bytes: together they are log keys."""
DEAD = "Dead"
"""Kafka's state of an unknown group."""


def refuse_host_call(call: HostCall, error: Error, message: str) -> HostReply:
    """Return the error reply to a call, with the call's number."""
    if isinstance(call, OffsetCall):
        return refuse_call(call, error, message)
    reply: HostReply
    if isinstance(call, ClassicCall):
        reply = refusal_of_classic(call, error, message)
    elif isinstance(call, ConsumerGroupHeartbeat):
        reply = ConsumerGroupHeartbeatReply(error, message=message)
    elif isinstance(call, DescribeGroup):
        reply = DescribeGroupReply(error, DEAD, message=message)
    elif isinstance(call, DescribeConsumerGroup):
        reply = DescribeConsumerGroupReply(error, message=message)
    elif isinstance(call, RemoveGroup):
        reply = RemoveGroupReply(error, message)
    elif isinstance(call, ListGroups):
        reply = ListGroupsReply((), error, message)
    else:
        reply = TellTopicsReply(error, message)
    return replace(reply, number=call.number)


def refuse_connect_call(call: ConnectCall, error: Error, message: str) -> ConnectReply:
    """Return the error reply to a call of the workers' group."""
    asked = call.request
    if isinstance(asked, Heartbeat):
        asked_by = asked.member_id, asked.member_epoch, asked.incarnation, asked.sequence
        return ConnectReply(HeartbeatReply(error, *asked_by, message))
    kind = PrepareReply if isinstance(asked, Prepare) else InstallReply
    return ConnectReply(kind(error, message))


def flaw_in_ids(call: SharedCall) -> str:
    """Return an error if the ids of a joining member are too long for a log key; "" if not."""
    if not isinstance(call, JoinGroup | ConsumerGroupHeartbeat):
        return ""
    if isinstance(call, ConsumerGroupHeartbeat) and call.member_epoch != JOIN_EPOCH:
        return ""
    names = call.member_id, call.instance_id or "", call.client_id
    longest = max(len(each.encode(errors="surrogatepass")) for each in names)
    if longest + len(call.group_id.encode(errors="surrogatepass")) <= LONGEST_IDS:
        return ""
    return f"the ids of the group and of the member have more than {LONGEST_IDS} bytes together"
