"""The bodies of what nodes send to the owner of their group, and of its answers (PROTOCOL §20).

A table says which messages there are; each is whole in its body, a map of msgpack with the fields
of its class. A command of people is named by its own kind, and is in a `RequestedCommand`: so its
request id gets into the owner's log. Nothing in a body says what is to be made of it.
"""
# pyright: basic

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, get_args

from msgspec import MsgspecError
from msgspec.msgpack import Decoder, Encoder

from .....actors.messages.classic import ClassicCall, ClassicReply
from .....actors.messages.commands import (
    CommandReply,
    CompactHistory,
    CompactionProgress,
    DescribeCompaction,
    DescribeTraffic,
    HeardNodes,
    NodeHeartbeat,
    RequestedCommand,
    Traffic,
)
from .....actors.messages.computing import Install, InstallReply, Prepare, PrepareReply
from .....actors.messages.members import (
    CommitOffsets,
    CommitReply,
    ExternalStateRemoved,
    Heartbeat,
    HeartbeatReply,
    PutTaskConfigs,
    ReportStatus,
)
from .....actors.messages.orders import FROM_PEOPLE, EndMember, ReleaseSeats
from ..bounds import FrameRefused

UNKNOWN_KIND: Final = "unknown kind"
MALFORMED: Final = "malformed"
SHOWN: Final = 80
"""The number of characters of a kind that a log line has."""

OfWorker = (
    Heartbeat
    | Prepare
    | Install
    | PutTaskConfigs
    | ReportStatus
    | ExternalStateRemoved
    | CommitOffsets
    | ClassicCall
)
OfRest = DescribeTraffic | CompactHistory | DescribeCompaction
OfNode = EndMember | ReleaseSeats | NodeHeartbeat

CarriedRequest = OfWorker | OfNode | OfRest | RequestedCommand
"""What a node sends."""
CarriedReply = (
    HeartbeatReply
    | PrepareReply
    | InstallReply
    | CommandReply
    | CommitReply
    | ClassicReply
    | Traffic
    | CompactionProgress
    | HeardNodes
)
"""What it is answered."""

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class _Requested(Generic[C]):
    """A `RequestedCommand` whose command is of one kind."""

    command: C
    request: str


def _kinds_in(union: Any) -> Iterator[Any]:  # a type, or a union of types
    for each in get_args(union) or [union]:
        yield from _kinds_in(each) if get_args(each) else [each]


def _requested(kind: Any) -> Any:  # a type
    return _Requested[kind]


_REQUESTS: Final[Mapping[str, Decoder[Any]]] = {
    **{kind.__name__: Decoder(kind) for kind in _kinds_in(OfWorker | OfNode | OfRest)},
    **{kind.__name__: Decoder(_requested(kind)) for kind in _kinds_in(FROM_PEOPLE)},
}
_REPLIES: Final[Mapping[str, Decoder[Any]]] = {
    kind.__name__: Decoder(kind) for kind in _kinds_in(CarriedReply)
}


def _plain(value: object) -> object:
    """Return a value that is only another kind of mapping as one that can be encoded."""
    if isinstance(value, Mapping):
        return {**value}
    raise TypeError(f"{type(value).__name__} has no form on the wire")


_encode: Final = Encoder(enc_hook=_plain).encode


def write_message(message: CarriedRequest | CarriedReply) -> tuple[str, bytes]:
    """Encode a message; return its kind and its body.

    Raises `TypeError`, `ValueError`, `OverflowError` for what has no form there.
    """
    named = message.command if isinstance(message, RequestedCommand) else message
    return type(named).__name__, _encode(message)


def read_request(kind: str, body: bytes) -> CarriedRequest:
    """Decode what a node sends; raises `FrameRefused`."""
    found = _read(_REQUESTS, kind, body)
    if isinstance(found, _Requested):
        return RequestedCommand(found.command, found.request)
    request: CarriedRequest = found
    return request


def read_reply(kind: str, body: bytes) -> CarriedReply:
    """Decode what the owner answers; raises `FrameRefused`."""
    reply: CarriedReply = _read(_REPLIES, kind, body)
    return reply


def _read(table: Mapping[str, Decoder[Any]], kind: str, body: bytes) -> Any:
    if kind not in table:
        raise FrameRefused(UNKNOWN_KIND, ascii(kind[:SHOWN]))
    try:
        return table[kind].decode(body)
    except (MsgspecError, RecursionError, ValueError) as error:
        raise FrameRefused(MALFORMED, f"{kind}: {str(error)[:SHOWN]}") from None
