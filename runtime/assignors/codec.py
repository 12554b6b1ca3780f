"""What an assignor process answers, as bytes that can be read without trust.

Code of others runs where these are written, so pickle is out of the question: they are msgpack,
and read by the types of the answer. The group checks what they say, as it does for real.
"""

from msgspec import MsgspecError
from msgspec.msgpack import Decoder, Encoder

from ...actors.messages.assignors import Assigned, Introduced, Noted
from .results import WrongResultError

Answer = Assigned | Introduced | Noted
UNREADABLE = (MsgspecError, UnicodeDecodeError, RecursionError)

_encode = Encoder().encode
_assigned, _introduced = Decoder(Assigned).decode, Decoder(Introduced).decode
_noted = Decoder(Noted).decode


def encode(answer: Answer) -> bytes:
    """Return an answer as bytes."""
    return _encode(answer)


def read_assigned(data: bytes) -> Assigned:
    """Return what an assignor made of a group; raises `WrongResultError` for other bytes."""
    try:
        return _assigned(data)
    except UNREADABLE as error:
        raise WrongResultError(f"its answer cannot be understood: {error}") from None


def read_introduced(data: bytes) -> Introduced:
    """Return what assignors say for a worker; raises `WrongResultError` for other bytes."""
    try:
        return _introduced(data)
    except UNREADABLE as error:
        raise WrongResultError(f"its answer cannot be understood: {error}") from None


def read_noted(data: bytes) -> Noted:
    """Return that assignors have come through what they were told; raises `WrongResultError`."""
    try:
        return _noted(data)
    except UNREADABLE as error:
        raise WrongResultError(f"its answer cannot be understood: {error}") from None
