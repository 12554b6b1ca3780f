"""Translates ConnectGroupDescribe, which describes connect groups in their own terms."""
# pyright: basic

from collections.abc import Sequence
from typing import Any, Final

from .....actors.messages.groups import (
    DescribeConnectGroup,
    DescribeConnectGroupReply,
    DescribedWorker,
)
from .. import connect_messages as wire
from ..frames import Request
from ..terms import code
from .connect import to_wire

CLASSIC: Final = 0
MODERN: Final = 1


def ask_to_describe(request: Request, _: str) -> Sequence[DescribeConnectGroup]:
    """Translate the request into one call for each group."""
    return [DescribeConnectGroup(group_id) for group_id in request.message.group_ids]


def answer_describe(
    request: Request, _: Any, replies: Sequence[DescribeConnectGroupReply]
) -> wire.ConnectGroupDescribeResponse:
    """Build the response."""
    asked = zip(request.message.group_ids, replies, strict=True)
    return wire.ConnectGroupDescribeResponse(groups=tuple(_group(*each) for each in asked))


def _group(group_id: str, reply: DescribeConnectGroupReply) -> wire.DescribedGroup:
    return wire.DescribedGroup(
        error_code=code(reply.error),
        error_message=reply.message or None,
        group_id=group_id,
        group_state=reply.state,
        group_epoch=reply.group_epoch,
        assignment_epoch=reply.assignment_epoch,
        assignor_name=reply.assignor,
        members=tuple(map(_member, reply.members)),
    )


def _member(member: DescribedWorker) -> wire.DescribedMember:
    return wire.DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        url=member.url,
        version=member.data.version,
        metadata=member.data.metadata,
        assignment=to_wire(member.assigned),
        owned=to_wire(member.owned),
        target_assignment=to_wire(member.target),
        member_type=CLASSIC if member.is_classic else MODERN,
    )
