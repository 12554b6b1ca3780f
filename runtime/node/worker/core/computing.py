"""A member's part in computing an assignment: Prepare, compute, Install (PROTOCOL §5).

Errors have another meaning here than in a heartbeat: UNKNOWN_MEMBER_ID only drops the computation,
FENCED_MEMBER_EPOCH asks for the same message with the member's current epoch.
"""

from .....actors.messages.assignors import ComputeAssignment, ComputeAssignmentReply
from .....actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from .....actors.messages.errors import Error
from .....actors.messages.members import NO_COORDINATOR_EPOCH
from .....actors.timing import earliest

RETRY_MS = 50
RETRY_ASSIGN_MS = 1_000
LOST_MS = 4_500
"""How long a reply may take before the message is repeated: both sides accept duplicates."""

OVERDUE_MS = 1_000
"""How long before the group's timeout the assignor counts as hanging: its process has to be
replaced before the group asks another member, who may use the same process."""
ENDS_BORNE = 2
"""How many assignor processes may end over a computation before it is given up."""


class Computing:
    """At most one computation at a time; each call returns the message to send."""

    def __init__(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self._timeout_ms = timeout_ms
        self._margin_ms = min(OVERDUE_MS, timeout_ms // 10)
        """How long before `_until_ms` the assignor counts as hanging."""
        self._reset()

    def _reset(self) -> None:
        self._coordinator_epoch = NO_COORDINATOR_EPOCH
        """The epoch of the group's process that asked for it."""
        self._until_ms: int | None = None
        """When the group will ask another member; None: there is no computation."""
        self._retry_at_ms: int | None = None
        """When to repeat Prepare or Install; None: no reply is pending."""
        self._snapshot: Snapshot | None = None
        """The input of the assignor, once the group has sent it."""
        self._result: ComputeAssignmentReply | None = None
        """The output of the assignor."""
        self._assign_at_ms: int | None = None
        """When to repeat a question that the busy assignor process did not receive."""
        self._is_overdue = False
        """Whether the assignor process was reported as hanging."""
        self._ends = 0
        """How many assignor processes have ended over this computation."""

    @property
    def is_busy(self) -> bool:
        """Return whether there is a computation."""
        return self._until_ms is not None

    def begin(
        self, epoch: int, now_ms: int, coordinator_epoch: int = NO_COORDINATOR_EPOCH
    ) -> Prepare:
        """Begin a computation that the group's process of this epoch asks for: send Prepare."""
        self._reset()
        self._coordinator_epoch = coordinator_epoch
        self._until_ms = now_ms + self._timeout_ms
        self._retry_at_ms = now_ms + LOST_MS
        return Prepare(self._group_id, self._member_id, epoch)

    def take_snapshot(self, reply: PrepareReply, now_ms: int) -> ComputeAssignment | None:
        """Store the group's snapshot, and return the question for the assignor."""
        if not self.is_busy or self._snapshot is not None:
            return None
        if reply.error is Error.FENCED_MEMBER_EPOCH:
            self._retry_at_ms = now_ms + RETRY_MS
            return None
        if reply.error is not Error.NONE or reply.snapshot is None:
            self._reset()
            return None
        self._snapshot, self._retry_at_ms = reply.snapshot, None
        return ComputeAssignment(reply.snapshot, self._member_id)

    def take_result(
        self, result: ComputeAssignmentReply, epoch: int, now_ms: int
    ) -> Install | None:
        """Store the assignor's result, and return the Install for the group."""
        snapshot = self._snapshot
        if snapshot is None or not snapshot.is_named(result.group_epoch, result.snapshot_id):
            return None
        self._result, self._retry_at_ms = result, now_ms + LOST_MS
        return self._install(result, epoch)

    def take_install_reply(self, reply: InstallReply, now_ms: int) -> None:
        """End the computation, or retry Install if the member's epoch was outdated.

        A reply that comes before an Install was sent belongs to an earlier computation.
        """
        if self._result is None:
            return
        if reply.error is Error.FENCED_MEMBER_EPOCH:
            self._retry_at_ms = now_ms + RETRY_MS
        else:
            self._reset()

    def ask_anew(self, epoch: int, now_ms: int) -> ComputeAssignment | Install | None:
        """Repeat the question to a new assignor process, unless too many have ended over it."""
        snapshot = self._unanswered()
        if snapshot is None:
            return None
        self._ends, self._assign_at_ms = self._ends + 1, None
        if self._ends <= ENDS_BORNE:
            return ComputeAssignment(snapshot, self._member_id)
        error = f"the process of assignor {snapshot.assignor} ended {self._ends} times over it"
        return self.take_result(
            ComputeAssignmentReply(snapshot.group_epoch, None, error, snapshot.snapshot_id),
            epoch,
            now_ms,
        )

    def retry_later(self, question: ComputeAssignment, now_ms: int) -> None:
        """Schedule a retry of a question that the assignor process did not receive."""
        if question.snapshot is self._unanswered():
            self._assign_at_ms = now_ms + RETRY_ASSIGN_MS

    def ask_again(self, now_ms: int) -> ComputeAssignment | None:
        """Return the question to repeat, when its retry is due."""
        snapshot = self._unanswered()
        if snapshot is None or self._assign_at_ms is None or now_ms < self._assign_at_ms:
            return None
        self._assign_at_ms = None
        return ComputeAssignment(snapshot, self._member_id)

    def overdue(self, now_ms: int) -> bool:
        """Return, once, whether the assignor has not answered in time; the question is dropped."""
        if self._unanswered() is None or self._until_ms is None:
            return False
        self._is_overdue = now_ms >= self._until_ms - self._margin_ms
        return self._is_overdue

    def _unanswered(self) -> Snapshot | None:
        """Return the snapshot of the question that the assignor has not answered yet."""
        return None if self._result is not None or self._is_overdue else self._snapshot

    def move_to(self, coordinator_epoch: int) -> None:
        """Drop the computation of a former group process: the new one does not know it.

        The new process may have asked for its own already, before this worker got its address.
        """
        if coordinator_epoch != self._coordinator_epoch:
            self._reset()

    def tick(self, epoch: int, now_ms: int) -> Prepare | Install | None:
        """Return Prepare or Install to repeat; give up a computation that takes too long."""
        if self._until_ms is not None and now_ms >= self._until_ms:
            self._reset()
        if self._retry_at_ms is None or now_ms < self._retry_at_ms:
            return None
        self._retry_at_ms = now_ms + LOST_MS
        if self._result is not None:
            return self._install(self._result, epoch)
        return Prepare(self._group_id, self._member_id, epoch)

    def next_tick_ms(self) -> int | None:
        """Return when `tick`, `ask_again` or `overdue` has something to do, None if never."""
        if self._until_ms is None:
            return None
        if self._unanswered() is None:
            return earliest(self._until_ms, self._retry_at_ms)
        overdue_ms = self._until_ms - self._margin_ms
        return earliest(overdue_ms, self._retry_at_ms, self._assign_at_ms)

    def _install(self, result: ComputeAssignmentReply, epoch: int) -> Install:
        assignment: Assignment | None = result.assignment
        return Install(
            self._group_id,
            self._member_id,
            epoch,
            result.group_epoch,
            assignment,
            result.error,
            result.snapshot_id,
        )
