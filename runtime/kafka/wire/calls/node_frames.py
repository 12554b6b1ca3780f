"""The frames of ConnectGroupAsk between nodes, read and written without kio.

Each heartbeat and commit of a worker on another host is such a frame, and kio takes longer over it
than all else that the listener does. Only the usual form is read here, and only answers are written
that carry a message: kio has all others.
"""
# pyright: basic

import struct
from typing import Final

from .....actors.messages.groups import NodeReply
from ..frames import HEAD, LENGTH
from ..served import CONNECT_ASK
from .asks import NodeAsk
from .carried import write_message

LONGEST: Final = 16 << 10
"""The maximum size of a request here, in bytes."""
_START: Final = struct.Struct(">hh").pack(CONNECT_ASK, 0)
_TEXT_AT: Final = LENGTH.size + HEAD.size
_NO_MEMBER: Final = b"\x01" + LENGTH.pack(-1)
"""An empty member id, and no member epoch."""
_NO_ERROR: Final = bytes(4 + 2 + 1)
"""Neither throttle time nor error nor message."""
_ENDS: Final = struct.Struct(">BBBqBBq")
_NO_TAGS: Final = b"\0"


class _OtherForm(Exception):  # noqa: N818  # no error: kio reads it
    """The frame has not the usual form."""


def read_node_ask(data: bytes) -> NodeAsk | None:
    """Return the message in one whole request, with its length prefix; None: kio has to read it."""
    size = len(data)
    if not data.startswith(_START, LENGTH.size) or not _TEXT_AT + 2 < size <= LONGEST:
        return None
    try:
        return _read(data) if LENGTH.unpack_from(data)[0] == size - LENGTH.size else None
    except (_OtherForm, IndexError, UnicodeDecodeError):
        return None


def _read(data: bytes) -> NodeAsk:
    client_id_size = int.from_bytes(data[_TEXT_AT : _TEXT_AT + 2])
    at = _TEXT_AT + 2 + client_id_size
    at = _skip(data, at, _NO_TAGS)  # of the header
    group_id, at = _read_bytes(data, at)
    at = _skip(data, at, _NO_MEMBER)
    kind, at = _read_bytes(data, at)
    body, at = _read_bytes(data, at)
    if data[at:] != _NO_TAGS:
        raise _OtherForm
    return NodeAsk(group_id.decode(), kind.decode(), body)


def _skip(data: bytes, at: int, expected: bytes) -> int:
    if not data.startswith(expected, at):
        raise _OtherForm
    return at + len(expected)


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """Return compact bytes, and the position behind them."""
    size = data[at]
    at += 1
    if size & 0x80:
        size = (size & 0x7F) | (data[at] << 7)
        at += 1
        if size >> 14:
            raise _OtherForm
    end = at + size - 1
    if not size or end > len(data):
        raise _OtherForm
    return data[at:end], end


def write_node_answer(number: bytes, answer: NodeReply) -> bytes | None:
    """Return the response to the request with this correlation id; None: kio has to write it."""
    if answer.reply is None or min(answer.control_end, answer.offsets_end) < 0:
        return None
    kind, body = write_message(answer.reply)
    ends = _ENDS.pack(2, 0, 8, answer.control_end, 1, 8, answer.offsets_end)
    parts = number, _NO_TAGS, _NO_ERROR, _compact(kind.encode()), _compact(body), ends
    frame = b"".join(parts)
    return LENGTH.pack(len(frame)) + frame


def _compact(data: bytes) -> bytes:
    size, head = len(data) + 1, bytearray()
    while size >> 7:
        head.append((size & 0x7F) | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + data
