"""The assignors for a plan: built-in ones in this process, third-party ones in a sandbox.

The sandbox process is started by the first question of a plan, and killed with its children when
the plan is finished or takes too long. Its answers are decoded as plain data.
"""

import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self

from ...actors.assignors.built_in.catalogue import BUILT_IN
from ...actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    DescribeAssignorsReply,
    Metadata,
    Worker,
)
from ...actors.messages.computing import Assignment, Snapshot
from ...actors.messages.errors import Error
from ..cluster.spec import AssignorSpec
from ..node.assignors.sandbox import Answer, Question, Sandbox, SandboxEndedError
from ..processes.isolation import read_activity
from .dry_run import DryRunAssignor, PlanError

MEMBER = "plan"
"""The member id in all questions: one set of assignors serves all members."""


class PlanSandbox:
    """The sandbox process of one plan."""

    def __init__(self, spec: AssignorSpec, log_file: Path, late_at: float) -> None:
        """Use the assignors of `spec`; `log_file` gets their output.

        They answer until `late_at`, on the monotonic clock.
        """
        names = tuple(name for name in spec.names if name not in BUILT_IN)
        self._spec = replace(spec, names=names)
        self._log_file = log_file
        self._late_at = late_at
        self._sandbox: Sandbox | None = None
        self._alarm: threading.Timer | None = None
        self._why = ""
        """Why the process was killed from here; "" if it was not."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process, if there is one."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._sandbox is not None:
            self._sandbox.end()

    def assignors(self) -> Mapping[str, "SandboxedAssignor"]:
        """Return each third-party assignor, by name."""
        return {name: SandboxedAssignor(self, name) for name in self._spec.names}

    def ask(self, name: str, question: Question) -> Answer:
        """Return the answer of an assignor; raises `PlanError`."""
        try:
            sandbox = self._sandbox or self._start(name)
            return sandbox.ask(question)
        except SandboxEndedError as error:
            raise _refusal(name, self._why or str(error)) from None

    def _start(self, name: str) -> Sandbox:
        """Start the process, and check that the assignors can be loaded."""
        self._sandbox = Sandbox(self._spec, self._log_file)
        self._alarm = threading.Timer(max(0.0, self._late_at - time.monotonic()), self._too_late)
        self._alarm.daemon = True
        self._alarm.start()
        if why := self._sandbox.open():
            raise _refusal(name, why)
        return self._sandbox

    def _too_late(self) -> None:
        if self._sandbox is None:
            return
        activity = read_activity(self._sandbox.pid)
        while_so = f" ({activity})" if activity else ""
        self._why = f"it did not answer in time{while_so}, and was ended"
        self._sandbox.stop()


class SandboxedAssignor:
    """A third-party assignor in the sandbox, with the interface of a built-in one."""

    def __init__(self, sandbox: PlanSandbox, name: str) -> None:
        self._sandbox = sandbox
        self._name = name

    def metadata(self, worker: Worker) -> Metadata:
        """Return the assignor's metadata for a worker that joins; raises `PlanError`."""
        reply = self._sandbox.ask(self._name, DescribeAssignors(MEMBER, worker, 0))
        if not isinstance(reply, DescribeAssignorsReply):
            raise _refusal(self._name, "it says nothing of a new worker")
        for each in reply.assignors:
            if each.name == self._name:
                return Metadata(each.version, each.reason, each.metadata)
        raise _refusal(self._name, "; ".join(reply.errors) or "it says nothing of a new worker")

    def assign(self, group: Snapshot) -> Assignment:
        """Compute an assignment; raises `PlanError`."""
        reply = self._sandbox.ask(self._name, ComputeAssignment(group, MEMBER))
        if not isinstance(reply, ComputeAssignmentReply) or reply.assignment is None:
            raise _refusal(
                self._name,
                reply.error if isinstance(reply, ComputeAssignmentReply) else "no answer",
            )
        return reply.assignment


def _refusal(name: str, why: str) -> PlanError:
    text = f"no plan can be made with assignor {name}: {why}; the group was not touched"
    return PlanError(Error.INVALID_ASSIGNMENT, text)


NO_CONF: Mapping[str, str] = MappingProxyType({})


def built_in_assignors(conf: Mapping[str, str] = NO_CONF) -> Mapping[str, DryRunAssignor]:
    """Return the built-in assignors with these settings, by name."""
    return {name: make(conf) for name, make in BUILT_IN.items()}


@dataclass(frozen=True, slots=True)
class _TimedAssignor:
    """An assignor that raises `PlanError` once the plan takes too long."""

    assignor: DryRunAssignor
    late_at: float
    """On the monotonic clock."""
    seconds: float
    """The time limit of the plan."""

    def metadata(self, worker: Worker) -> Metadata:
        self._check_time()
        return self.assignor.metadata(worker)

    def assign(self, group: Snapshot) -> Assignment:
        self._check_time()
        return self.assignor.assign(group)

    def _check_time(self) -> None:
        if time.monotonic() > self.late_at:
            late = f"the plan takes longer than {self.seconds} s: plan for fewer changes at once"
            raise PlanError(Error.INVALID_ASSIGNMENT, late)


@contextmanager
def all_assignors(
    spec: AssignorSpec, log_file: Path, seconds: float
) -> Generator[Mapping[str, DryRunAssignor]]:
    """Yield the built-in and third-party assignors of a node's workers, for one plan.

    They answer for so many seconds; `log_file` gets the output of third-party ones.
    """
    late_at = time.monotonic() + seconds
    with PlanSandbox(spec, log_file, late_at) as sandbox:
        assignors = {**built_in_assignors(spec.conf), **sandbox.assignors()}
        yield {name: _TimedAssignor(each, late_at, seconds) for name, each in assignors.items()}
