"""The sandbox process for third-party assignors: its program, and the parent's handle `Sandbox`.

The process is a new interpreter: it shares no memory with the parent (which has the cluster's key),
has no open file but one pipe, and only the environment variables of `filter_environment`. A `guard`
process limits its memory and kills its descendants. Access to files and the network is not
restricted: it has that of the user.

Run as `python -m fairlead.runtime.node.assignors.sandbox DESCRIPTOR LOG PID LEVEL`. LOG gets the
output of the assignors and their log records of LEVEL or above, under the parent's PID. The parent
sends an `AssignorSpec` through the pipe DESCRIPTOR, then one question after another.

Questions are pickled: the parent is trusted. Answers come from a process with third-party code, so
they are msgpack, decoded into known types. An answer is one byte, `FULL` or `NOT_FULL`, and the
message. The group validates the content of answers, as it does with those of workers.
"""

import logging
import os
import signal
import subprocess
import sys
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
from ...processes.guard import TOO_MUCH, guarded
from ...processes.isolation import filter_environment, isolate
from .discovery import AssignorRefusedError
from .host import AssignorHost, load_host
from .user_code import WrongResultError

Question = DescribeAssignors | ComputeAssignment | NotifyAssignment | ForgetWorker
Answer = ComputeAssignmentReply | DescribeAssignorsReply | NotifyAssignmentReply
A = TypeVar("A", bound=Answer)

ACKNOWLEDGED: Final = NotifyAssignmentReply(0)
"""The answer to a message that needs none."""

FULL: Final = b"1"
"""The first byte of an answer if the memory limit of the assignors is nearly used up."""
NOT_FULL: Final = b"0"

ANSWER_BYTES: Final = 64 << 20
"""The longest answer that is read."""
END_SECONDS: Final = 12.0  # a little longer than the guard takes at most


class SandboxEndedError(Exception):
    """The sandbox process has ended or is unusable; the message says why."""


class Sandbox:
    """The parent's handle of the process that runs third-party assignors."""

    def __init__(self, spec: AssignorSpec, log_file: Path) -> None:
        """Start the process for the assignors of `spec`; `log_file` gets their output."""
        self._spec = spec
        self.is_full = False
        """Whether the memory limit was nearly used up at the last answer."""
        self._pipe, theirs = Pipe()
        """This end of the pipe to the process; see `main`."""
        with theirs:
            self._guard = subprocess.Popen(  # noqa: S603  # no shell, and nothing of a request
                self._command(log_file, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=filter_environment(os.environ),
                process_group=0,
            )
        """The guard process, the parent of the sandbox process."""

    @property
    def pid(self) -> int:
        """The process id of the guard, an ancestor of all processes of the sandbox."""
        return self._guard.pid

    def open(self, seconds: float | None = None) -> str:
        """Load the assignors; return the error, "" if all is well. Raises `SandboxEndedError`."""
        try:
            opened = read(DescribeAssignorsReply, self._exchange(self._spec, seconds))
            return "; ".join(opened.errors)
        except WrongResultError as error:
            return str(error)

    def ask(self, question: Question, seconds: float | None = None) -> Answer:
        """Return the answer to a question; raises `SandboxEndedError`, also if it is late."""
        answer = self._exchange(question, seconds)
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
                "the assignors and their child processes used more than the"
                f" {self._spec.memory_bytes} bytes of assignor.memory.max, shared memory included,"
                " and were killed"
            )
        return "its process ended (without an answer)"

    @property
    def ended_by_itself(self) -> bool:
        """Whether it has ended for another reason than the memory limit."""
        return self._guard.returncode not in {None, TOO_MUCH}

    def abort(self) -> None:
        """Send SIGABRT: the process logs its stack and ends."""
        self._signal(signal.SIGABRT)

    def stop(self) -> None:
        """Tell the guard to kill all processes of the sandbox, without waiting; thread-safe."""
        self._signal(signal.SIGTERM)

    def end(self) -> None:
        """Kill all processes of the sandbox, and wait until they have ended."""
        self.stop()
        with suppress(OSError):
            self._pipe.close()
        try:
            self._guard.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._guard.wait()

    def _exchange(self, question: object, seconds: float | None) -> bytes:
        try:
            self._pipe.send(question)
            if seconds is not None and not self._pipe.poll(seconds):
                raise SandboxEndedError(f"it took more than {seconds:g} s")
            answer = self._pipe.recv_bytes(ANSWER_BYTES)
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self._guard.wait(END_SECONDS)  # the guard kills the remaining processes
            raise SandboxEndedError(self.why_ended() or "it closed its pipe") from None
        self.is_full = answer[:1] == FULL
        return answer[1:]

    def _signal(self, number: int) -> None:
        if self._guard.poll() is None:
            with suppress(OSError):
                os.kill(self._guard.pid, number)

    def _command(self, log_file: Path, descriptor: int) -> list[str]:
        level = logging.getLevelName(logging.root.level)
        arguments = (str(descriptor), str(log_file), str(os.getpid()), level)
        program = [sys.executable, "-m", __name__, *arguments]
        return guarded(program, log_file, self._spec.memory_bytes)


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
    """Load the assignors and answer questions; raises `EOFError` when the pipe is closed."""
    setproctitle("fairlead: sandbox")
    spec: AssignorSpec = pipe.recv()
    isolate(log_file, known_as)
    host: AssignorHost | None = None
    why = ""
    try:
        host = load_host(spec)
    except AssignorRefusedError as error:
        why = str(error)
    pipe.send_bytes(NOT_FULL + msgpack.encode(DescribeAssignorsReply(0, (), (why,) if why else ())))
    while host is not None:
        question: Question = pipe.recv()
        answer = msgpack.encode(host.answer(question) or ACKNOWLEDGED)
        pipe.send_bytes((FULL if host.is_full(spec.memory_bytes) else NOT_FULL) + answer)


def read(kind: type[A], data: bytes) -> A:
    """Decode an answer of this type; raises `WrongResultError` for invalid bytes."""
    try:
        return msgpack.decode(data, type=kind)
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WrongResultError(f"its answer is invalid: {error}") from None


if __name__ == "__main__":
    logging.root.setLevel(sys.argv[4])
    with Connection(int(sys.argv[1])) as parent, suppress(EOFError):
        main(parent, Path(sys.argv[2]), int(sys.argv[3]))
