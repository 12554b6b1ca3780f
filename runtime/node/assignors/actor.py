"""The assignor process of a node: it answers its workers' questions off the heartbeat path.

It opens in two steps, so that the supervisor knows its process before any third-party code runs; a
process that does not answer is killed, and replaced. Third-party assignors run in a `Sandbox`;
where all are built in, they run in this process.
"""

import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from ....actors.assignors.built_in.catalogue import BUILT_IN
from ....actors.door.actor import Actor, Address
from ....actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    ForgetWorker,
    NotifyAssignment,
)
from ...cluster.messages import AssignorsOpen, AssignorUp, OpenAssignors
from ...cluster.spec import AssignorSpec
from .discovery import AssignorRefusedError
from .guard import adopt_orphans, end_descendants
from .host import AssignorHost, load_host
from .isolation import isolate
from .sandbox import Answer, Question, Sandbox, SandboxEndedError

LOGGER = logging.getLogger(__name__)
FULL = "assignors kept all memory that they may take (assignor.memory.max): another process begins"
LOOK_SECONDS = 0.5
"""How often this process checks that its sandbox still runs."""
EXIT_SANDBOX = 1
"""The exit code where the sandbox has ended by itself."""


class AssignorActor(Actor):
    """Runs the assignors of a node's workers."""

    _spec: AssignorSpec
    """What this process is to load."""
    _log_file: Path
    _supervisor: Address
    _host: AssignorHost | None = None
    """Set once all is loaded, where all assignors are built in."""
    _sandbox: Sandbox | None = None
    """Set instead of the host where there are third-party assignors."""

    def receive(self, message: object, sender: Address) -> None:
        """Take the order to open, or a worker's question."""
        match message:
            case OpenAssignors():
                self._spec, self._log_file = message.assignors, message.log_file
                self._supervisor = sender
                if not needs_sandbox(self._spec.names):
                    isolate(self._log_file, os.getpid())
                self.send(sender, AssignorUp(os.getpid()))
                self.wake_after(0)
            case DescribeAssignors() | ComputeAssignment() | NotifyAssignment() | ForgetWorker():
                answer = self._answer(message)
                if answer is not None and not isinstance(message, ForgetWorker):
                    self.send(sender, answer)
                self._end_if_full()
            case _:
                raise TypeError(f"an assignor does not understand {type(message).__name__}")

    def _answer(self, question: Question) -> Answer | None:
        if self._sandbox is None:
            return None if self._host is None else self._host.answer(question)
        try:
            return self._sandbox.ask(question)
        except SandboxEndedError as error:
            self._end_with_sandbox(str(error))
            return None

    def _end_if_full(self) -> None:
        """Have another process begin if the memory of this one is full: all would fail here."""
        if self._sandbox is not None:
            is_full = self._sandbox.is_full
        else:
            is_full = self._host is not None and self._host.is_full(self._spec.memory_bytes)
        if is_full:
            self.send(self._supervisor, AssignorsOpen(os.getpid(), FULL))

    def woken(self, payload: object) -> None:
        """Load the assignors, or check that their sandbox still runs."""
        del payload
        if self._sandbox is not None:
            if self._sandbox.why_ended():
                self._end_with_sandbox(self._sandbox.why_ended())
            self.wake_after(LOOK_SECONDS)
            return
        why = self._open_sandbox() if needs_sandbox(self._spec.names) else self._open_host()
        self.send(self._supervisor, AssignorsOpen(os.getpid(), why))

    def stopping(self) -> None:
        """End the sandbox."""
        if self._sandbox is not None:
            self._sandbox.end()
            end_descendants()

    def _open_sandbox(self) -> str:
        adopt_orphans()  # what a sandbox leaves behind whose guard was killed
        self._sandbox = sandbox = Sandbox(self._spec, self._log_file)

        def abort(_number: int, _frame: FrameType | None) -> None:
            sandbox.abort()

        signal.signal(signal.SIGABRT, abort)
        self.wake_after(LOOK_SECONDS)
        try:
            return sandbox.open()
        except SandboxEndedError as error:
            return self._end_with_sandbox(str(error))

    def _open_host(self) -> str:
        try:
            self._host = load_host(self._spec)
        except AssignorRefusedError as error:
            return str(error)
        return ""

    def _end_with_sandbox(self, why: str) -> str:
        """End with the sandbox, so that another one begins, or tell the supervisor why it ended."""
        LOGGER.error("the sandbox of assignors is gone: %s", why)
        end_descendants()
        if self._sandbox is not None and self._sandbox.ended_by_itself:
            self.die(EXIT_SANDBOX)
        self.send(self._supervisor, AssignorsOpen(os.getpid(), why))
        return why

    def undelivered(self, message: object, to: Address) -> None:
        """Tell a worker whose assignment is too large to be sent that it gets none."""
        super().undelivered(message, to)
        if isinstance(message, ComputeAssignmentReply) and message.assignment is not None:
            error = "the assignment was computed, and could not be sent"
            self.send(to, replace(message, assignment=None, error=error))


def needs_sandbox(names: Sequence[str]) -> bool:
    """Tell whether any of these assignors is a third party's."""
    return not all(name in BUILT_IN for name in names)
