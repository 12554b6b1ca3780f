"""What a sandbox and the process in it say to each other.

Questions are pickled, since the process that asks is trusted. Third-party code runs where answers
are written, so these are msgpack, and read by their types: no object of that code is made here. An
answer is a byte, which tells whether the process is `FULL`, and the message. The group checks what
an answer says, as it does with a worker's.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import MsgspecError
from msgspec.msgpack import Decoder, Encoder

from ....actors.messages.assignors import (
    Assign,
    Assigned,
    Forget,
    Given,
    Introduce,
    Introduced,
    Noted,
)
from ...cluster.spec import AssignorSpec
from .results import WrongResultError

Question = Introduce | Assign | Given | Forget
Answer = Assigned | Introduced | Noted

NOTED: Final = Noted(0)
"""The answer to a question that needs none."""

FULL: Final = b"1"
"""The first byte of an answer where the assignors keep nearly all memory that they may take."""
NOT_FULL: Final = b"0"

_UNREADABLE = (MsgspecError, UnicodeDecodeError, RecursionError)

_encode = Encoder().encode
_assigned, _introduced = Decoder(Assigned).decode, Decoder(Introduced).decode
_noted = Decoder(Noted).decode


@dataclass(frozen=True, slots=True)
class SandboxOrder:
    """The first message to a sandboxed process: what it is to run."""

    assignors: AssignorSpec
    log_file: Path
    """Where what the assignors print goes."""
    known_as: int
    """The process id by which people know this process: that of the one that asks."""


def encode(answer: Answer) -> bytes:
    """Return an answer as msgpack."""
    return _encode(answer)


def read_assigned(data: bytes) -> Assigned:
    """Return the assignment that was computed; raises `WrongResultError` for other bytes."""
    try:
        return _assigned(data)
    except _UNREADABLE as error:
        raise WrongResultError(f"its answer cannot be understood: {error}") from None


def read_introduced(data: bytes) -> Introduced:
    """Return what assignors say for a worker; raises `WrongResultError` for other bytes."""
    try:
        return _introduced(data)
    except _UNREADABLE as error:
        raise WrongResultError(f"its answer cannot be understood: {error}") from None


def read_noted(data: bytes) -> Noted:
    """Return the answer to a question that needs none; raises `WrongResultError`."""
    try:
        return _noted(data)
    except _UNREADABLE as error:
        raise WrongResultError(f"its answer cannot be understood: {error}") from None
