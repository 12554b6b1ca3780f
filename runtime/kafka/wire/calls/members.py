"""Translates JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members.

Fields that a version does not have get Kafka's defaults.
"""
# pyright: basic

from collections.abc import Sequence
from typing import Any, Final

from .....actors.messages.classic import (
    ClassicHeartbeat,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    SyncGroup,
    SyncGroupReply,
)
from .....actors.messages.errors import Error
from .....events.model import ClassicProtocol
from ..frames import Request, item_class, make
from ..terms import MS, NO_TIME, code

IDS_FIRST, NULLABLE_NAME, SKIPPING = 4, 7, 9
"""The first versions of JoinGroup in which: a new member gets its id before it joins; the protocol
name is nullable; the leader may be told to skip the assignment."""
LEAVERS: Final = 3
"""The first version of LeaveGroup with several members."""
PROTOCOL: Final = ("protocol_type", "protocol_name")
"""The fields of SyncGroup that are mandatory where a version has them, and yet may be null."""


def ask_to_join(request: Request, client_host: str) -> Sequence[JoinGroup]:
    """Translate a JoinGroup request."""
    message, version = request.message, request.head.version
    session_ms = message.session_timeout // MS
    rebalance = getattr(message, "rebalance_timeout", message.session_timeout)
    call = JoinGroup(
        message.group_id,
        message.member_id,
        message.protocol_type,
        tuple(ClassicProtocol(each.name, each.metadata) for each in message.protocols),
        session_ms,
        rebalance // MS,
        getattr(message, "group_instance_id", None),
        request.client_id,
        client_host,
        getattr(message, "reason", None) or "",
        asks_for_id=version >= IDS_FIRST,
        may_skip_assignment=version >= SKIPPING,
    )
    return [call]


def ask_to_sync(request: Request, _: str) -> Sequence[SyncGroup]:
    """Translate a SyncGroup request; one without its protocol is refused before any group is asked.

    Earlier versions have no field for it.
    """
    message = request.message
    names = [getattr(message, each) for each in PROTOCOL if hasattr(message, each)]
    if None in names:
        return []
    protocol_type, protocol = names or (None, None)
    call = SyncGroup(
        message.group_id,
        message.member_id,
        message.generation_id,
        getattr(message, "group_instance_id", None),
        protocol_type,
        protocol,
        {each.member_id: each.assignment for each in message.assignments},
    )
    return [call]


def ask_heartbeat(request: Request, _: str) -> Sequence[ClassicHeartbeat]:
    """Translate a Heartbeat request."""
    asked = request.message
    instance_id = getattr(asked, "group_instance_id", None)
    return [ClassicHeartbeat(asked.group_id, asked.member_id, asked.generation_id, instance_id)]


def ask_to_leave(request: Request, _: str) -> Sequence[LeaveGroup]:
    """Translate a LeaveGroup request."""
    asked = request.message
    leavers = getattr(asked, "members", (asked,))
    return [LeaveGroup(asked.group_id, tuple(map(_leaver, leavers)))]


def _leaver(leaver: Any) -> Leaver:
    instance_id, reason = (
        getattr(leaver, "group_instance_id", None),
        getattr(leaver, "reason", None),
    )
    return Leaver(leaver.member_id, instance_id, reason or "")


def answer_member(request: Request, kind: Any, replies: Sequence[Any]) -> Any:
    """Build the response to any of these requests."""
    reply = replies[0] if replies else SyncGroupReply(Error.INCONSISTENT_GROUP_PROTOCOL)
    version = request.head.version
    values = {"throttle_time": NO_TIME, "error_code": code(reply.error)}
    if isinstance(reply, JoinGroupReply):
        values |= _join_fields(kind, version, reply)
    elif isinstance(reply, SyncGroupReply):
        values |= {"protocol_type": reply.protocol_type, "protocol_name": reply.protocol}
        values |= {"assignment": reply.assignment}
    elif isinstance(reply, LeaveGroupReply):
        values |= _leave_fields(kind, version, reply)
    return make(kind, **values)


def _join_fields(kind: Any, version: int, reply: JoinGroupReply) -> dict[str, Any]:
    members = tuple(
        make(
            item_class(kind, "members"),
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            metadata=each.metadata,
        )
        for each in reply.members
    )
    return {
        "generation_id": reply.generation,
        "protocol_type": reply.protocol_type,
        "protocol_name": reply.protocol if version >= NULLABLE_NAME else reply.protocol or "",
        "leader": reply.leader,
        "skip_assignment": reply.skips_assignment,
        "member_id": reply.member_id,
        "members": members,
    }


def _leave_fields(kind: Any, version: int, reply: LeaveGroupReply) -> dict[str, Any]:
    if version < LEAVERS:
        return {"error_code": code(reply.leavers[0].error)} if reply.leavers else {}
    members = tuple(
        make(
            item_class(kind, "members"),
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            error_code=code(each.error),
        )
        for each in reply.leavers
    )
    return {"members": members}
