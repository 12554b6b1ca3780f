"""The program in a sandbox: it loads assignors, third-party ones among them, and asks them.

Run as `python -m fairlead.runtime.node.assignors.sandboxed DESCRIPTOR`: through the pipe of that
descriptor it takes its `SandboxOrder`, then one question after the other; see `codec`.
"""

import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from setproctitle import setproctitle

from ....actors.messages.assignors import Introduced
from .codec import FULL, NOT_FULL, NOTED, Question, SandboxOrder, encode
from .finding import AssignorRefusedError
from .host import AssignorHost
from .isolation import isolate, limit, show_in_title
from .user_errors import USERS_ERRORS, describe


def main(pipe: Connection) -> None:
    """Answer questions until the other end of the pipe is closed; raises `EOFError` then."""
    setproctitle("fairlead: sandbox")
    order: SandboxOrder = pipe.recv()
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
    pipe.send_bytes(NOT_FULL + encode(Introduced(0, (), (why,) if why else ())))
    while host is not None:
        question: Question = pipe.recv()
        answer = encode(host.answer(question) or NOTED)
        is_full = host.is_full(order.assignors.memory_bytes)
        pipe.send_bytes((FULL if is_full else NOT_FULL) + answer)


if __name__ == "__main__":
    with Connection(int(sys.argv[1])) as parent, suppress(EOFError):
        main(parent)
