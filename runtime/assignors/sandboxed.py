"""The process in which assignors of others run.

Run as `python -m fairlead.runtime.assignors.sandboxed DESCRIPTOR`: it takes its `Order`, then
one question after the other, through the pipe that it was given. It answers with a byte, which
tells whether it is `FULL`, and an answer as plain data.
"""

import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from setproctitle import setproctitle

from ...actors.messages.assignors import Assign, Forget, Given, Introduce, Introduced, Noted
from ..cluster.spec import AssignorSpec
from .codec import encode
from .finding import AssignorRefusedError
from .host import AssignorHost
from .isolation import isolate, limit, show_in_title
from .user_errors import USERS_ERRORS, describe

Question = Introduce | Assign | Given | Forget
NOTED: Final = Noted(0)
FULL, ROOM = b"1", b"0"


@dataclass(frozen=True, slots=True)
class Order:
    """The first message: which assignors are wanted, and where what they print goes.

    `known_as` is the process id by which people know this process: that of the one that asks.
    """

    assignors: AssignorSpec
    log_file: Path
    known_as: int


def main(pipe: Connection) -> None:
    """Answer questions until nobody asks any more."""
    setproctitle("fairlead: sandbox")
    order: Order = pipe.recv()
    isolate(order.log_file, order.known_as)
    host: AssignorHost | None = None
    why = ""
    try:
        limit(order.assignors.memory_bytes)
        host = AssignorHost(order.assignors.names, order.assignors.conf, show_in_title)
    except AssignorRefusedError as error:
        why = str(error)
    except USERS_ERRORS as error:
        why = f"the assignors cannot be loaded: {describe(error)}"
    pipe.send_bytes(ROOM + encode(Introduced(0, (), (why,) if why else ())))
    while host is not None:
        question: Question = pipe.recv()
        answer = encode(host.answer(question) or NOTED)
        is_full = host.is_full(order.assignors.memory_bytes)
        pipe.send_bytes((FULL if is_full else ROOM) + answer)


if __name__ == "__main__":
    with Connection(int(sys.argv[1])) as asked, suppress(EOFError):  # nobody asks any more
        main(asked)
