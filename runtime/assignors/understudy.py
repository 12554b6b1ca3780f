"""The process in which assignors of others compute for a plan.

Run as `python -m fairlead.runtime.assignors.understudy DESCRIPTOR`: it takes its `Order`, then
one question after the other, through the pipe that it was given, and lives for one plan. It is
set apart and limited like the process in which they compute for real, and what they say here
has no effect on that one.
"""

import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import assert_never

from setproctitle import setproctitle

from ...actors.assignors.interface import Worker
from ...actors.messages.assignors import Introduced
from ...actors.messages.computing import Snapshot
from ..node.spec import AssignorSpec
from .apart import doing, set_apart
from .finding import AssignorRefusedError
from .limits import limit
from .mishaps import USERS_ERRORS, told
from .panel import Panel
from .telling import Answer, written

MEMBER = "plan"
"""For whom all are asked: one set of assignors speaks and computes for all members of a plan."""

Question = Worker | Snapshot


@dataclass(frozen=True, slots=True)
class Order:
    """The first message: which assignors are wanted, and where what they print goes."""

    assignors: AssignorSpec
    log_file: Path


def main(pipe: Connection) -> None:
    """Answer questions until nobody asks any more."""
    setproctitle("fairlead: understudy")
    order: Order = pipe.recv()
    set_apart(order.log_file)
    panel: Panel | None = None
    why = ""
    try:
        limit(order.assignors.memory_bytes)
        panel = Panel(order.assignors.names, order.assignors.conf, doing)
    except AssignorRefusedError as error:
        why = str(error)
    except USERS_ERRORS as error:
        why = f"the assignors can not be loaded: {told(error)}"
    pipe.send_bytes(written(Introduced(0, (), (why,) if why else ())))
    while panel is not None:
        pipe.send_bytes(written(_answer(panel, pipe.recv())))


def _answer(panel: Panel, question: Question) -> Answer:
    match question:
        case Worker():
            return panel.introduce(MEMBER, question, 0)
        case Snapshot():
            return panel.assign(MEMBER, question)
        case _:
            assert_never(question)


if __name__ == "__main__":
    with Connection(int(sys.argv[1])) as asked, suppress(EOFError):  # the plan is made
        main(asked)
