"""A task: a loop of batches, which are as large as the target time of a batch allows.

    recover unfinished batches
    while not draining:
        plan the next batch, stage it, commit it, publish it

This module decides when to poll the source, how large a batch is, and what to do while the engine,
the log, the source or the sink is unreachable. `commits.py` makes each batch count exactly once.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from ....actors.timing import Backoff
from ....events.commits import Commit, Document
from ....events.model import ErrorClass, RunState
from ....projections.launches import Launch
from ..engines.engine import Engine, EngineDown, EngineState
from ..engines.failures import session_is_gone
from ..spi.connector import Pipeline
from ..spi.context import Context
from ..spi.errors import Away, CallTimedOut, NotReady
from ..spi.source import BatchPlan, Limit
from .batch_size import BatchSize, RateLimit, plan_within
from .commits import TaskCommits, TaskMemory, advance_offsets
from .contention import BatchSlots, EngineLosses, IdlePauses
from .failures import LastFailure, reason_of, reporting_end
from .ledger import Fenced, Ledger, LedgerUnavailable
from .plugins.calls import CallLimits, Calls
from .plugins.guard import guard_pipeline
from .plugins.results import check_plan
from .range_bisection import BatchSplit
from .reports import BadRowsRemark, BatchClock, BatchDone, Ending, LaneRemark, Report, StatusReports
from .restarts import Halt, Outage, RestartPolicy, Restarts, run_with_restarts

_FENCED_BACKOFF = Backoff(0.5, 30.0)
_LEDGER_PAUSE_S = 2.0
_WARM_POLL_S = 0.2
_EMPTY_PROOF_S = 5.0
"""How long after a start an empty plan does not yet prove that the source has no input."""
_ORDER_POLL_S = 0.2
"""How often a task checks whether the earlier batches of its partitions are in the sink."""
_BEHIND = "waiting for another task to publish its earlier batches of the same partitions"
_LONGEST_PAUSE_S = 1.0
"""The longest sleep while the rate limit holds a batch back; the task may sweep in between."""


@dataclass(frozen=True, slots=True)
class TaskHost:
    """The services of a worker that all its tasks share."""

    engine: Engine
    ledger: Ledger
    report: Callable[[Report], None]
    pauses: IdlePauses = field(default_factory=IdlePauses)
    slots: BatchSlots = field(default_factory=lambda: BatchSlots(1))


class Task:
    """One task under one fencing token; `run` is called on a separate thread."""

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
        self._engine_losses = EngineLosses()
        self._status = StatusReports(launch, host.report, lambda: self._restarts.made)
        self._memory = memory or TaskMemory()
        self._commits = TaskCommits(
            launch, host.engine, host.ledger, self._memory, self.halt, self._status.report
        )
        self._outage = Outage(self._restarts.policy, self.halt, self._status.report)
        self._bad_rows = BadRowsRemark()
        self._lanes = LaneRemark()
        self._rate = RateLimit()
        """The rate limit of the current attempt."""
        self._remark = ""
        """The source's remark in the last plan."""
        self._calls = Calls(CallLimits.of(launch.connector_config))
        """The plugin calls of the current attempt."""
        self._last_clock = BatchClock()
        """The clock of the last batch; empty before the first."""
        self._has_run = False
        self.failure: LastFailure | None = None
        self.wake = Event()
        """Set when there may be new input, or no engine any more: then it looks at once."""
        self._deferred: dict[str, object] = {}
        """The ranges that the source deferred, which the next attempt gets as well."""
        self._unproven_until = 0.0
        """The monotonic time from which an empty plan proves that the current attempt works."""

    def run(self, error: Exception | None = None) -> Ending:
        """Run batches until the task is stopped or cancelled, or its token is no longer current.

        If this thread replaces one that was left behind, `error` is the error of that thread.
        """
        self.halt.wait(self._memory.not_before - time.monotonic())
        try:
            self.failure = run_with_restarts(
                self._attempt, self.halt, self._restarts, self._status.report, error
            )
        except Fenced as fenced:
            # If the log still grants this token, the task is started again, but not at once.
            self._memory.fences += 1
            pause = _FENCED_BACKOFF.pause(self._memory.fences)
            self._memory.not_before = time.monotonic() + pause
            self._status.report(RunState.UNASSIGNED, f"fenced: {fenced}")
            return Ending.FENCED
        return Ending.CANCELLED if self.halt.is_cancelled else Ending.STOPPED

    def cancel(self) -> None:
        """Ask the task to end now; the caller repeats it, since a job may just be starting."""
        self.halt.cancel()
        self._host.engine.cancel(self._commits.tag)

    def leave(self, *, any_call: bool = False) -> CallTimedOut | None:
        """Leave the current attempt behind if a plugin call is overdue; see `Calls.leave`."""
        late = self._calls.leave(any_call=any_call)
        if late is not None:
            self._host.engine.cancel(self._commits.tag)
        return late

    def _attempt(self) -> None:
        """Run batches until the end, or until the engine, the log or the sink is unreachable."""
        self._calls.wait_committed()
        calls = self._calls = Calls(self._calls.limits)
        pipeline = self._make_guarded_pipeline(calls)
        try:
            self._commits.recover(pipeline, calls)
            if not pipeline.needs_engine or self._wait_warm():
                self._has_run = True
                if not self._is_unproven:
                    self._status.report(RunState.RUNNING)
                polling = self._host.pauses.register()
                with reporting_end(pipeline.lineage), calls.holding(polling):
                    offsets = dict(self._host.ledger.offsets(self._launch.resource.connector))
                    self._loop(pipeline, offsets)
                    self._conclude(pipeline, offsets)
                if not self.halt.is_cancelled:  # a cancelled task may have a batch to publish
                    self._commits.sweep(pipeline)
        except Exception as error:  # noqa: BLE001  # failures are raised again
            self._wait_or_raise(error)
        finally:
            pipeline.close(lambda error: self._status.warn(f"closing: {reason_of(error)}"))

    def _make_guarded_pipeline(self, calls: Calls) -> Pipeline:
        context = Context(
            self._launch.resource,
            self._status.warn,
            cluster_id=self._host.ledger.cluster_id,
            wake=self.wake.set,
            deferred=self._deferred,
            on_spark=self._commits.on_spark,
        )
        made = calls.run("connector.pipeline", self._make_pipeline, context)
        return guard_pipeline(made, calls)

    def _wait_or_raise(self, error: Exception) -> None:
        """Report an error that is no failure of the task, and wait; raise any other error."""
        if isinstance(error, LedgerUnavailable):
            self._status.report(self._waiting_state, f"waiting for the offsets: {error}")
            self.halt.wait(_LEDGER_PAUSE_S)
        elif isinstance(error, BatchSplit):
            self._status.warn(str(error))
        elif isinstance(error, Away):
            self._outage.wait(error)
        elif isinstance(error, EngineDown) or session_is_gone(error):
            self._status.report(RunState.RESTARTING, f"the engine is down: {error}")
            self.halt.wait(_WARM_POLL_S)
        else:
            raise error

    def _wait_warm(self) -> bool:
        while not self.halt.is_draining:
            if self._host.engine.wait_warm(_WARM_POLL_S):
                return True
            detail = self._host.engine.detail
            self._status.report(self._waiting_state, f"waiting for the engine: {detail}")
            self.halt.wait(_WARM_POLL_S)
        return False

    @property
    def _is_unproven(self) -> bool:
        """Whether the last attempt failed; then the task is RUNNING only after it has staged."""
        return self._outage.is_on or self._restarts.is_unproven

    @property
    def _waiting_state(self) -> RunState:
        return RunState.RESTARTING if self._has_run else RunState.UNASSIGNED

    def _loop(self, pipeline: Pipeline, offsets: dict[str, Document]) -> None:
        self._unproven_until = time.monotonic() + _EMPTY_PROOF_S
        size = BatchSize(pipeline.pace)
        self._rate = RateLimit.of(pipeline.pace)
        first = True
        # Downtime ends here, not at the first batch: input may arrive much later.
        began_ms = time.time_ns() // 1_000_000
        while not self.halt.is_draining:
            self._commits.sweep_if_due(pipeline)
            if self._waits_for_rate():
                continue
            clock, cpu_s = BatchClock(), time.thread_time()
            with clock.phase("plan"):
                plan = self._plan(pipeline, offsets, size)
            if self.halt.is_draining:
                return
            if not plan.ranges:
                self._wait_for_input(pipeline, time.thread_time() - cpu_s)
                continue
            with self._calls.holding(self._host.slots.open_batch()):
                commit = self._run_batch(pipeline, plan, clock)
            if commit is None:
                return
            advance_offsets(offsets, commit)
            self._rate.consume(clock.total, commit.rows_in, plan.bytes, backlog=plan.backlog)
            size.learn(
                clock.worked,
                Limit(commit.rows_in, plan.bytes, len(plan.ranges)),
                backlog=plan.backlog,
            )
            of_plan = self._restarts.made, len(plan.ranges), self._commits.lanes
            self._host.report(BatchDone(commit, began_ms, first, clock.phases, *of_plan))
            if first:  # the worker resets the status at the first batch, so forget its remark
                self._status.last = (RunState.RUNNING, "")
            first = False
            if not plan.backlog:
                # Let a slow stream of input accumulate; where batches are fast, the pause is short.
                self.halt.wait(min(clock.worked, pipeline.pace.linger_s - clock.total))

    def _conclude(self, pipeline: Pipeline, offsets: dict[str, Document]) -> None:
        """Commit what only counts now that the task ends; nothing if it is cancelled."""
        if self.halt.is_cancelled:
            return
        plan = check_plan(pipeline.source.conclude(offsets), offsets)
        if plan.ranges:
            commit = self._commits.stage_held(pipeline, plan)
            commit = commit or self._commits.stage(pipeline, plan, lambda: None)
            sequence = self._commits.commit(pipeline, commit)
            self._commits.publish(pipeline, commit, sequence)

    def _wait_for_input(self, pipeline: Pipeline, poll_s: float) -> None:
        self._rate.note_idle()
        pause_s = self._host.pauses.after(poll_s, pipeline.pace.poll_interval_s)
        self._host.pauses.sleep(self.halt, self.wake, pause_s)

    def _plan(
        self, pipeline: Pipeline, offsets: dict[str, Document], size: BatchSize
    ) -> BatchPlan[Any]:
        self.wake.clear()  # before the plan, so that no wake-up during it is lost
        if pipeline.needs_engine and self._host.engine.state is not EngineState.WARM:
            raise EngineDown(self._host.engine.detail)
        try:
            plan = plan_within(pipeline.source, offsets, size, self._calls.limits.memory)
        except NotReady as waiting:
            self._status.report(RunState.RUNNING, str(waiting), error=ErrorClass.OUTSIDE)
            return BatchPlan()
        self._remark = plan.remark
        # The first plans may be empty although there is input.
        if not plan.ranges and time.monotonic() >= self._unproven_until:
            self._outage.end()
            self._restarts.is_unproven = False
        if not self._is_unproven:
            self._report_running()
        return plan

    def _wait_for_earlier_batches(self, plan: BatchPlan[Any]) -> None:
        """Wait until other tasks have published the earlier batches of the same partitions."""
        while not (self.halt.is_draining or self._commits.is_next(plan)):
            self._status.report(RunState.RUNNING, _BEHIND)
            self.halt.wait(_ORDER_POLL_S)

    def _waits_for_rate(self) -> bool:
        """Sleep if the rate limit holds the next batch back; return whether it did."""
        pause_s = self._rate.pause_s
        if pause_s > 0:
            self._report_running()
            self.halt.wait(min(pause_s, _LONGEST_PAUSE_S))
        return pause_s > 0

    def _report_running(self) -> None:
        """Report RUNNING with the remarks of the source, of the batches and the rate limit."""
        remarks = self._remark, self._bad_rows.remark, self._rate.remark, self._lanes.remark
        self._status.report(RunState.RUNNING, "; ".join(filter(None, remarks)))

    def _run_batch(
        self, pipeline: Pipeline, plan: BatchPlan[Any], clock: BatchClock
    ) -> Commit | None:
        """Stage, commit and publish a batch; None: the task was asked to end before that."""
        with clock.phase("wait"):
            self._wait_for_earlier_batches(plan)
        commit = None
        is_warm = pipeline.needs_engine  # then it was when the batch was planned
        if not (is_warm or self.halt.is_draining):
            with clock.phase("run"):
                commit = self._commits.stage_held(pipeline, plan)
        commit = commit or self._stage_on_engine(pipeline, plan, clock, is_warm=is_warm)
        if commit is None:
            return None
        commit = replace(commit, cost=clock.cost(plan.bytes, self._last_clock))
        self._restarts.is_unproven = False
        self._outage.end()
        self._report_running()
        with clock.phase("commit"):
            sequence = self._commits.commit(pipeline, commit)
        self._bad_rows.count(commit, pipeline.tolerance.queue)
        self._lanes.count(self._commits.lanes, len(plan.ranges))
        self._report_running()
        with clock.phase("publish"):
            self._commits.publish(pipeline, commit, sequence)
        pipeline.lineage.batch(commit)
        self._last_clock = clock
        return commit

    def _stage_on_engine(
        self, pipeline: Pipeline, plan: BatchPlan[Any], clock: BatchClock, *, is_warm: bool
    ) -> Commit | None:
        """Stage a batch that needs Spark; None: the task was asked to end before that."""
        with clock.phase("wait"):
            if not (is_warm or self._wait_warm()):
                return None
            if not self._is_unproven:
                self._report_running()
            slot = self._host.slots.acquire(self._launch.weight, self.halt, self._engine_losses)
        with self._calls.holding(slot):
            if self.halt.is_draining:
                return None
            with clock.phase("run"), self._engine_losses.counted() as begins:
                return self._commits.stage(pipeline, plan, begins)
