"""A member's part in computing an assignment: Prepare, compute, Install (PROTOCOL §5).

The answers' errors mean something else here than in a heartbeat: UNKNOWN_MEMBER_ID drops
the computation and nothing else, FENCED_MEMBER_EPOCH asks to send the same with the epoch
that the member has reached meanwhile.
"""

from ...actors.assignor_actor import Assign, Assigned
from ...actors.errors import Error
from ...actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)

RETRY_MS = 50
LOST_MS = 4_500
"""How long an answer may take before the same is asked again: both ends take it twice."""


class Computing:
    """At most one computation; every call returns what is to be sent because of it."""

    def __init__(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self._timeout_ms = timeout_ms
        self._reset()

    def _reset(self) -> None:
        self._until_ms: int | None = None
        self._retry_at_ms: int | None = None
        self._snapshot: Snapshot | None = None
        self._result: Assigned | None = None

    @property
    def is_busy(self) -> bool:
        """Tell whether there is a computation."""
        return self._until_ms is not None

    def begin(self, epoch: int, now_ms: int) -> Prepare:
        """Ask the group for what is needed."""
        self._reset()
        self._until_ms = now_ms + self._timeout_ms
        self._retry_at_ms = now_ms + LOST_MS
        return Prepare(self._group_id, self._member_id, epoch)

    def prepared(self, reply: PrepareReply, now_ms: int) -> Assign | None:
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
        return Assign(reply.snapshot)

    def assigned(self, result: Assigned, epoch: int, now_ms: int) -> Install | None:
        """Hand in what the assignor made of it."""
        if self._snapshot is None or self._snapshot.group_epoch != result.group_epoch:
            return None
        self._result, self._retry_at_ms = result, now_ms + LOST_MS
        return self._install(result, epoch)

    def installed(self, reply: InstallReply, now_ms: int) -> None:
        """Be done, unless the member's epoch was not the one it has reached."""
        if self._result is not None and reply.error is Error.FENCED_MEMBER_EPOCH:
            self._retry_at_ms = now_ms + RETRY_MS
        else:
            self._reset()

    def assignor_moved(self) -> Assign | None:
        """Ask the new assignor what the old one did not answer."""
        if self._snapshot is None or self._result is not None:
            return None
        return Assign(self._snapshot)

    def drop(self) -> None:
        """Forget the computation: the group will ask again."""
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

    def _install(self, result: Assigned, epoch: int) -> Install:
        assignment: Assignment | None = result.assignment
        return Install(
            self._group_id, self._member_id, epoch, result.group_epoch, assignment, result.error
        )
