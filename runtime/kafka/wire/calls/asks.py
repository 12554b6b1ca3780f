"""Translates ConnectGroupAsk, by which members over Kafka's wire are workers (PROTOCOL §20).

`ask_bodies` says what is in a body. One that cannot be read is answered with an error,
and no group is asked.

A request that names no member is of another node, whose messages are in `carried`. They are decoded
only once it is known that the client is a node, and one that cannot be read ends its connection.
"""
# pyright: basic

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from .....actors.messages.asks import MemberAsk, UnreadableAsk
from .....actors.messages.errors import MEANINGS, Error
from .....actors.messages.groups import ConnectCall, ConnectReply, NodeCall, NodeReply
from ..frames import Request
from .ask_bodies import read_ask, write_reply
from .carried import read_request, write_message

LEFT_UNANSWERED: Final = 7
"""Kafka's REQUEST_TIMED_OUT: the group leaves a message without an answer."""


class NodeAsk(NamedTuple):
    """A message of a client that says that it is a node; its body is not decoded yet."""

    group_id: str
    kind: str
    body: bytes

    def decode(self) -> NodeCall:
        """Return the call; raises `FrameRefused`."""
        return NodeCall(self.group_id, read_request(self.kind, self.body))


def ask_group(request: Request, _: str) -> Sequence[Any]:
    """Translate a ConnectGroupAsk request."""
    message = request.message
    if not message.member_id:
        return [NodeAsk(message.group_id, message.kind, message.body)]
    sender = message.group_id, message.member_id, message.member_epoch
    return [ConnectCall(read_ask(*sender, message.kind, message.body))]


def ask_in(calls: Sequence[Any]) -> MemberAsk | None:
    """Return the ask among the calls of a request; None: they are of another API."""
    request = calls[0].request if calls and isinstance(calls[0], ConnectCall) else None
    return request if isinstance(request, MemberAsk) else None


def flaw_in(ask: MemberAsk | None) -> str:
    """Return why an ask cannot be read; "" if it can."""
    request = ask.request if ask else None
    return request.message if isinstance(request, UnreadableAsk) else ""


def answer_ask(_: Request | None, kind: Any, replies: Sequence[ConnectReply | NodeReply]) -> Any:
    """Build the response to an ask."""
    reply: Any = replies[0].reply
    if isinstance(replies[0], NodeReply):
        return _answer_node(kind, replies[0])
    name, body = write_reply(reply)
    error = {"error_code": MEANINGS[reply.error].code, "error_message": reply.message or None}
    return kind(**error, kind=name, body=body)


def _answer_node(kind: Any, answer: NodeReply) -> Any:
    if answer.reply is None:
        is_refused = answer.error is not Error.NONE
        code = MEANINGS[answer.error].code if is_refused else LEFT_UNANSWERED
        return kind(error_code=code, error_message=answer.message or None)
    name, body = write_message(answer.reply)
    ends = {"control_end": answer.control_end, "offsets_end": answer.offsets_end}
    return kind(error_code=0, kind=name, body=body, **ends)
