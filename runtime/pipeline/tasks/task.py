"""A task: a loop of bounded batches, as large as they can be and still end soon.

    recover what is left over
    while not draining:
        plan the next batch, stage it, commit it, publish it

What makes each of them count exactly once is in `commits.py`; here are when to look for more, how
much to take, and what to do while the engine, the log or the sink is out of reach.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from ....actors.backoff import Backoff
from ....events.commits import Commit, Document
from ....events.model import ErrorClass, RunState
from ....projections.launches import Launch
from ..spark.engine import Engine, EngineDown
from ..spark.failures import session_is_gone
from ..spi.connector import Pipeline
from ..spi.context import Context
from ..spi.errors import Away, CallTimedOut, NotReady
from ..spi.source import BatchPlan, Limit
from .batch_size import BatchSize, Rate, plan_within
from .commits import TaskCommits, TaskMemory, advance_offsets
from .contention import Admission, IdlePauses
from .failures import reason_of, told_to
from .halving import BatchHalved
from .ledger import Fenced, Ledger, LedgerUnavailable
from .plugins.calls import CallLimits, Calls
from .plugins.guard import guard_pipeline
from .reports import BadRowsTold, BatchClock, BatchDone, Ending, Report, StatusReports
from .restarts import Halt, Outage, RestartPolicy, Restarts, persist

_FENCED_BACKOFF = Backoff(0.5, 30.0)
_LEDGER_PAUSE_S = 2.0
_WARM_POLL_S = 0.2
_LOOK_S = 5.0
"""How long nothing must be there to read for what the last attempt failed at to be gone."""
_TURN_S = 0.2
"""How often it is looked whether what comes before a batch is in the sink."""
_BEHIND = "waiting for another task to publish what it has read of the same partitions before"
_LONGEST_PAUSE_S = 1.0
"""How long it waits for its rate before it looks whether to sweep."""


@dataclass(frozen=True, slots=True)
class TaskHost:
    """What a worker gives all of its tasks."""

    engine: Engine
    ledger: Ledger
    report: Callable[[Report], None]
    pauses: IdlePauses = field(default_factory=IdlePauses)
    admission: Admission = field(default_factory=lambda: Admission(1))


class Task:
    """One task under one token; `run` is for a thread of its own."""

    def __init__(
        self,
        launch: Launch,
        pipeline: Callable[[Context], Pipeline],
        host: TaskHost,
        memory: TaskMemory | None = None,
    ) -> None:
        self.halt = Halt()
        self._launch = launch
        self._make_pipeline = pipeline
        self._host = host
        self._restarts = Restarts(RestartPolicy.of(launch.connector_config))
        self._status = StatusReports(launch, host.report, lambda: self._restarts.made)
        self._memory = memory or TaskMemory()
        self._commits = TaskCommits(
            launch, host.engine, host.ledger, self._memory, self.halt, self._status.tell
        )
        self._outage = Outage(self._restarts.policy, self.halt, self._status.tell)
        self._bad_rows = BadRowsTold()
        self._rate = Rate()
        """That of the attempt that runs."""
        self._remark = ""
        """What its source says beside the batch that was planned last."""
        self._calls = Calls(CallLimits.of(launch.connector_config))
        """Those of the attempt that runs."""
        self._last = BatchClock()
        """That of the last batch; empty before the first."""
        self._ran = False
        self._news = Event()
        """Set when its source says that there may be something to read."""
        self._put_off: dict[str, object] = {}
        self._looks_until = 0.0
        """Until when the attempt that runs may find nothing though there is something to read."""

    def run(self, error: Exception | None = None) -> Ending:
        """Work until somebody asks for an end, or the token is no longer current.

        An `error` is that of a thread that was left behind, in whose place this one goes on.
        """
        self.halt.wait(self._memory.not_before - time.monotonic())
        try:
            tell = self._status.tell
            self._memory.failure = persist(self._attempt, self.halt, self._restarts, tell, error)
        except Fenced as fenced:
            # Should the log still grant this very token, it is tried again, but not at once.
            self._memory.fences += 1
            pause = _FENCED_BACKOFF.pause(self._memory.fences)
            self._memory.not_before = time.monotonic() + pause
            self._status.tell(RunState.UNASSIGNED, f"fenced: {fenced}")
            return Ending.FENCED
        return Ending.CANCELLED if self.halt.is_cancelled else Ending.STOPPED

    def cancel(self) -> None:
        """Ask for an end now; repeat it until there is one, a job may just be beginning."""
        self.halt.cancel()
        self._host.engine.cancel(self._commits.tag)

    def leave(self, *, any_call: bool = False) -> CallTimedOut | None:
        """Leave the running attempt behind if a call of the plugin is overdue. See `Calls`."""
        late = self._calls.leave(any_call=any_call)
        if late is not None:
            self._host.engine.cancel(self._commits.tag)
        return late

    def _attempt(self) -> None:
        """Work until the end, or until the engine or the log is out of reach for a while."""
        self._calls.wait_committed()
        calls = self._calls = Calls(self._calls.limits)
        pipeline = self._made(calls)
        try:
            self._commits.recover(pipeline, calls)
            if self._wait_warm():
                if not self._is_unproven:
                    self._status.tell(RunState.RUNNING)
                with told_to(pipeline.lineage), calls.holding(self._host.pauses.count()):
                    self._loop(pipeline)
                if not self.halt.is_cancelled:  # else a batch may be left to publish
                    self._commits.sweep(pipeline)
        except Exception as error:  # noqa: BLE001  # failures are raised again
            self._wait_after(error)
        finally:
            pipeline.close(lambda error: self._status.warn(f"closing: {reason_of(error)}"))

    def _made(self, calls: Calls) -> Pipeline:
        context = Context(
            self._launch.resource,
            self._status.warn,
            cluster_id=self._host.ledger.cluster_id,
            wake=self._news.set,
            put_off=self._put_off,
            on_spark=self._commits.on_spark,
        )
        made = calls.run("connector.pipeline", self._make_pipeline, context)
        return guard_pipeline(made, calls)

    def _wait_after(self, error: Exception) -> None:
        """Tell of what is no failure of the task, and wait before another attempt."""
        if isinstance(error, LedgerUnavailable):
            self._status.tell(self._waiting, f"waiting for the offsets: {error}")
            self.halt.wait(_LEDGER_PAUSE_S)
        elif isinstance(error, BatchHalved):
            self._status.warn(str(error))
        elif isinstance(error, Away):
            self._outage.wait(error)
        elif isinstance(error, EngineDown) or session_is_gone(error):
            self._status.tell(RunState.RESTARTING, f"the engine is down: {error}")
            self.halt.wait(_WARM_POLL_S)
        else:
            raise error

    def _wait_warm(self) -> bool:
        while not self.halt.is_draining:
            if self._host.engine.wait_warm(_WARM_POLL_S):
                self._ran = True
                return True
            self._status.tell(self._waiting, f"waiting for the engine: {self._host.engine.detail}")
            self.halt.wait(_WARM_POLL_S)
        return False

    @property
    def _is_unproven(self) -> bool:
        """Whether it runs only once a batch is staged: the last attempt could not."""
        return self._outage.is_on or self._restarts.is_unproven

    @property
    def _waiting(self) -> RunState:
        return RunState.RESTARTING if self._ran else RunState.UNASSIGNED

    def _loop(self, pipeline: Pipeline) -> None:
        self._looks_until = time.monotonic() + _LOOK_S
        offsets = dict(self._host.ledger.offsets(self._launch.resource.connector))
        size = BatchSize(pipeline.pace)
        self._rate = Rate.of(pipeline.pace)
        first = True
        # Data may come much later: a task that looks for it, and finds none, is not down.
        began_ms = time.time_ns() // 1_000_000
        while not self.halt.is_draining:
            self._commits.sweep_if_due(pipeline)
            if self._waits_for_rate():
                continue
            clock, looked = BatchClock(), time.thread_time()
            with clock.phase("plan"):
                plan = self._plan(pipeline, offsets, size)
            if self.halt.is_draining:
                return
            if not plan.ranges:
                self._wait_for_news(pipeline, time.thread_time() - looked)
                continue
            commit = self._batch(pipeline, plan, clock)
            if commit is None:
                return
            advance_offsets(offsets, commit)
            self._rate.take(clock.total, commit.rows_in, plan.bytes, backlog=plan.backlog)
            held = Limit(commit.rows_in, plan.bytes, len(plan.ranges))
            size.learn(clock.worked, held, backlog=plan.backlog)
            self._host.report(BatchDone(commit, began_ms, first, clock.phases, self._restarts.made))
            if first:  # its status now tells that it runs batches, and no longer any remark
                self._status.last = (RunState.RUNNING, "")
            first = False
            if not plan.backlog:
                # What comes in a trickle is let pile up: a batch costs much, however small. On a
                # worker that has little to do batches are quick, and so is the next one.
                self.halt.wait(min(clock.worked, pipeline.pace.linger_s - clock.total))

    def _wait_for_news(self, pipeline: Pipeline, look_s: float) -> None:
        self._rate.rest()
        pause_s = self._host.pauses.after(look_s, pipeline.pace.poll_interval_s)
        self.halt.wait_for(self._news, pause_s)

    def _plan(
        self, pipeline: Pipeline, offsets: dict[str, Document], size: BatchSize
    ) -> BatchPlan[Any]:
        self._news.clear()  # before: what comes while it looks is not missed
        try:
            plan = plan_within(pipeline.source, offsets, size, self._calls.limits.memory)
        except NotReady as waiting:
            self._status.tell(RunState.RUNNING, str(waiting), error=ErrorClass.OUTSIDE)
            return BatchPlan()
        self._remark = plan.remark
        # A first look may find nothing yet.
        if not plan.ranges and time.monotonic() >= self._looks_until:
            self._outage.end()
            self._restarts.is_unproven = False
        if not self._is_unproven:
            self._tell_runs()
        return plan

    def _wait_turn(self, plan: BatchPlan[Any]) -> None:
        """Wait while another task has yet to put in place what comes before a batch."""
        while not (self.halt.is_draining or self._commits.is_next(plan)):
            self._status.tell(RunState.RUNNING, _BEHIND)
            self.halt.wait(_TURN_S)

    def _waits_for_rate(self) -> bool:
        """Tell whether a batch has to wait for its rate, after a part of that wait."""
        pause_s = self._rate.pause_s
        if pause_s > 0:
            self._tell_runs()
            self.halt.wait(min(pause_s, _LONGEST_PAUSE_S))
        return pause_s > 0

    def _tell_runs(self) -> None:
        """Tell that it runs, with what its source, its bad rows and its rate have to say."""
        told = self._remark, self._bad_rows.remark, self._rate.remark
        self._status.tell(RunState.RUNNING, "; ".join(filter(None, told)))

    def _batch(self, pipeline: Pipeline, plan: BatchPlan[Any], clock: BatchClock) -> Commit | None:
        """Make a batch count and put it in place; None: an end was asked for before it began."""
        with clock.phase("wait"):
            self._wait_turn(plan)
            place = self._host.admission.enter(self._launch.weight, self.halt)
        with self._calls.holding(place):
            if self.halt.is_draining:
                return None
            with clock.phase("run"), self._restarts.count_engine_losses() as begins:
                commit = self._commits.stage(pipeline, plan, begins)
        commit = replace(commit, cost=clock.cost(plan.bytes, self._last))
        self._restarts.is_unproven = False
        self._outage.end()
        self._tell_runs()
        with clock.phase("commit"):
            sequence = self._commits.commit(pipeline, commit)
        self._bad_rows.count(commit, pipeline.tolerance.queue)
        self._tell_runs()
        with clock.phase("publish"):
            self._commits.publish(pipeline, commit, sequence)
        pipeline.lineage.batch(commit)
        self._last = clock
        return commit
