"""What runs where: the tasks of each worker, and that nobody else runs the same.

The engine of a worker is made up, but for what it is told and what it tells. A task that is to stop
takes its time, hangs now and then, and goes on working until it has ended. Each task reads a source
partition of its own, one row per batch, and asks for one commit at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from ...actors.messages.errors import Error
from ...events.catalogue import entry_key, offset_key
from ...events.commits import Advance, Commit, CommitId, Document, Manifest, Offset, TaskProgress
from ...events.entries.codec import decode
from ...events.model import Key, Resource, Token
from ...events.records import Record
from ...projections.launches import Launch, launches
from ..node.worker.core.contract import AnswerCommit, CommitAsked
from ..pipeline.tasks.reports import Ending, Hung, Stopped, TaskConfigsChanged
from .durable_state import ROW, MemoryLog
from .environment import Story, Violation

if TYPE_CHECKING:
    from .worker import SimulatedWorker
    from .world import World

AGAIN_MS: Final = 50
CANCEL_MS: Final = 700
"""How long it takes at most to cancel what does not hang."""
HUNG_MS: Final = 30_000
"""How long a stop may take at most: longer than any revocation's deadline here."""
LONGEST_ANSWER_MS: Final = 12_000
"""How long a commit may wait for an answer, whatever becomes of the message that carries it."""
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


class SimulatedEngine:
    """The tasks of one worker, each under the token that it was launched with."""

    def __init__(self, world: "World", worker: "SimulatedWorker", rng: Random) -> None:
        self.tasks: dict[Resource, SimulatedTask] = {}
        self.hangs = False
        """Whether the next thing that is to stop does not."""
        self._world = world
        self._worker = worker
        self._rng = rng
        self._unanswered: dict[CommitId, tuple[int, SimulatedTask]] = {}
        """When each commit was asked for that has no answer yet, and by which task."""

    def start(self, launch: Launch) -> None:
        """Run what the log grants, under the token that it names; raises `Violation`."""
        world, worker, resource = self._world, self._worker, launch.resource
        if resource in self.tasks:
            raise Violation(f"1: {worker.name} starts {resource}, which runs there already")
        granted = launches(world.durable_state.group, worker.member_id, frozenset({resource}))
        if granted.get(resource) != launch:
            which = f"{resource} under {launch.token}"
            raise Violation(f"1: {worker.name} starts {which}, the log grants another launch")
        world.exclusivity.take(worker, resource, launch.token)
        self.tasks[resource] = begun(world.durable_state.offsets, resource, launch.token)
        world.exclusivity.begin(worker, resource)
        if not resource.is_task and not launch.split:
            self.split(self.tasks[resource], world.schedule.traits.tasks, 0)

    def split(self, connector: SimulatedTask, tasks: int, shade: int) -> None:
        """Have a connector split its work into so many tasks."""
        configs = tuple(
            {"n": str(number), "v": str(shade % (number + 2))} for number in range(tasks)
        )
        name = connector.resource.connector
        self._worker.report(TaskConfigsChanged(name, connector.token, configs))

    def stop(self, resource: Resource) -> None:
        """Bring a resource to an end in good order."""
        self._stop_within(self._world.schedule.traits.slowest_stop_ms, resource)

    def abandon(self) -> None:
        """Cut everything short."""
        for resource in sorted(self.tasks):
            self._stop_within(CANCEL_MS, resource)

    def die(self) -> None:
        """End everything at once."""
        for resource in sorted(self.tasks):
            self._world.exclusivity.end(self._worker, resource)
        self.tasks.clear()

    def ask_for_commits(self, now_ms: int) -> Sequence[CommitAsked]:
        """Return what the tasks have to commit by now: each that has no commit on its way."""
        asking = {task.resource for _, task in self._unanswered.values()}
        free = sorted(each for each in self.tasks if each.is_task and each not in asking)
        found: list[CommitAsked] = []
        for resource in free:
            commit = self.tasks[resource].commit()
            self._unanswered[commit.commit_id] = now_ms, self.tasks[resource]
            found.append(CommitAsked(commit))
        return found

    def answer(self, answer: AnswerCommit) -> None:
        """Have what counts count, and end what is fenced; raises `Violation`."""
        found = self._unanswered.pop(answer.commit_id, None)
        if found is None:
            raise Violation(f"7: {answer.commit_id} is answered, and was not asked for")
        task, verdict = found[1], answer.verdict
        if verdict is None or self.tasks.get(task.resource) is not task:
            return
        if verdict.error is Error.NONE:
            task.row += 1
            task.batch += 1
        else:
            self._end(task, Ending.FENCED)

    def see_answers(self, now_ms: int) -> None:
        """See that no commit waits for ever; raises `Violation`."""
        for commit_id, (asked_ms, task) in self._unanswered.items():
            if now_ms > asked_ms + LONGEST_ANSWER_MS:
                which = f"batch {commit_id.batch} of {task.resource} under {task.token}"
                raise Violation(f"7: {which} has had no answer since {asked_ms}")

    def _stop_within(self, longest_ms: int, resource: Resource) -> None:
        task = self.tasks.get(resource)
        if task is None:
            return  # it has ended by itself, and the core has not heard of it yet
        if self.hangs and not self._world.is_calm:
            self.hangs = False
            self._world.story.tell("{} does not get {} to stop", self._worker.name, resource)
            self._world.clock.after(HUNG_MS, self._give_up, task)
        else:
            self._world.clock.after(self._rng.randint(1, longest_ms), self._stop, task)

    def _stop(self, task: SimulatedTask) -> None:
        if self._worker.is_frozen:
            self._world.clock.after(AGAIN_MS, self._stop, task)
        elif self.tasks.get(task.resource) is task:
            self._end(task, Ending.STOPPED)
            self._worker.settle()

    def _give_up(self, task: SimulatedTask) -> None:
        """Have the worker end itself, as the real one does, over what does not stop."""
        if self.tasks.get(task.resource) is task:
            self._worker.report(Hung(task.resource, task.token))
            self._worker.settle()

    def _end(self, task: SimulatedTask, ending: Ending) -> None:
        del self.tasks[task.resource]
        self._world.exclusivity.end(self._worker, task.resource)
        self._worker.report(Stopped(task.resource, task.token, ending))


class RunningWorker(Protocol):
    """Somebody who runs resources; asleep, it does nothing that others could see."""

    @property
    def name(self) -> str:
        """Who it is."""
        ...

    @property
    def is_awake(self) -> bool:
        """Whether it does anything at the moment."""
        ...


class Exclusivity:
    """For each resource those who run it: at most one of them may be awake."""

    def __init__(self, story: Story) -> None:
        self.moves = 0
        """How often a resource began to run at another worker than before."""
        self._story = story
        self._running: dict[Resource, list[RunningWorker]] = {}
        self._last: dict[Resource, str] = {}
        """Which worker ran each resource last."""
        self._disowned: set[str] = set()
        """Workers that live and were reported to have ended: others may be given what they run."""
        self._under: dict[tuple[Resource, Token], str] = {}
        """Which worker runs, or ran, a resource under a token."""

    def take(self, runner: RunningWorker, resource: Resource, token: Token) -> None:
        """Take note of the token that a resource is run under; raises `Violation`.

        No two processes may have the same one: nothing could tell their work apart.
        """
        other = self._under.setdefault((resource, token), runner.name)
        if other != runner.name:
            raise Violation(f"7: {runner.name} runs {resource} under {token}, as {other} did")

    def begin(self, runner: RunningWorker, resource: Resource) -> None:
        """Take note that somebody begins to run a resource; raises `Violation`."""
        self._story.tell("{} starts {}", runner.name, resource)
        self._running.setdefault(resource, []).append(runner)
        if self._last.get(resource, runner.name) != runner.name:
            self.moves += 1
        self._last[resource] = runner.name
        self.look(resource)

    def end(self, runner: RunningWorker, resource: Resource) -> None:
        """Take note that somebody does not run a resource any more."""
        self._story.tell("{} has stopped {}", runner.name, resource)
        self._running[resource].remove(runner)

    def disown(self, name: str) -> None:
        """Have nothing count that somebody runs, until it runs nothing any more."""
        self._disowned.add(name)

    def own(self, name: str) -> None:
        """Have everything count again that somebody runs from now on."""
        self._disowned.discard(name)

    def look(self, resource: Resource) -> None:
        """See that a resource is run once at most; raises `Violation`."""
        runners = self._running.get(resource, ())
        awake = [each.name for each in runners if each.is_awake and each.name not in self._disowned]
        if len(awake) > 1:
            raise Violation(f"1: {resource} runs at {' and at '.join(awake)}")

    def running(self) -> dict[Resource, str]:
        """Return which worker runs each resource."""
        return {
            resource: runner.name
            for resource, runners in self._running.items()
            for runner in runners
        }
