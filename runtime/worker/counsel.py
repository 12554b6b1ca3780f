"""A worker's side of its assignors: what they say for it, and whether they answer at all.

They live in the node's assignor process. A worker joins with what they say; that is asked
again when its facts change, when the process is another, and from time to time, since an
assignor may come to say something else. A process that owes an answer for too long is
reported, once, and replaced by the supervisor; no heartbeat waits for any of this.
"""

from ...actors.assignors.interface import MemberAssignment, Worker
from ...actors.messages.assignors import Given, Introduce, Introduced
from ...events.model import Assignor, Resources
from ...events.records import TargetAssignment

REPEAT_MS = 5_000
"""After which a question is asked again that nobody answered, or not well."""
REFRESH_MS = 10_000
"""How often the assignors may change their minds."""


class Counsel:
    """One worker's questions to its assignors; times in milliseconds on any one clock."""

    def __init__(self, member_id: str, worker: Worker, timeout_ms: int) -> None:
        self._member_id = member_id
        self._worker = worker
        self._timeout_ms = timeout_ms
        self.pid: int | None = None
        """The assignor process, if there is one to be asked."""
        self._number = 0
        self._waits_since_ms: int | None = None
        self._ask_at_ms = 0
        self._share: Resources | None = None
        self.is_known = False
        """Whether some assignor has spoken for the worker as it is now: it can join."""

    def moved(self, pid: int | None) -> None:
        """Turn to another process: nothing was asked of it, and it was told nothing."""
        self.pid = pid
        self._waits_since_ms, self._ask_at_ms = None, 0
        self._share = None

    def is_now(self, worker: Worker) -> None:
        """Have the assignors say anew what they say, if the worker's facts are others."""
        if self._worker != worker:
            self._worker = worker
            self._ask_at_ms, self.is_known = 0, False

    def tick(self, now_ms: int) -> Introduce | None:
        """Return what is to be asked by now, if anything."""
        if self.pid is None or now_ms < self._ask_at_ms:
            return None
        self._number += 1
        self._ask_at_ms = now_ms + REPEAT_MS
        if self._waits_since_ms is None:
            self._waits_since_ms = now_ms
        return Introduce(self._member_id, self._worker, self._number)

    def introduced(self, reply: Introduced, now_ms: int) -> tuple[Assignor, ...] | None:
        """Return what heartbeats are to say from now on; None: what they said before."""
        self._waits_since_ms = None
        if reply.number != self._number:
            return None  # its facts were others
        self._ask_at_ms = now_ms + (REFRESH_MS if reply.assignors else REPEAT_MS)
        if not reply.assignors:
            return None
        self.is_known = True
        return reply.assignors

    def overdue(self, now_ms: int) -> int | None:
        """Return the process that has owed an answer for too long, once."""
        since_ms = self._waits_since_ms
        if since_ms is None or now_ms < since_ms + self._timeout_ms:
            return None
        self._waits_since_ms = None
        return self.pid

    def give(self, target: TargetAssignment, share: Resources) -> Given | None:
        """Return what its assignor is to be told of the worker's share, if that is another."""
        if self.pid is None or not target.assignor or share == self._share:
            return None
        self._share = share
        return Given(
            target.assignor,
            MemberAssignment(
                self._member_id,
                share,
                target.error,
                target.assignor_version,
                target.assignor_metadata,
            ),
        )
