"""What runs at a worker: tasks that read rows, and commit them through the group.

Each task reads a source partition of its own, one row per batch. All that a worker's tasks
have to commit goes in one message, with one on its way at a time, as real workers do it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...actors.messages.errors import Error
from ...actors.messages.work import CommitOffsets, CommitReply
from ...events.codec import TYPES, decode
from ...events.keys import Key, offset_key, pack_key
from ...events.model import Advance, Commit, CommitId, Document, Manifest, Resource, Token
from ...events.records import Offset, Record, TaskProgress
from .log import GROUP_ID, MemoryLog
from .progress import ROW

ANSWER_MS: Final = 4_000
NO_FILES: Final = Manifest("", "", 0, 0, 0)


@dataclass(slots=True, eq=False)
class SimulatedTask:
    """One resource that runs, under the token that it was started with."""

    resource: Resource
    token: Token
    row: int
    batch: int = 0

    def commit(self) -> Commit:
        """Return the batch that is to count next."""
        connector, number = self.resource
        start: Document | None = {ROW: self.row} if self.row else None
        advance = Advance(partition(self.resource), start, {ROW: self.row + 1})
        return Commit(CommitId(connector, number, self.token, self.batch), (advance,), NO_FILES, 1)


def partition(resource: Resource) -> Document:
    """Return the source partition that a task reads."""
    return {"of": str(resource)}


def begun(offsets: MemoryLog, resource: Resource, token: Token) -> SimulatedTask:
    """Return a task that goes on where the offset log says that it was."""
    key = offset_key(resource.connector, partition(resource))
    offset = _logged(offsets, Offset, key)
    row = int(str(offset.offset[ROW])) if isinstance(offset, Offset) else 0
    progress = _logged(offsets, TaskProgress, (resource.connector, resource.task))
    if isinstance(progress, TaskProgress) and progress.last.token == token:
        return SimulatedTask(resource, token, row, progress.last.batch + 1)
    return SimulatedTask(resource, token, row)


def _logged(offsets: MemoryLog, kind: type, key: Key) -> Record | None:
    entry = offsets.get(TYPES[kind][0], pack_key(key))
    return None if entry is None else decode(entry)


class Carrier:
    """Carries the commits of one worker's tasks; one message is on its way at a time."""

    def __init__(self, member_id: str) -> None:
        self._member_id = member_id
        self._number = 0
        self._carried: dict[CommitId, SimulatedTask] = {}
        self._sent_at_ms = -ANSWER_MS

    def carry(self, tasks: Sequence[SimulatedTask], now_ms: int) -> CommitOffsets | None:
        """Return what is to be sent now; what was not answered in time is said again."""
        if not tasks or (self._carried and now_ms < self._sent_at_ms + ANSWER_MS):
            return None
        commits = tuple(task.commit() for task in tasks)
        self._carried = {
            commit.commit_id: task for commit, task in zip(commits, tasks, strict=True)
        }
        self._number += 1
        self._sent_at_ms = now_ms
        return CommitOffsets(GROUP_ID, self._member_id, commits, number=self._number)

    def settle(self, reply: CommitReply) -> Sequence[SimulatedTask]:
        """Have what counts count, and return the tasks that were fenced."""
        if reply.number != self._number:
            return []
        carried, self._carried = self._carried, {}
        fenced: list[SimulatedTask] = []
        for verdict in reply.verdicts:
            task = carried.get(verdict.commit_id)
            if task is None:
                continue
            if verdict.error is Error.NONE:
                task.row += 1
                task.batch += 1
            else:
                fenced.append(task)
        return fenced
