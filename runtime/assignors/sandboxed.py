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
from .apart import doing, set_apart
from .finding import AssignorRefusedError
from .limits import limit
from .mishaps import USERS_ERRORS, told
from .panel import Panel
from .telling import written

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
    set_apart(order.log_file, order.known_as)
    panel: Panel | None = None
    why = ""
    try:
        limit(order.assignors.memory_bytes)
        panel = Panel(order.assignors.names, order.assignors.conf, doing)
    except AssignorRefusedError as error:
        why = str(error)
    except USERS_ERRORS as error:
        why = f"the assignors can not be loaded: {told(error)}"
    pipe.send_bytes(ROOM + written(Introduced(0, (), (why,) if why else ())))
    while panel is not None:
        question: Question = pipe.recv()
        answer = written(panel.answer(question) or NOTED)
        is_full = panel.is_full(order.assignors.memory_bytes)
        pipe.send_bytes((FULL if is_full else ROOM) + answer)


if __name__ == "__main__":
    with Connection(int(sys.argv[1])) as asked, suppress(EOFError):  # nobody asks any more
        main(asked)
