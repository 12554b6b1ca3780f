"""Assignors of others, as a plan asks them: in a process that lives for this plan alone.

It is started by the first question, and ended with all that it has started when the plan is
made, or when it takes too long. What it answers is read as plain data.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

from ...actors.assignors.built_in import BUILT_IN
from ...actors.assignors.interface import Metadata, Worker
from ...actors.errors import Error
from ...actors.messages.computing import Assignment, Snapshot
from ...actors.planning.rehearsal import CannotPlan
from ..assignors import understudy
from ..assignors.results import WrongResultError
from ..assignors.telling import read_assigned, read_introduced
from ..node.ending import deed_of, kill_group
from ..node.spec import AssignorSpec
from ..spark import tether

ANSWER_BYTES = 64 << 20
"""How long an answer may be."""
END_SECONDS = 10.0


class Understudies:
    """All assignors of others that a node's workers may compute with, for one plan."""

    def __init__(self, spec: AssignorSpec, log_file: Path, late_at: float) -> None:
        """They answer until `late_at`, on the monotonic clock; `log_file` gets what they print."""
        names = tuple(name for name in spec.names if name not in BUILT_IN)
        self._order = understudy.Order(replace(spec, names=names), log_file)
        self._late_at = late_at
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._alarm: threading.Timer | None = None
        self._why = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End their process, if there is one."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._kill()
            self._process.wait(END_SECONDS)

    def cast(self) -> Mapping[str, "Apart"]:
        """Return each of them, by name."""
        return {name: Apart(self, name) for name in self._order.assignors.names}

    def ask(self, name: str, question: understudy.Question) -> bytes:
        """Return what is answered; raises `CannotPlan`."""
        try:
            pipe = self._pipe or self._start(name)
            pipe.send(question)
            return pipe.recv_bytes(ANSWER_BYTES)
        except (EOFError, OSError) as error:
            ended = f"its process ended ({str(error) or 'without an answer'})"
            raise _refusal(name, self._why or ended) from None

    def _start(self, name: str) -> Connection:
        """Start the process, and see that the assignors can be used at all."""
        self._pipe, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  # no shell, and nothing of a request
                _command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        self._alarm = threading.Timer(max(0.0, self._late_at - time.monotonic()), self._too_late)
        self._alarm.daemon = True
        self._alarm.start()
        self._pipe.send(self._order)
        opened = read_introduced(self._pipe.recv_bytes(ANSWER_BYTES))
        if opened.errors:
            raise _refusal(name, opened.errors[0])
        return self._pipe

    def _too_late(self) -> None:
        if self._process is None:
            return
        deed = deed_of(self._process.pid)
        self._why = f"it did not answer in time{f' ({deed})' if deed else ''}, and was ended"
        self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            kill_group(self._process.pid)
            with suppress(OSError):
                self._process.kill()


class Apart:
    """One assignor of others, asked as one of fairlead's own would be."""

    def __init__(self, others: Understudies, name: str) -> None:
        self._others = others
        self._name = name

    def metadata(self, worker: Worker) -> Metadata:
        """Return what it says for a worker that joins; raises `CannotPlan`."""
        try:
            reply = read_introduced(self._others.ask(self._name, worker))
        except WrongResultError as error:
            raise _refusal(self._name, str(error)) from None
        for each in reply.assignors:
            if each.name == self._name:
                return Metadata(each.version, each.reason, each.metadata)
        raise _refusal(self._name, "; ".join(reply.errors) or "it says nothing of a new worker")

    def assign(self, group: Snapshot) -> Assignment:
        """Return what it makes of a group; raises `CannotPlan`."""
        try:
            reply = read_assigned(self._others.ask(self._name, group))
        except WrongResultError as error:
            raise _refusal(self._name, str(error)) from None
        if reply.assignment is None:
            raise _refusal(self._name, reply.error)
        return reply.assignment


def _refusal(name: str, why: str) -> CannotPlan:
    text = f"no plan can be made with assignor {name}: {why}; the group was not touched"
    return CannotPlan(Error.INVALID_ASSIGNMENT, text)


def _command(descriptor: int) -> list[str]:
    tied = [sys.executable, "-I", "-S", str(tether.__file__), str(os.getpid())]
    return [*tied, sys.executable, "-m", understudy.__name__, str(descriptor)]
