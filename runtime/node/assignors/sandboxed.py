"""The program in a sandbox: it loads assignors, third-party ones among them, and asks them.

Run as `python -m fairlead.runtime.node.assignors.sandboxed DESCRIPTOR LOG PID LEVEL`: what the
assignors print goes to LOG, where PID, of the process that asks, stands for this one, and what they
log if it is of LEVEL or above. Through the pipe of that descriptor come an `AssignorSpec`, then one
question after the other.

Questions are pickled, since the process that asks is trusted. Third-party code runs where answers
are written, so these are msgpack, and read by their types: no object of that code is made there. An
answer is a byte, which tells whether the process is `FULL`, and the message. The group checks what
an answer says, as it does with a worker's.
"""

import logging
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, TypeVar

from msgspec import MsgspecError, msgpack
from setproctitle import setproctitle

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
from .finding import AssignorRefusedError
from .host import AssignorHost, load_host
from .isolation import isolate
from .user_code import WrongResultError

Question = Introduce | Assign | Given | Forget
Answer = Assigned | Introduced | Noted
A = TypeVar("A", bound=Answer)

NOTED: Final = Noted(0)
"""The answer to a question that needs none."""

FULL: Final = b"1"
"""The first byte of an answer where the assignors keep nearly all memory that they may take."""
NOT_FULL: Final = b"0"


def main(pipe: Connection, log_file: Path, known_as: int) -> None:
    """Answer questions until the other end of the pipe is closed; raises `EOFError` then."""
    setproctitle("fairlead: sandbox")
    spec: AssignorSpec = pipe.recv()
    isolate(log_file, known_as)
    host: AssignorHost | None = None
    why = ""
    try:
        host = load_host(spec)
    except AssignorRefusedError as error:
        why = str(error)
    pipe.send_bytes(NOT_FULL + encode(Introduced(0, (), (why,) if why else ())))
    while host is not None:
        question: Question = pipe.recv()
        answer = encode(host.answer(question) or NOTED)
        pipe.send_bytes((FULL if host.is_full(spec.memory_bytes) else NOT_FULL) + answer)


def encode(answer: Answer) -> bytes:
    """Return an answer as msgpack."""
    return msgpack.encode(answer)


def read(kind: type[A], data: bytes) -> A:
    """Return an answer of this kind; raises `WrongResultError` for other bytes."""
    try:
        return msgpack.decode(data, type=kind)
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WrongResultError(f"its answer cannot be understood: {error}") from None


if __name__ == "__main__":
    logging.root.setLevel(sys.argv[4])
    with Connection(int(sys.argv[1])) as parent, suppress(EOFError):
        main(parent, Path(sys.argv[2]), int(sys.argv[3]))
