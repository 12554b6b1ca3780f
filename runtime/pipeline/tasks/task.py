"""A task: a loop of bounded batches, each of which counts exactly once.

    settle and publish what is left over, sweep what never counted
    while not draining:
        plan the next batch, read it, transform it, stage it
        commit                      the one point where it counts
        publish, acknowledge

The next owner of the task repeats what went wrong before the commit, and finishes what is left to
do after it. Only the commit itself may have an unknown outcome:
then nothing else happens until it is known (DATA_PLANE §2, §3).
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ....actors.backoff import Attempts, Backoff
from ....events.model import Commit, CommitId, Document, Resource, RunState, Token, identity
from ....projections.launches import Launch
from ..connectors.batch import Batch, Staged
from ..connectors.context import Context
from ..connectors.spi import (
    BatchPlan,
    NotReady,
    Pipeline,
    SinkAway,
    SinkBroken,
    SinkFull,
    Tenure,
    describe_unpublished,
)
from ..spark.engine import Cancelled, Engine, EngineDown
from .batch_size import BatchSize
from .ledger import Fenced, Ledger, LedgerUnavailable
from .reports import BatchDone, Ending, Report, StatusChanged, Warned
from .restarts import Halt, RestartPolicy, Restarts, persist

_FIRST_IDLE_S = 0.05
_COMMIT_BACKOFF = Backoff(0.1, 2.0)
"""For a commit without an answer."""
_FENCED_BACKOFF = Backoff(0.5, 30.0)
_FULL_BACKOFF = Backoff(2.0, 15.0)
"""For a sink that has no room."""
_LEDGER_PAUSE_S = 2.0
_WARM_POLL_S = 0.2
_SINK_POLL_S = 1.0
_SWEEP_S = 60.0
"""How often a task removes what a former owner, or its JVM, has staged since it was cut off."""


@dataclass(slots=True)
class TaskMemory:
    """What must outlive a restart of a task under the same token.

    Batch numbers never repeat under a token, since a commit id that was accepted is taken for
    a repetition; and a commit without an answer must get one before the next batch.
    """

    next_batch: int = 0
    unsettled: Commit | None = None
    fences: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class _Clock:
    """How long the phases of one batch took, in seconds."""

    phases: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        began = time.perf_counter()
        yield
        self.phases[name] = time.perf_counter() - began

    @property
    def total(self) -> float:
        return sum(self.phases.values())


class Task:
    """One task under one token; `run` is for a thread of its own."""

    def __init__(
        self,
        launch: Launch,
        pipeline: Callable[[Context], Pipeline],
        engine: Engine,
        ledger: Ledger,
        report: Callable[[Report], None],
        memory: TaskMemory | None = None,
    ) -> None:
        self.halt = Halt()
        self._launch = launch
        self._make_pipeline = pipeline
        self._engine = engine
        self._ledger = ledger
        self._report = report
        self._memory = memory or TaskMemory()
        self._restarts = Restarts(RestartPolicy.of(launch.connector_config))
        self._tag = tag_of(launch.resource, launch.token)
        """The tag of all Spark jobs of this task under this token."""
        self._told: tuple[RunState, str] | None = None
        """The state and reason that were reported last."""
        self._ran = False
        self._sweep_at = 0.0
        """When to sweep next, on the monotonic clock."""
        self._away = 0
        """How many attempts in a row found the sink out of reach."""

    def run(self) -> Ending:
        """Work until somebody asks for an end, or the token is no longer current."""
        self.halt.wait(self._memory.not_before - time.monotonic())
        try:
            persist(self._attempt, self.halt, self._restarts, self._tell)
        except Fenced as fenced:
            # Should the log still grant this very token, it is tried again, but not at once.
            self._memory.fences += 1
            pause = _FENCED_BACKOFF.pause(self._memory.fences)
            self._memory.not_before = time.monotonic() + pause
            self._tell(RunState.UNASSIGNED, f"fenced: {fenced}")
            return Ending.FENCED
        return Ending.CANCELLED if self.halt.is_cancelled else Ending.STOPPED

    def cancel(self) -> None:
        """Ask for an end now; repeat it until there is one, a job may just be beginning."""
        self.halt.cancel()
        self._engine.cancel(self._tag)

    def _attempt(self) -> None:
        """Work until the end, or until the engine or the log is out of reach for a while."""
        context = Context(self._launch.resource, self._warn, cluster_id=self._ledger.cluster_id)
        pipeline = self._make_pipeline(context)
        try:
            self._recover(pipeline)
            if self._wait_warm():
                if not self._away:  # else it runs once a batch is staged
                    self._tell(RunState.RUNNING)
                self._loop(pipeline)
                if not self.halt.is_cancelled:  # else a batch may be left to publish
                    self._sweep(pipeline)
        except LedgerUnavailable as unanswered:
            self._tell(self._waiting, f"waiting for the offsets: {unanswered}")
            self.halt.wait(_LEDGER_PAUSE_S)
        except EngineDown as down:
            self._tell(RunState.RESTARTING, f"the engine is down: {down}")
            self.halt.wait(_WARM_POLL_S)
        except SinkAway as away:
            self._tell(self._waiting, f"waiting for the sink: {away}")
            self._away += 1
            is_full = isinstance(away, SinkFull)
            self.halt.wait(_FULL_BACKOFF.pause(self._away) if is_full else _SINK_POLL_S)
        finally:
            pipeline.source.close()

    def _recover(self, pipeline: Pipeline) -> None:
        """Finish what was committed before, and remove what was not."""
        self._settle(pipeline)
        resource = self._launch.resource
        unpublished = self._ledger.unpublished(*resource)
        tenure = self._tenure(unpublished)
        try:
            pipeline.sink.acquire(tenure)
        except SinkBroken as broken:
            if unpublished:
                left = describe_unpublished(unpublished)
                raise SinkBroken(f"{broken}. Not published is {left}") from None
            raise
        for commit in unpublished:
            pipeline.sink.publish(commit.manifest, commit.commit_id)
            self._ledger.published(commit.commit_id)
        self._sweep(pipeline)

    def _tenure(self, unpublished: Sequence[Commit]) -> Tenure:
        resource, token = self._launch.resource, self._launch.token
        progress = self._ledger.progress(*resource)
        last, filled = (progress.last, progress.filled) if progress else (None, None)
        waits = any(each.commit_id == filled for each in unpublished)
        return Tenure(resource, token, last, None if waits else filled, self._ledger.place)

    def _sweep(self, pipeline: Pipeline) -> None:
        """Remove what never counted; between batches nothing else is staged."""
        pipeline.sink.sweep(self._launch.resource, self._launch.token)
        self._sweep_at = time.monotonic() + _SWEEP_S

    def _wait_warm(self) -> bool:
        while not self.halt.is_draining:
            if self._engine.wait_warm(_WARM_POLL_S):
                self._ran = True
                return True
            self._tell(self._waiting, f"waiting for the engine: {self._engine.detail}")
            self.halt.wait(_WARM_POLL_S)
        return False

    @property
    def _waiting(self) -> RunState:
        return RunState.RESTARTING if self._ran else RunState.UNASSIGNED

    def _loop(self, pipeline: Pipeline) -> None:
        offsets = dict(self._ledger.offsets(self._launch.resource.connector))
        size = BatchSize(pipeline.pace.ceiling)
        idle = Attempts(Backoff(_FIRST_IDLE_S, pipeline.pace.poll_interval_s))
        first = True
        # Data may come much later: a task that looks for it, and finds none, is not down.
        began_ms = time.time_ns() // 1_000_000
        while not self.halt.is_draining:
            if time.monotonic() >= self._sweep_at:
                self._sweep(pipeline)
            clock = _Clock()
            with clock.phase("plan"):
                plan = self._plan(pipeline, offsets, size)
            if self.halt.is_draining:
                return
            if not plan.ranges:
                self.halt.wait(idle.next_pause())
                continue
            idle.reset()
            commit = self._batch(pipeline, plan, clock)
            _advance(offsets, commit)
            size.learn(clock.total, backlog=plan.backlog)
            self._report(BatchDone(commit, began_ms, first, clock.phases))
            if first:  # its status now tells that it runs batches, and no longer any remark
                self._told = (RunState.RUNNING, "")
            first = False
            if not plan.backlog:
                # What comes in a trickle is let pile up: a batch costs much, however small.
                self.halt.wait(pipeline.pace.poll_interval_s)

    def _plan(
        self, pipeline: Pipeline, offsets: dict[str, Document], size: BatchSize
    ) -> BatchPlan[Any]:
        try:
            plan = pipeline.source.plan(offsets, size.limit)
        except NotReady as waiting:
            self._tell(RunState.RUNNING, str(waiting))
            return BatchPlan()
        if not (self._away and plan.ranges):
            self._tell(RunState.RUNNING, plan.remark)
        return plan

    def _batch(self, pipeline: Pipeline, plan: BatchPlan[Any], clock: _Clock) -> Commit:
        commit_id = CommitId(*self._launch.resource, self._launch.token, self._memory.next_batch)
        self._memory.next_batch += 1
        with clock.phase("run"):
            staged = self._stage(Batch(pipeline, plan, commit_id))
        self._away = 0
        self._tell(RunState.RUNNING, plan.remark)
        commit = Commit(commit_id, plan.advances, staged.manifest, staged.rows_in, plan.lag)
        with clock.phase("commit"):
            self._memory.unsettled = commit
            self._settle(pipeline)
        with clock.phase("publish"):
            if not self.halt.is_cancelled:  # else the next owner does
                pipeline.sink.publish(commit.manifest, commit_id)
                self._ledger.published(commit_id)
                pipeline.source.acknowledge(plan.advances)
        return commit

    def _stage(self, batch: Batch) -> Staged:
        try:
            staged = self._engine.run(self._tag, batch.run)
        except BaseException:
            with suppress(OSError):  # it is swept later; the first error is the one to tell
                batch.pipeline.sink.discard(batch.commit_id)
            raise
        if self.halt.is_cancelled:
            batch.pipeline.sink.discard(batch.commit_id)
            raise Cancelled("cancelled before its commit")
        return staged

    def _settle(self, pipeline: Pipeline) -> None:
        """Commit what is unsettled, until there is an answer or somebody asks for an end now.

        Then the staged files stay: the next owner learns from the log what they are.
        """
        commit = self._memory.unsettled
        attempts = Attempts(_COMMIT_BACKOFF)
        while commit:
            if self.halt.is_cancelled:
                raise Cancelled("the outcome of the last commit is unknown")
            try:
                self._ledger.commit(commit)
            except LedgerUnavailable as unanswered:
                self._tell(RunState.RUNNING, f"the last commit has no answer yet: {unanswered}")
                self.halt.wait_cancelled(attempts.next_pause())
                continue
            except Fenced:
                self._memory.unsettled = None
                pipeline.sink.discard(commit.commit_id)
                raise
            self._memory.unsettled = commit = None

    def _tell(self, state: RunState, reason: str = "", trace: str = "") -> None:
        if (state, reason) == self._told:
            return
        self._told = (state, reason)
        launch = self._launch
        self._report(StatusChanged(launch.resource, launch.token, state, reason, trace))

    def _warn(self, text: str) -> None:
        self._report(Warned(self._launch.resource, self._launch.token, text))


def tag_of(resource: Resource, token: Token) -> str:
    """Return the tag of all Spark jobs that a task runs under a token."""
    return f"fairlead-{quote(resource.connector, safe='')}-{resource.task}-{token}"


def _advance(offsets: dict[str, Document], commit: Commit) -> None:
    for advance in commit.advances:
        if advance.end is None:
            offsets.pop(identity(advance.partition), None)
        else:
            offsets[identity(advance.partition)] = advance.end
