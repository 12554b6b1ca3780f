"""Group calls of the wire as those of our groups, and the groups' answers as those of the wire.

A request may ask for several groups (describe, delete): then there is a call for each, and one
answer of all replies. What a version lacks is at the default that Kafka gives it.
"""
# pyright: basic

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from kio.schema.errors import ErrorCode

from ...actors.messages.classic import (
    ClassicHeartbeat,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    SyncGroup,
    SyncGroupReply,
)
from ...actors.messages.errors import MEANINGS, Error
from ...actors.messages.groups import (
    DescribeGroup,
    DescribeGroupReply,
    HostCall,
    ListGroups,
    ListGroupsReply,
    RemoveGroup,
)
from ...events.model import ClassicMember, ClassicProtocol
from .frames import Request, item_class, make, response_class
from .served import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    SYNC_GROUP,
)

MS: Final = timedelta(milliseconds=1)
NO_TIME: Final = timedelta()
IDS_FIRST, NULLABLE_NAME, SKIPPING = 4, 7, 9
"""Versions of JoinGroup: a newcomer is told its id first; no protocol may be null; who leads may
be told to assign nothing."""
LEAVERS: Final = 3
"""The version from which on a LeaveGroup may name several members."""
TELLS_ABSENT: Final = 6
"""The version from which on DescribeGroups says that there is no such group."""
NOT_ASKED_FOR: Final = -(1 << 31)
"""What the authorized operations are where nobody asked for them."""


def calls_of(request: Request, client_host: str) -> Sequence[HostCall]:
    """Return what a request asks of groups."""
    told, api = request.message, request.head.api
    if api == JOIN_GROUP:
        return [_join(request, client_host)]
    if api == DESCRIBE_GROUPS:
        return [DescribeGroup(group_id) for group_id in told.groups]
    if api == DELETE_GROUPS:
        return [RemoveGroup(group_id) for group_id in told.groups_names]
    return [_ONE_CALL[api](told)]


def _join(request: Request, client_host: str) -> JoinGroup:
    told, version = request.message, request.head.version
    session_ms = told.session_timeout // MS
    rebalance = getattr(told, "rebalance_timeout", told.session_timeout)
    return JoinGroup(
        told.group_id,
        told.member_id,
        told.protocol_type,
        tuple(ClassicProtocol(each.name, each.metadata) for each in told.protocols),
        session_ms,
        rebalance // MS,
        getattr(told, "group_instance_id", None),
        request.client_id,
        client_host,
        getattr(told, "reason", None) or "",
        asks_for_id=version >= IDS_FIRST,
        may_skip_assignment=version >= SKIPPING,
    )


def _sync(told: Any) -> SyncGroup:
    return SyncGroup(
        told.group_id,
        told.member_id,
        told.generation_id,
        getattr(told, "group_instance_id", None),
        getattr(told, "protocol_type", None),
        getattr(told, "protocol_name", None),
        {each.member_id: each.assignment for each in told.assignments},
    )


def _heartbeat(told: Any) -> ClassicHeartbeat:
    instance_id = getattr(told, "group_instance_id", None)
    return ClassicHeartbeat(told.group_id, told.member_id, told.generation_id, instance_id)


def _leave(told: Any) -> LeaveGroup:
    leavers = getattr(told, "members", (told,))
    return LeaveGroup(told.group_id, tuple(map(_leaver, leavers)))


def _leaver(told: Any) -> Leaver:
    instance_id, reason = getattr(told, "group_instance_id", None), getattr(told, "reason", None)
    return Leaver(told.member_id, instance_id, reason or "")


_ONE_CALL: Final[Mapping[int, Callable[[Any], HostCall]]] = {
    HEARTBEAT: _heartbeat,
    LEAVE_GROUP: _leave,
    LIST_GROUPS: lambda _: ListGroups(),
    SYNC_GROUP: _sync,
}


def answer_of(request: Request, replies: Sequence[Any]) -> Any:
    """Return the answer to a request, given the groups' replies in the order of its calls."""
    api, version, _ = request.head
    kind = response_class(api, version)
    if api == LIST_GROUPS:
        return _listed(kind, request.message, replies)
    if api == DESCRIBE_GROUPS:
        asked = zip(request.message.groups, replies, strict=True)
        groups = tuple(_described(kind, version, group_id, reply) for group_id, reply in asked)
        return make(kind, throttle_time=NO_TIME, groups=groups)
    if api == DELETE_GROUPS:
        item, asked = item_class(kind, "results"), request.message.groups_names
        results = tuple(
            make(item, group_id=group_id, error_code=code(reply.error))
            for group_id, reply in zip(asked, replies, strict=True)
        )
        return make(kind, throttle_time=NO_TIME, results=results)
    (reply,) = replies
    told = {"throttle_time": NO_TIME, "error_code": code(reply.error)}
    if isinstance(reply, JoinGroupReply):
        told |= _joined(kind, version, reply)
    elif isinstance(reply, SyncGroupReply):
        told |= {"protocol_type": reply.protocol_type, "protocol_name": reply.protocol}
        told |= {"assignment": reply.assignment}
    elif isinstance(reply, LeaveGroupReply):
        told |= _left(kind, version, reply)
    return make(kind, **told)


def code(error: Error) -> ErrorCode:
    """Return an error as Kafka numbers it; one that it has no number for is its UNKNOWN."""
    try:
        return ErrorCode(MEANINGS[error].code)
    except ValueError:
        return ErrorCode.unknown_server_error


def _joined(kind: Any, version: int, reply: JoinGroupReply) -> dict[str, Any]:
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


def _left(kind: Any, version: int, reply: LeaveGroupReply) -> dict[str, Any]:
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


def _listed(kind: Any, asked: Any, replies: Sequence[ListGroupsReply]) -> Any:
    """Return the groups of all shards that the request's filters let through."""
    states = {each.lower() for each in getattr(asked, "states_filter", ())}
    types = {each.lower() for each in getattr(asked, "types_filter", ())}
    groups = tuple(
        make(
            item_class(kind, "groups"),
            group_id=each.group_id,
            protocol_type=each.protocol_type,
            group_state=each.state,
            group_type=each.group_type,
        )
        for reply in replies
        for each in reply.groups
        if (not states or each.state.lower() in states)
        and (not types or each.group_type.lower() in types)
    )
    failed = next((each.error for each in replies if each.error is not Error.NONE), Error.NONE)
    return make(kind, throttle_time=NO_TIME, error_code=code(failed), groups=groups)


def _described(kind: Any, version: int, group_id: str, reply: DescribeGroupReply) -> Any:
    item = item_class(kind, "groups")
    is_absent = reply.error is Error.GROUP_ID_NOT_FOUND and version < TELLS_ABSENT
    member_class = item_class(item, "members")
    return make(
        item,
        error_code=code(Error.NONE if is_absent else reply.error),
        error_message=reply.message or None,
        group_id=group_id,
        group_state=reply.state,
        protocol_type=reply.protocol_type,
        protocol_data=reply.protocol,
        members=tuple(_member(member_class, each, reply.protocol) for each in reply.members),
        authorized_operations=NOT_ASKED_FOR,
    )


def _member(kind: Any, member: ClassicMember, protocol: str) -> Any:
    offered = {each.name: each.metadata for each in member.protocols}
    return make(
        kind,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=offered.get(protocol, b""),
        member_assignment=member.assignment,
    )
