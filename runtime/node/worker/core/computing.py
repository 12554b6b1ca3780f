"""A member's part in computing an assignment: Prepare, compute, Install (PROTOCOL §5).

The answers' errors mean something else here than in a heartbeat: UNKNOWN_MEMBER_ID drops
the computation and nothing else, FENCED_MEMBER_EPOCH asks to send the same with the epoch
that the member has reached meanwhile.
"""

from .....actors.backoff import earliest
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

RETRY_MS = 50
RETRY_ASSIGN_MS = 1_000
LOST_MS = 4_500
"""How long an answer may take before the same is asked again: both ends take it twice."""

OVERDUE_MS = 1_000
"""So long before the group turns to another member, the assignor is taken to hang: by then
another process is to run, since it may be that of the other member's assignor as well."""
ENDS_BORNE = 2
"""After how many ends of its process a computation is not asked for once more."""


class Computing:
    """At most one computation; every call returns what is to be sent because of it."""

    def __init__(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self._timeout_ms = timeout_ms
        self._margin_ms = min(OVERDUE_MS, timeout_ms // 10)
        """How long before `_until_ms` the assignor is taken to hang."""
        self._reset()

    def _reset(self) -> None:
        self._coordinator_epoch = NO_COORDINATOR_EPOCH
        """The number of the group's process that asked for it."""
        self._until_ms: int | None = None
        """When the group will turn to another member; None: nothing is being computed."""
        self._retry_at_ms: int | None = None
        """When to send Prepare or Install once more; None: no answer to either is waited for."""
        self._snapshot: Snapshot | None = None
        """What the assignor is to compute from, once the group has said so."""
        self._result: ComputeAssignmentReply | None = None
        """What it made of that."""
        self._assign_at_ms: int | None = None
        """When to put a question to the assignor process again that it had no time to take."""
        self._is_overdue = False
        """Whether the assignor process was reported as hanging."""
        self._ends = 0
        """How many of its processes have ended over this computation."""

    @property
    def is_busy(self) -> bool:
        """Tell whether there is a computation."""
        return self._until_ms is not None

    def begin(
        self, epoch: int, now_ms: int, coordinator_epoch: int = NO_COORDINATOR_EPOCH
    ) -> Prepare:
        """Ask the group for what is needed: its process of that number wants a target."""
        self._reset()
        self._coordinator_epoch = coordinator_epoch
        self._until_ms = now_ms + self._timeout_ms
        self._retry_at_ms = now_ms + LOST_MS
        return Prepare(self._group_id, self._member_id, epoch)

    def take_snapshot(self, reply: PrepareReply, now_ms: int) -> ComputeAssignment | None:
        """Have the assignor compute."""
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
        """Hand in what the assignor made of it."""
        snapshot = self._snapshot
        if snapshot is None or not snapshot.is_named(result.group_epoch, result.snapshot_id):
            return None
        self._result, self._retry_at_ms = result, now_ms + LOST_MS
        return self._install(result, epoch)

    def take_install_reply(self, reply: InstallReply, now_ms: int) -> None:
        """Be done, unless the member's epoch was not the one it has reached.

        An answer that comes while nothing was handed in is to an earlier computation.
        """
        if self._result is None:
            return
        if reply.error is Error.FENCED_MEMBER_EPOCH:
            self._retry_at_ms = now_ms + RETRY_MS
        else:
            self._reset()

    def ask_anew(self, epoch: int, now_ms: int) -> ComputeAssignment | Install | None:
        """Ask the new process what the old one did not answer, unless it ends every time."""
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

    def put_off(self, asked: ComputeAssignment, now_ms: int) -> None:
        """Ask again in a moment: the assignor has not taken the question."""
        if asked.snapshot is self._unanswered():
            self._assign_at_ms = now_ms + RETRY_ASSIGN_MS

    def ask_again(self, now_ms: int) -> ComputeAssignment | None:
        """Return the question that the assignor did not take, when it is time."""
        snapshot = self._unanswered()
        if snapshot is None or self._assign_at_ms is None or now_ms < self._assign_at_ms:
            return None
        self._assign_at_ms = None
        return ComputeAssignment(snapshot, self._member_id)

    def overdue(self, now_ms: int) -> bool:
        """Tell, once, that the assignor has not answered in time: it is asked no more."""
        if self._unanswered() is None or self._until_ms is None:
            return False
        self._is_overdue = now_ms >= self._until_ms - self._margin_ms
        return self._is_overdue

    def _unanswered(self) -> Snapshot | None:
        """Return what the assignor is asked to compute from and has not answered yet."""
        return None if self._result is not None or self._is_overdue else self._snapshot

    def move_to(self, coordinator_epoch: int) -> None:
        """Turn to another process of the group: it knows of no computation but its own.

        It may have asked for one already, before this worker was told of the process.
        """
        if coordinator_epoch != self._coordinator_epoch:
            self._reset()

    def tick(self, epoch: int, now_ms: int) -> Prepare | Install | None:
        """Send again what was refused because of the epoch; give up what takes too long."""
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
