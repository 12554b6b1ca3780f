"""A simulated engine: the tasks of each worker, checked to run nowhere else.

Only its interface is that of the real engine. A task that has to stop takes its time, hangs now and
then, and goes on working until it has ended. Each task reads a source partition of its own, one row
per batch, and asks for one commit at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Protocol

from ...actors.messages.errors import Error
from ...events.catalogue import entry_key, offset_key
from ...events.commits import Advance, Commit, CommitId, Document, Manifest, Offset, TaskProgress
from ...events.entries.codec import decode
from ...events.model import Key, Resource, RunState, Token
from ...events.records import Record
from ...projections.launches import Launch, launches
from ..node.worker.core.contract import AnswerCommit, CommitAsked, CoreReport
from ..node.worker.core.starts import core_of
from ..pipeline.tasks.reports import Ending, Hung, StatusChanged, Stopped, TaskConfigsChanged
from .environment.clock import SimulatedClock, Story, Violation
from .group.durable_state import DurableState, MemoryLog
from .group.place import GroupPlace
from .hosts.publishing import Publishing
from .invariants.group import ROW
from .invariants.hosts import SimulatedSink
from .invariants.running import Exclusivity, RunningWorker
from .schedule import Schedule

AGAIN_MS: Final = 50
CANCEL_MS: Final = 700
"""How long it takes at most to cancel what does not hang."""
HUNG_MS: Final = 30_000
"""How long a stop may take at most: longer than any revocation's deadline here."""
LONGEST_ANSWER_MS: Final = 12_000
"""How long a commit may wait for an answer, whatever becomes of the message that carries it."""
NO_FILES: Final = Manifest("", "", 0, 0, 0)
ONE_FILE: Final = Manifest("", "", 1, 1, 1)


@dataclass(slots=True, eq=False)
class SimulatedTask:
    """One resource that runs, or is suspended, under its launch in the log."""

    launch: Launch
    row: int
    batch: int = 0
    has_failed: bool = False

    @property
    def resource(self) -> Resource:
        """The connector or task."""
        return self.launch.resource

    @property
    def token(self) -> Token:
        """The token of its launch."""
        return self.launch.token

    @property
    def does_work(self) -> bool:
        """Whether it runs: it has not failed, and its connector is neither paused nor stopped."""
        return self.launch.target_state is RunState.RUNNING and not self.has_failed

    def commit(self, manifest: Manifest) -> Commit:
        """Return the next batch to commit, with what it has staged."""
        connector, number = self.resource
        start: Document | None = {ROW: self.row} if self.row else None
        advance = Advance(partition(self.resource), start, {ROW: self.row + 1})
        return Commit(CommitId(connector, number, self.token, self.batch), (advance,), manifest, 1)


def partition(resource: Resource) -> Document:
    """Return the source partition that a task reads."""
    return {"of": str(resource)}


def begin_task(offsets: MemoryLog, launch: Launch) -> SimulatedTask:
    """Return a task that resumes at its progress in the offset log."""
    resource = launch.resource
    key = offset_key(resource.connector, partition(resource))
    offset = _find_logged(offsets, Offset, key)
    row = int(str(offset.offset[ROW])) if isinstance(offset, Offset) else 0
    progress = _find_logged(offsets, TaskProgress, (resource.connector, resource.task))
    if isinstance(progress, TaskProgress) and progress.last.token == launch.token:
        return SimulatedTask(launch, row, progress.last.batch + 1)
    return SimulatedTask(launch, row)


def _find_logged(offsets: MemoryLog, kind: type, key: Key) -> Record | None:
    entry = offsets.get(*entry_key(kind, key))
    return None if entry is None else decode(entry)


class Surroundings(Protocol):
    """The part of a world that an engine uses."""

    schedule: Schedule
    clock: SimulatedClock
    story: Story
    exclusivity: Exclusivity
    durable_state: DurableState
    is_calm: bool
    """Whether nothing goes wrong any more."""

    @property
    def sink(self) -> SimulatedSink | None:
        """Where tasks publish what they have committed; None: they have nothing to publish."""
        ...


class EngineOwner(RunningWorker, Protocol):
    """The worker of an engine."""

    is_frozen: bool

    @property
    def member_id(self) -> str:
        """Its name in the group."""
        ...

    def report(self, report: CoreReport) -> None:
        """Queue a report for the core."""
        ...

    def settle(self) -> None:
        """Pass the queued reports to the core."""
        ...


class SimulatedEngine:
    """The tasks of one worker, each under the token that it was launched with."""

    def __init__(
        self, world: Surroundings, worker: EngineOwner, rng: Random, place: GroupPlace
    ) -> None:
        self.tasks: dict[Resource, SimulatedTask] = {}
        self.hangs = False
        """Whether the next thing that is to stop does not."""
        self._world = world
        self._worker = worker
        self._rng = rng
        self._place = place
        sink = world.sink
        self._publishing = None if sink is None else Publishing(place, sink, worker.report)
        self._unanswered: dict[CommitId, tuple[int, SimulatedTask]] = {}
        """When each commit was asked for that has no answer yet, and by which task."""
        self._failed: set[tuple[Resource, Token]] = set()
        """What has failed here, and under which token."""

    def start(self, launch: Launch) -> None:
        """Start a launch of the log, under its token; raises `Violation`."""
        world, worker, resource = self._world, self._worker, launch.resource
        if resource in self.tasks:
            raise Violation(f"1: {worker.name} starts {resource}, which runs there already")
        if self._find_launch(resource) != launch:
            which = f"{resource} under {launch.token}"
            raise Violation(f"1: {worker.name} starts {which}, the log grants another launch")
        world.exclusivity.claim(worker, resource, launch.token)
        task = self.tasks[resource] = begin_task(self._place.offsets, launch)
        task.has_failed = (resource, launch.token) in self._failed
        if self._publishing is not None and resource.is_task:
            self._publishing.recover(resource)
        world.exclusivity.begin(worker, resource)
        if not resource.is_task and task.does_work and not launch.split:
            self.split(task, world.schedule.traits.tasks, 0)

    def split(self, connector: SimulatedTask, tasks: int, shade: int) -> None:
        """Split a connector's work into so many tasks, and report them."""
        configs = tuple(
            {"n": str(number), "v": str(shade % (number + 2))} for number in range(tasks)
        )
        name = connector.resource.connector
        self._worker.report(TaskConfigsChanged(name, connector.token, configs))

    def fail(self, resource: Resource) -> None:
        """Fail a resource: it stays owned, and does nothing until it has another token."""
        task = self.tasks[resource]
        task.has_failed = True
        self._failed.add((resource, task.token))
        reason = "it was to fail"
        self._worker.report(StatusChanged(resource, task.token, RunState.FAILED, reason))

    def find_outdated(self) -> list[Resource]:
        """Return the resources whose launch differs from that in the log."""
        granted = {each: self._find_launch(each) for each in self.tasks}
        return [
            each
            for each, launch in granted.items()
            if launch is None or core_of(launch) != core_of(self.tasks[each].launch)
        ]

    def _find_launch(self, resource: Resource) -> Launch | None:
        group = self._place.group
        return launches(group, self._worker.member_id, frozenset({resource})).get(resource)

    def stop(self, resource: Resource) -> None:
        """Stop a resource gracefully."""
        self._stop_within(self._world.schedule.traits.slowest_stop_ms, resource)

    def turn(self, resource: Resource, state: RunState) -> None:
        """Pause or resume a task in its place."""
        task = self.tasks[resource]
        task.launch = replace(task.launch, target_state=state)
        self._worker.report(StatusChanged(resource, task.token, state))

    def abandon(self) -> None:
        """Cancel everything."""
        for resource in sorted(self.tasks):
            self._stop_within(CANCEL_MS, resource)

    def die(self) -> None:
        """Kill everything at once."""
        for resource in sorted(self.tasks):
            self._world.exclusivity.end(self._worker, resource)
        self.tasks.clear()

    def find_working(self) -> list[Resource]:
        """Return the resources that do work, sorted: neither failed nor suspended."""
        return sorted(each for each, task in self.tasks.items() if task.does_work)

    def ask_for_commits(self, now_ms: int) -> Sequence[CommitAsked]:
        """Return a commit of each task that has none in flight."""
        asking = {task.resource for _, task in self._unanswered.values()}
        free = (each for each in self.find_working() if each.is_task and each not in asking)
        found: list[CommitAsked] = []
        for resource in free:
            commit = self.tasks[resource].commit(ONE_FILE if self._publishing else NO_FILES)
            self._unanswered[commit.commit_id] = now_ms, self.tasks[resource]
            found.append(CommitAsked(commit))
        return found

    def answer(self, answer: AnswerCommit) -> None:
        """Apply an accepted commit, or stop a fenced task; raises `Violation`."""
        found = self._unanswered.pop(answer.commit_id, None)
        if found is None:
            raise Violation(f"7: {answer.commit_id} is answered, and was not asked for")
        task, verdict = found[1], answer.verdict
        if verdict is None or self.tasks.get(task.resource) is not task:
            return
        if verdict.error is Error.NONE:
            if self._publishing is not None:
                self._publishing.publish(task.commit(ONE_FILE))
            task.row += 1
            task.batch += 1
        else:
            self._end(task, Ending.FENCED)

    def clean_up(self) -> None:
        """Publish what tasks without an owner have left, if this member is on duty."""
        if self._publishing is not None:
            self._publishing.clean_up(self._worker.member_id)

    def see_answers(self, now_ms: int) -> None:
        """Check that no commit has waited for too long; raises `Violation`."""
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
        """Report a task that does not stop: its worker exits, as a real one does."""
        if self.tasks.get(task.resource) is task:
            self._worker.report(Hung(task.resource, task.token))
            self._worker.settle()

    def _end(self, task: SimulatedTask, ending: Ending) -> None:
        del self.tasks[task.resource]
        self._world.exclusivity.end(self._worker, task.resource)
        self._worker.report(Stopped(task.resource, task.token, ending))
