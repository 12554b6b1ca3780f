"""A sandbox for third-party assignors: the program in it, and its handle for the process that asks.

The process begins with a clean interpreter: nothing of the memory of the one that asks, such as
the cluster's key, no open file but one pipe, and of the environment only variables that say where
things are and how text is encoded. Beside it runs a `guard`, which limits it and ends all that it
has started. Nothing here confines what it may do to files and over the network as the user that it
runs as.

Run as `python -m fairlead.runtime.node.assignors.sandbox DESCRIPTOR LOG PID LEVEL`: what the
assignors print goes to LOG, where PID, of the process that asks, stands for this one, and what they
log if it is of LEVEL or above. Through the pipe of that descriptor come an `AssignorSpec`, then one
question after the other.

Questions are pickled, since the process that asks is trusted. Third-party code runs where answers
are written, so these are msgpack, and read by their types: no object of that code is made there. An
answer is a byte, which tells whether the process is `FULL`, and the message. The group checks what
an answer says, as it does with a worker's.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, TypeVar

from msgspec import MsgspecError, msgpack
from setproctitle import setproctitle

from ....actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    DescribeAssignorsReply,
    ForgetWorker,
    NotifyAssignment,
    NotifyAssignmentReply,
)
from ...cluster.spec import AssignorSpec
from . import guard
from .discovery import AssignorRefusedError
from .host import AssignorHost, load_host
from .isolation import isolate
from .user_code import WrongResultError

Question = DescribeAssignors | ComputeAssignment | NotifyAssignment | ForgetWorker
Answer = ComputeAssignmentReply | DescribeAssignorsReply | NotifyAssignmentReply
A = TypeVar("A", bound=Answer)

ACKNOWLEDGED: Final = NotifyAssignmentReply(0)
"""The answer to a question that needs none."""

FULL: Final = b"1"
"""The first byte of an answer where the assignors keep nearly all memory that they may take."""
NOT_FULL: Final = b"0"

ANSWER_BYTES: Final = 64 << 20
"""The longest answer that is read."""
END_SECONDS: Final = 12.0  # a little longer than the guard takes at most
ENVIRONMENT: Final = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"),
        *("PYTHONPYCACHEPREFIX", "PYTHONWARNINGS", "VIRTUAL_ENV", "LD_LIBRARY_PATH"),
    )
)
"""The variables of the environment that third-party code is given, beside `LC_*`."""


class SandboxEndedError(Exception):
    """The process of the assignors has ended, or can be used no more; the message says why."""


class Sandbox:
    """The process in which third-party assignors run."""

    def __init__(self, spec: AssignorSpec, log_file: Path) -> None:
        """Start the process for the assignors of `spec`; `log_file` gets what they print."""
        self._spec = spec
        self.is_full = False
        """Whether the assignors keep nearly all memory that they may take."""
        self._pipe, theirs = Pipe()
        """This end of the pipe to the process; see `main`."""
        with theirs:
            self._guard = subprocess.Popen(  # noqa: S603  # no shell, and nothing of a request
                self._command(log_file, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=allowed(os.environ),
                process_group=0,
            )
        """The process that guards it, and runs its program."""

    @property
    def pid(self) -> int:
        """The process id of the guard, an ancestor of all that the assignors have started."""
        return self._guard.pid

    def open(self) -> str:
        """Have the assignors loaded; return why they cannot be. Raises `SandboxEndedError`."""
        try:
            return "; ".join(read(DescribeAssignorsReply, self._exchange(self._spec)).errors)
        except WrongResultError as error:
            return str(error)

    def ask(self, question: Question) -> Answer:
        """Return the answer to a question; raises `SandboxEndedError`."""
        answer = self._exchange(question)
        try:
            match question:
                case DescribeAssignors(number=number):
                    return replace(read(DescribeAssignorsReply, answer), number=number)
                case ComputeAssignment(snapshot=asked):
                    epoch, snapshot_id = asked.group_epoch, asked.snapshot_id
                    assigned = read(ComputeAssignmentReply, answer)
                    return replace(assigned, group_epoch=epoch, snapshot_id=snapshot_id)
                case _:
                    return read(NotifyAssignmentReply, answer)
        except WrongResultError as error:
            return _refuse(question, str(error))

    def why_ended(self) -> str:
        """Return why the process has ended; empty while it runs."""
        if self._guard.poll() is None:
            return ""
        if not self.ended_by_itself:
            return (
                "the assignors and what they started kept more in memory than the"
                f" {self._spec.memory_bytes} bytes of assignor.memory.max, shared memory included,"
                " and were ended"
            )
        return "its process ended (without an answer)"

    @property
    def ended_by_itself(self) -> bool:
        """Whether it has ended, and not for its use of memory."""
        return self._guard.returncode not in {None, guard.TOO_MUCH}

    def abort(self) -> None:
        """Have the process log its stack, and end."""
        self._signal(signal.SIGABRT)

    def stop(self) -> None:
        """Have the process and all that it has started ended; from any thread, without waiting."""
        self._signal(signal.SIGTERM)

    def end(self) -> None:
        """End the process, with all that it has started, and wait for that."""
        self.stop()
        with suppress(OSError):
            self._pipe.close()
        try:
            self._guard.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._guard.wait()

    def _exchange(self, question: object) -> bytes:
        try:
            self._pipe.send(question)
            answer = self._pipe.recv_bytes(ANSWER_BYTES)
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self._guard.wait(END_SECONDS)  # its guard ends what is left
            raise SandboxEndedError(self.why_ended() or "it hung up") from None
        self.is_full = answer[:1] == FULL
        return answer[1:]

    def _signal(self, number: int) -> None:
        if self._guard.poll() is None:
            with suppress(OSError):
                os.kill(self._guard.pid, number)

    def _command(self, log_file: Path, descriptor: int) -> list[str]:
        log, me = str(log_file), str(os.getpid())
        watch = [str(guard.__file__), me, log, str(self._spec.memory_bytes)]
        level = logging.getLevelName(logging.root.level)
        program = [sys.executable, "-m", __name__, str(descriptor), log, me, level]
        return [sys.executable, "-I", "-S", *watch, *program]


def allowed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that third-party code is given."""
    return {
        name: value
        for name, value in environment.items()
        if name in ENVIRONMENT or name.startswith("LC_")
    }


def _refuse(question: Question, why: str) -> Answer:
    match question:
        case ComputeAssignment():
            asked = question.snapshot
            return ComputeAssignmentReply(asked.group_epoch, None, why, asked.snapshot_id)
        case DescribeAssignors():
            return DescribeAssignorsReply(question.number, (), (why,))
        case _:
            return ACKNOWLEDGED


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
    pipe.send_bytes(NOT_FULL + encode(DescribeAssignorsReply(0, (), (why,) if why else ())))
    while host is not None:
        question: Question = pipe.recv()
        answer = encode(host.answer(question) or ACKNOWLEDGED)
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
