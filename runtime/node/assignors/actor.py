"""The actor of the assignor process: it computes for the node's workers, off the heartbeat path.

It starts in two steps, so that the supervisor knows its pid before any third-party code runs; the
supervisor kills and replaces a process that does not answer. If all assignors are built in, they
run in this process; otherwise all run in a `Sandbox`.
"""

import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from ....actors.assignors.built_in.catalogue import BUILT_IN
from ....actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    ForgetWorker,
    NotifyAssignment,
)
from ....actors.transport.actor import Actor, Address
from ...cluster.messages import AssignorsOpen, AssignorUp, OpenAssignors
from ...cluster.spec import AssignorSpec
from ...processes.guard import adopt_orphans, end_descendants
from ...processes.isolation import isolate
from .discovery import AssignorRefusedError
from .host import AssignorHost, load_host
from .sandbox import Answer, Question, Sandbox, SandboxEndedError

LOGGER = logging.getLogger(__name__)
FULL = "the assignors used up assignor.memory.max: their process is replaced"
LOOK_SECONDS = 0.5
"""How often this process checks that its sandbox still runs."""
EXIT_SANDBOX = 1
"""The exit code where the sandbox has ended by itself."""


class AssignorActor(Actor):
    """Runs the assignors of a node's workers, in this process or in a sandbox."""

    _spec: AssignorSpec
    """Which assignors to load."""
    _log_file: Path
    _supervisor: Address
    _host: AssignorHost | None = None
    """Set once all is loaded, if all assignors are built in."""
    _sandbox: Sandbox | None = None
    """Set instead of `_host` if there are third-party assignors."""

    def receive(self, message: object, sender: Address) -> None:
        """Handle the supervisor's order to load assignors, or a worker's question."""
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
        """Ask for a replacement if the memory limit is reached: every further call would fail."""
        if self._sandbox is not None:
            is_full = self._sandbox.is_full
        else:
            is_full = self._host is not None and self._host.is_full(self._spec.memory_bytes)
        if is_full:
            self.send(self._supervisor, AssignorsOpen(os.getpid(), FULL))

    def woken(self, payload: object) -> None:
        """Load the assignors; later, check that their sandbox still runs."""
        del payload
        if self._sandbox is not None:
            if self._sandbox.why_ended():
                self._end_with_sandbox(self._sandbox.why_ended())
            self.wake_after(LOOK_SECONDS)
            return
        why = self._open_sandbox() if needs_sandbox(self._spec.names) else self._open_host()
        self.send(self._supervisor, AssignorsOpen(os.getpid(), why))

    def stopping(self) -> None:
        """End the sandbox and all processes below it."""
        if self._sandbox is not None:
            self._sandbox.end()
            end_descendants()

    def _open_sandbox(self) -> str:
        adopt_orphans()  # if the sandbox's guard is killed, its children become ours
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
        """Exit if the sandbox crashed, else report to the supervisor why it was ended.

        Returns `why`. Either way the supervisor starts a new process.
        """
        LOGGER.error("the sandbox of assignors is gone: %s", why)
        end_descendants()
        if self._sandbox is not None and self._sandbox.ended_by_itself:
            self.die(EXIT_SANDBOX)
        self.send(self._supervisor, AssignorsOpen(os.getpid(), why))
        return why

    def undelivered(self, message: object, to: Address) -> None:
        """Send an error in place of an assignment that could not be sent: it may be too large."""
        super().undelivered(message, to)
        if isinstance(message, ComputeAssignmentReply) and message.assignment is not None:
            error = "the assignment was computed, and could not be sent"
            self.send(to, replace(message, assignment=None, error=error))


def needs_sandbox(names: Sequence[str]) -> bool:
    """Return whether any of these assignors is not built in."""
    return not all(name in BUILT_IN for name in names)
