"""A sandbox for third-party assignors: the handle of their process, in the process that asks them.

That process begins with a clean interpreter: nothing of this one's memory, such as the cluster's
key, no open file but one pipe, and of the environment only variables that say where things are and
how text is encoded. Beside it runs a `guard`, which limits it and ends all that it has started. Its
answers are read as plain data. Nothing here confines what it may do to files and over the network
as the user that it runs as.
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
from pathlib import Path
from typing import Final

from ....actors.messages.assignors import Assign, Assigned, Introduce, Introduced, Noted
from ...cluster.spec import AssignorSpec
from . import guard, sandboxed
from .sandboxed import FULL, NOTED, Answer, Question, read
from .user_code import WrongResultError

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
        """This end of the pipe to the process; see `sandboxed`."""
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
            return "; ".join(read(Introduced, self._exchange(self._spec)).errors)
        except WrongResultError as error:
            return str(error)

    def ask(self, question: Question) -> Answer:
        """Return the answer to a question; raises `SandboxEndedError`."""
        answer = self._exchange(question)
        try:
            match question:
                case Introduce(number=number):
                    return replace(read(Introduced, answer), number=number)
                case Assign(snapshot=asked):
                    epoch, snapshot_id = asked.group_epoch, asked.snapshot_id
                    assigned = read(Assigned, answer)
                    return replace(assigned, group_epoch=epoch, snapshot_id=snapshot_id)
                case _:
                    return read(Noted, answer)
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
        program = [sys.executable, "-m", sandboxed.__name__, str(descriptor), log, me, level]
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
        case Assign():
            asked = question.snapshot
            return Assigned(asked.group_epoch, None, why, asked.snapshot_id)
        case Introduce():
            return Introduced(question.number, (), (why,))
        case _:
            return NOTED
