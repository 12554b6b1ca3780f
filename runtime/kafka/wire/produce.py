"""Whether a Produce is answered: with `acks=0` a broker says nothing, and nothing is awaited."""

import struct
from typing import Final

from .bounds import FrameRefused
from .frames import HEAD, Head

COMPACT: Final = 9
"""The version from which on strings are compact and headers have tags."""
TRANSACTIONAL: Final = 3
"""The version from which on the id of a transaction stands in front."""


def expects_answer(head: Head, data: bytes) -> bool:
    """Tell whether a Produce, which begins so, is answered; raises `FrameRefused`."""
    try:
        at = _behind_string(data, HEAD.size)
        if head.version >= COMPACT:
            if data[at]:
                raise FrameRefused("malformed", "tags in the header of a Produce")
            at = _behind_compact(data, at + 1)
        elif head.version >= TRANSACTIONAL:
            at = _behind_string(data, at)
        (acks,) = struct.unpack_from(">h", data, at)
    except (struct.error, IndexError):
        raise FrameRefused("malformed", "a Produce without acks") from None
    return bool(acks)


def _behind_string(data: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">h", data, at)
    return at + 2 + max(0, int(length))


def _behind_compact(data: bytes, at: int) -> int:
    """Return where a compact string ends, whose length is one more, of seven bits in each byte."""
    length = shift = 0
    while True:
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 1 << 7:
            return at + max(0, length - 1)
        if shift > 2 * 7:
            raise FrameRefused("malformed", "a length without end")
