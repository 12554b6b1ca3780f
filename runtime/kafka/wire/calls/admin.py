"""Translates ListGroups, DescribeGroups and DeleteGroups.

A request for several groups becomes one call for each, whose replies are merged into one response.
"""
# pyright: basic

from collections.abc import Sequence
from typing import Any, Final

from .....actors.messages.errors import Error
from .....actors.messages.groups import (
    DescribeGroup,
    DescribeGroupReply,
    ListGroups,
    ListGroupsReply,
    RemoveGroup,
    RemoveGroupReply,
)
from .....events.model import ClassicMember
from ..frames import Request, item_class, make
from ..terms import NO_TIME, NOT_ASKED_FOR, code

TELLS_ABSENT: Final = 6
"""The first version of DescribeGroups that reports an unknown group as an error."""


def ask_for_list(_: Request, __: str) -> Sequence[ListGroups]:
    """Translate a ListGroups request, for each shard."""
    return [ListGroups()]


def ask_to_describe(request: Request, _: str) -> Sequence[DescribeGroup]:
    """Translate a DescribeGroups request into one call for each group."""
    return [DescribeGroup(group_id) for group_id in request.message.groups]


def ask_to_delete(request: Request, _: str) -> Sequence[RemoveGroup]:
    """Translate a DeleteGroups request into one call for each group."""
    return [RemoveGroup(group_id) for group_id in dict.fromkeys(request.message.groups_names)]


def answer_delete(request: Request, kind: Any, replies: Sequence[RemoveGroupReply]) -> Any:
    """Build the DeleteGroups response."""
    item, asked = item_class(kind, "results"), dict.fromkeys(request.message.groups_names)
    results = tuple(
        make(item, group_id=group_id, error_code=code(reply.error))
        for group_id, reply in zip(asked, replies, strict=True)
    )
    return make(kind, throttle_time=NO_TIME, results=results)


def answer_describe(request: Request, kind: Any, replies: Sequence[DescribeGroupReply]) -> Any:
    """Build the DescribeGroups response."""
    asked = zip(request.message.groups, replies, strict=True)
    version = request.head.version
    groups = tuple(_describe(kind, version, group_id, reply) for group_id, reply in asked)
    return make(kind, throttle_time=NO_TIME, groups=groups)


def answer_list(request: Request, kind: Any, replies: Sequence[ListGroupsReply]) -> Any:
    """Build the ListGroups response, with the groups of all shards that pass the filters."""
    asked = request.message
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


def _describe(kind: Any, version: int, group_id: str, reply: DescribeGroupReply) -> Any:
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
