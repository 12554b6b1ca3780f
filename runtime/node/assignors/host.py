"""The host of assignors: it keeps one set of assignor objects for each worker, and calls them.

Whatever they raise or return, a worker gets a valid answer.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from ....actors.assignors.sdk import AssignorFactory, ConnectAssignor
from ....actors.group.computing.install import flaw_in
from ....actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    DescribeAssignorsReply,
    ForgetWorker,
    MemberAssignment,
    NotifyAssignment,
    NotifyAssignmentReply,
    Worker,
)
from ....actors.messages.computing import Assignment, Snapshot
from ....events.model import ClientAssignor
from ...cluster.spec import AssignorSpec
from ...processes.isolation import has_room, limit_memory, lower_priority, show_in_title
from .discovery import (
    AssignorRefusedError,
    find_assignor,
    find_server_assignor,
    make_assignor,
)
from .user_code import (
    USERS_ERRORS,
    client_assignor,
    describe,
    log_trace,
    one_line,
    plain_assignment,
)

LOGGER = logging.getLogger(__name__)

Assignors = Mapping[str, ConnectAssignor]
"""The assignors of one member, by name."""

Show = Callable[[str], AbstractContextManager[object]]
"""Shows the current activity, in the process title, while its context is open."""


class AssignorHost:
    """All assignors of one process, for each member; raises `AssignorRefusedError`."""

    def __init__(
        self,
        names: Sequence[str],
        conf: Mapping[str, str],
        show: Show = nullcontext,
        *,
        serves: bool = False,
    ) -> None:
        """Load assignors by name, in the order of preference; `conf` is passed to each.

        Those that `serves` are run by groups, for no member.
        """
        self._conf, self._serves = dict(conf), serves
        find = find_server_assignor if serves else find_assignor
        self._show = show
        self._factories: dict[str, AssignorFactory] = {}
        """By name, in the order of preference."""
        for name in names:
            with show(f"loading {name}"):
                self._factories[name] = find(name)
        self._assignors: dict[str, Assignors] = {}
        """By member id."""
        self._members: dict[str, str] = {}
        """The member id of each worker, by the worker's name."""
        self._logged: dict[str, str] = {}
        """The last error that was logged, by the call that failed."""
        self._has_starved = False
        """Whether a call ran out of memory since the last call of `is_full`."""
        self._spare: Assignors | None = self._make()
        """The assignors of the next member: created now, so that errors are found at the start."""

    def answer(
        self, question: DescribeAssignors | ComputeAssignment | NotifyAssignment | ForgetWorker
    ) -> DescribeAssignorsReply | ComputeAssignmentReply | NotifyAssignmentReply | None:
        """Dispatch a question to its method; None if no answer is expected."""
        match question:
            case DescribeAssignors(member_id, worker, number):
                return self.describe_assignors(member_id, worker, number)
            case ComputeAssignment(snapshot, member_id):
                return self.assign(member_id, snapshot)
            case NotifyAssignment(name, assignment, number):
                self.notify(name, assignment)
                return NotifyAssignmentReply(number)
            case ForgetWorker(worker):
                self.forget(worker)
                return None

    def describe_assignors(
        self, member_id: str, worker: Worker, number: int
    ) -> DescribeAssignorsReply:
        """Call `metadata` of each assignor of a member; return the results and the errors."""
        if self._members.get(worker.name, member_id) != member_id:
            self.forget(worker.name)
        self._members[worker.name] = member_id
        described: list[ClientAssignor] = []
        errors: list[str] = []
        try:
            assignors = self._assignors_of(member_id)
        except AssignorRefusedError as error:
            return DescribeAssignorsReply(number, (), (str(error),))
        for name, assignor in assignors.items():
            try:
                with self._show(f"calling {name}.metadata"):
                    described.append(client_assignor(assignor, name, assignor.metadata(worker)))
            except USERS_ERRORS as error:
                errors.append(f"assignor {name} said nothing: {describe(error)}")
                self._log(f"assignor {name} says nothing of {worker.name}", error)
        return DescribeAssignorsReply(number, tuple(described), tuple(errors))

    def assign(self, member_id: str, snapshot: Snapshot) -> ComputeAssignmentReply:
        """Compute an assignment with the assignor that the snapshot names."""
        made, error = self._compute(member_id, snapshot)
        return ComputeAssignmentReply(snapshot.group_epoch, made, error, snapshot.snapshot_id)

    def _compute(self, member_id: str, snapshot: Snapshot) -> tuple[Assignment | None, str]:
        """Return the assignment, or None and the error."""
        name = snapshot.assignor
        if name not in self._factories:
            known = ", ".join(self._factories)
            return None, f"there is no assignor {name!r} here: only {known}"
        try:
            assignor = self._assignors_of(member_id)[name]
            with self._show(f"calling {name}.assign"):
                assignment = plain_assignment(assignor.assign(snapshot))
            flaw = flaw_in(assignment, snapshot)
        except USERS_ERRORS as error:
            self._log(f"assignor {name} made no assignment", error)
            return None, f"assignor {name}: {describe(error)}"
        if flaw:  # the group checks the same, but only after the whole assignment was sent
            return None, f"assignor {name}: {one_line(flaw)}"
        return assignment, ""

    def notify(self, name: str, assignment: MemberAssignment) -> None:
        """Call `on_assignment` of an assignor with the assignment that its worker received."""
        assignors = self._assignors.get(assignment.member_id, {})
        if name not in assignors:
            return
        try:
            with self._show(f"calling {name}.on_assignment"):
                assignors[name].on_assignment(assignment)
        except USERS_ERRORS as error:
            self._log(f"assignor {name} failed on an assignment", error)

    def is_full(self, memory_bytes: int) -> bool:
        """Return whether a call ran out of memory and nearly all memory is still in use."""
        has_starved, self._has_starved = self._has_starved, False
        return has_starved and not has_room(memory_bytes)

    def forget(self, worker: str) -> None:
        """Drop the assignors of a worker, and of all members without a known worker."""
        self._members.pop(worker, None)
        known = set(self._members.values())
        self._assignors = {
            each: assignors for each, assignors in self._assignors.items() if each in known
        }

    def _log(self, what: str, error: BaseException) -> None:
        """Log an error, unless the same call failed with the same error last time."""
        self._has_starved |= issubclass(type(error), MemoryError)
        description = describe(error)
        if self._logged.get(what) != description:
            self._logged[what] = description
            log_trace(LOGGER, what, error)

    def _assignors_of(self, member_id: str) -> Assignors:
        if member_id not in self._assignors:
            self._assignors[member_id] = self._spare or self._make()
            self._spare = None
        return self._assignors[member_id]

    def _make(self) -> Assignors:
        assignors: dict[str, ConnectAssignor] = {}
        for name, make in self._factories.items():
            with self._show(f"making {name}"):
                assignors[name] = make_assignor(name, make, self._conf, serves=self._serves)
        return assignors


def load_host(spec: AssignorSpec) -> AssignorHost:
    """Limit the memory of this process and load its assignors; the title shows its activity.

    Raises `AssignorRefusedError`, with the cause in the log.
    """
    try:
        limit = limit_memory(spec.memory_bytes, is_for_children=True)
        if limit < spec.memory_bytes:
            told = "assignors get %d bytes, not %d: ulimit -d says so"
            LOGGER.warning(told, limit, spec.memory_bytes)
        lower_priority()
        return AssignorHost(spec.names, spec.conf, show_in_title, serves=spec.serves)
    except AssignorRefusedError as error:
        log_trace(LOGGER, "an assignor is refused", error)
        raise
    except USERS_ERRORS as error:
        log_trace(LOGGER, "the assignors cannot be loaded", error)
        why = f"the assignors cannot be loaded: {describe(error)}"
        raise AssignorRefusedError(why) from None
