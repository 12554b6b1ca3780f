"""What runs at one worker: made up, but for what it is told and what it tells.

What is stopped takes its time, hangs now and then, and goes on working until it has ended. Each
task reads a source partition of its own, one row per batch. All that a worker's tasks have to
commit goes in one message, with one on its way at a time, as real workers do it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from ...actors.messages.errors import Error
from ...actors.messages.work import CommitOffsets, CommitReply
from ...events.catalogue import entry_key
from ...events.entries.codec import decode
from ...events.keys import Key, offset_key
from ...events.model import (
    NOTHING,
    Advance,
    Commit,
    CommitId,
    Document,
    Manifest,
    Resource,
    Resources,
    Token,
)
from ...events.records import Offset, Record, TaskProgress
from ...projections.launches import Launch
from ..tasks.reports import Ending
from .durable_state import GROUP_ID, MemoryLog
from .exclusivity import ROW

if TYPE_CHECKING:
    from .worker import SimulatedWorker
    from .world import World


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
    entry = offsets.get(*entry_key(kind, key))
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


AGAIN_MS: Final = 50
HUNG_MS: Final = 30_000
"""How long a stop may take at most: longer than any revocation's deadline here."""
REST_MS: Final = 1_000
"""How long a task rests that ended though it may run."""


class SimulatedEngine:
    """The tasks of one worker, each under the token that it was launched with."""

    def __init__(self, world: "World", worker: "SimulatedWorker", rng: Random) -> None:
        self.tasks: dict[Resource, SimulatedTask] = {}
        self.hangs = False
        """Whether the next thing that is to stop does not."""
        self.rests: dict[Resource, int] = {}
        """What ended though it may run, and until when it rests."""
        self.allowed: Resources = NOTHING
        self._world = world
        self._worker = worker
        self._rng = rng
        self._carrier = Carrier(worker.name)

    def launch(self, granted: Mapping[Resource, Launch], now_ms: int) -> Sequence[SimulatedTask]:
        """Run what the log grants, under the token that it names; return what is new."""
        for resource in [each for each, until_ms in self.rests.items() if now_ms >= until_ms]:
            del self.rests[resource]
        return [
            self._begin(launch)
            for resource, launch in sorted(granted.items())
            if resource not in self.rests and not self._runs(launch)
        ]

    def stop(self, resources: Resources, longest_ms: int) -> Resources:
        """Bring resources to an end; return those of which nothing runs."""
        self.allowed -= resources
        for resource in sorted(resources & self.tasks.keys()):
            task = self.tasks[resource]
            if self.hangs and not self._world.is_calm:
                self.hangs = False
                self._world.story.tell("{} does not get {} to stop", self._worker.name, resource)
                self._world.clock.after(HUNG_MS, self._give_up, task)
            else:
                self._world.clock.after(self._rng.randint(1, longest_ms), self._stop, task)
        return resources - self.tasks.keys()

    def die(self) -> None:
        """End everything at once."""
        for resource in sorted(self.tasks):
            self._world.exclusivity.end(self._worker, resource)
        self.tasks.clear()

    def commit(self, now_ms: int) -> CommitOffsets | None:
        """Return what the tasks have to commit by now."""
        tasks = [self.tasks[each] for each in sorted(self.tasks) if each.is_task]
        return self._carrier.carry(tasks, now_ms)

    def settle(self, reply: CommitReply, now_ms: int) -> None:
        """End what may not commit any more; what may run all the same begins anew."""
        for task in self._carrier.settle(reply):
            if self.tasks.get(task.resource) is task:
                self.rests[task.resource] = now_ms + REST_MS
                self._end(task, Ending.FENCED)

    def _runs(self, launch: Launch) -> bool:
        running = self.tasks.get(launch.resource)
        return running is not None and running.token == launch.token

    def _begin(self, launch: Launch) -> SimulatedTask:
        resource = launch.resource
        is_new = resource not in self.tasks
        self._world.exclusivity.take(self._worker, resource, launch.token)
        task = self.tasks[resource] = begun(
            self._world.durable_state.offsets, resource, launch.token
        )
        if is_new:
            self._world.exclusivity.begin(self._worker, resource)
        return task

    def _stop(self, task: SimulatedTask) -> None:
        if self._worker.is_frozen:
            self._world.clock.after(AGAIN_MS, self._stop, task)
        elif self._is_stopping(task):
            self._end(task, Ending.STOPPED)

    def _give_up(self, task: SimulatedTask) -> None:
        """Have the worker end itself, as the real one does, over what does not stop."""
        if self._is_stopping(task):
            self._worker.give_up(f"{task.resource} does not stop")

    def _is_stopping(self, task: SimulatedTask) -> bool:
        return self.tasks.get(task.resource) is task and task.resource not in self.allowed

    def _end(self, task: SimulatedTask, ending: Ending) -> None:
        del self.tasks[task.resource]
        self._world.exclusivity.end(self._worker, task.resource)
        if task.resource not in self.allowed:
            self.rests.pop(task.resource, None)
        self._worker.ended(task, ending)
