"""Moves: which task went from whom to whom, why, and for how long nobody ran it.

Folded from the control log alone: a task's work ends with a status that says so, and begins
again with the first batch of whoever has it next. Of a worker that was killed no such word
comes; the move then knows no moment of release.
"""

from dataclasses import dataclass

from ..events.model import Cause, Resource, RunState, Token
from ..events.records import GroupMetadata, Record, TargetAssignment, TaskStatus

BATCHES_RUN = "batches run"
"""The reason in the status that marks the first batch under a token."""


@dataclass(frozen=True, slots=True)
class Move:
    """One task's hand-over; times are wall clock in milliseconds."""

    resource: Resource
    token: Token
    giver: str
    taker: str
    causes: tuple[Cause, ...]
    released_ms: int | None
    began_ms: int

    @property
    def downtime_ms(self) -> int | None:
        """From the release to the new task's first batch, None if the release is not known."""
        return None if self.released_ms is None else max(0, self.began_ms - self.released_ms)


class Moves:
    """A fold of control records, in the log's order."""

    def __init__(self) -> None:
        self.done: list[Move] = []
        self._causes: list[tuple[int, Cause]] = []
        self._target_epoch = 0
        self._why: dict[int, tuple[Cause, ...]] = {}
        self._runs: dict[Resource, TaskStatus] = {}
        self._released: dict[Resource, TaskStatus] = {}
        self.running: dict[Resource, TaskStatus] = {}
        """Who runs each task by its last word, whether or not it has had a batch yet."""

    def fold(self, record: Record) -> Move | None:
        """Take the next record; return the move that it completes, if it does."""
        if isinstance(record, GroupMetadata):
            self._causes.append((record.group_epoch, record.cause))
        elif isinstance(record, TargetAssignment):
            self._aim(record)
        elif isinstance(record, TaskStatus) and record.resource.is_task:
            return self._status(record)
        return None

    def _aim(self, record: TargetAssignment) -> None:
        """Keep why this target was computed: all that bumped the epoch since the last one."""
        epoch = record.assignment_epoch
        self._why[epoch] = tuple(cause for at, cause in self._causes if at <= epoch)
        self._causes = [(at, cause) for at, cause in self._causes if at > epoch]

    def _status(self, status: TaskStatus) -> Move | None:
        if status.state is RunState.UNASSIGNED:
            self._released[status.resource] = status
            return None
        self.running[status.resource] = status
        if status.state is not RunState.RUNNING or status.reason != BATCHES_RUN:
            return None
        before = self._runs.get(status.resource)
        self._runs[status.resource] = status
        if before is None or before.worker == status.worker:
            return None
        released = self._released.get(status.resource)
        is_known = released is not None and released.worker == before.worker
        move = Move(
            status.resource,
            status.token,
            before.worker,
            status.worker,
            self._why.get(status.token.grant_epoch, ()),
            released.time_ms if released is not None and is_known else None,
            status.time_ms,
        )
        self.done.append(move)
        return move
