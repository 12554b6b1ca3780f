"""Connectors and tasks of Connect's own classes, as a worker runs them: Kafka's classes do.

A thread here tells the plugin host what is to run, waits for what it says, and reports that. Each
wait can be ended. A host that ends is no failure of what ran in it: that begins anew in the next
host, under the same token.

A pause leaves a task where it is, with its clients, as in Connect. A task of a sink that ends for
good, or stays FAILED, leaves its consumer group, in which it would keep its partitions until its
session ends.

A task that writes exactly once must not write beside one of another generation, nor one of another
worker: DATA_PLANE §1.11 has the argument. So `_may_write` asks the worker each time, a task that is
refused or fenced ends, and starts again only if the log still grants it; and a connector says in
the log that it splits its work again before it has Kafka fence the tasks that it had.

Code of a plugin may block for ever. It is asked now and then where it is, and its status says so;
only `poll` may block for as long as there is nothing.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final

from .....events.model import ErrorClass, RunState
from .....projections.launches import Launch
from ...spi.errors import CallTimedOut, FailedElsewhere, PluginUnknown
from ...tasks.failures import LastFailure
from ...tasks.reports import SPLITS_AGAIN, Ending, Report, StatusReports, TaskConfigsChanged
from ...tasks.restarts import Halt, RestartPolicy, Restarts, run_with_restarts
from ..host import HostDied, HostSlow, OpenQuestion, PluginFailed
from .hosts import TaskHosts
from .notes import TaskNotes
from .runs import STOP_SLACK_S, HostedRun

LOGGER = logging.getLogger(__name__)
_SLOW_S: Final = 10.0
"""After so many seconds in a plugin's own start it is told where its code is."""
_LEAVE_S: Final = 3.0
"""How long a task that ends for good waits for its consumer group: a broker may be away."""
_ABANDON_S: Final = 0.5
"""How long a stop may take in a worker that may lose its session."""
_STOP_LOOK_S: Final = 0.05
_LOGGED_LOOK_S: Final = 0.02
_PROVEN_S: Final = 5.0
"""What has failed and begun anew has to run so long until it is no longer FAILED."""
_LOST_S: Final = 0.1
"""The pause before a run whose host has ended asks for the next one."""
_OUTDATED: Final = "a value that its config refers to is read again (config.reload.action)"
_NEW_S: Final = 3.0
"""How old a look at the plugins here may be for a start."""
_OLD_S: Final = 30.0
"""How old it may be for what runs."""
_CHANGED: Final = "a plugin that its config names was replaced: a restart takes the new one up"
_GONE: Final = "its plugin was removed, or may not run any more: it cannot be started again"
_FENCED: Final = re.compile(
    r"\b(ProducerFenced|InvalidProducerEpoch|FencedInstanceId|FencedMemberEpoch)Exception\b"
)


class _Body:
    """A connector or a task of Connect's, under one fencing token."""

    def __init__(
        self,
        launch: Launch,
        hosts: TaskHosts,
        report: Callable[[Report], None],
        grace_s: float,
        require: Callable[[float], Set[str]],
    ) -> None:
        """`grace_s` is how long a plugin may take to stop, as the host has it.

        `require` is called before each attempt, and now and then, and may take its time: it returns
        the folders of the plugins that the config names, as of so many seconds ago at most. It
        raises `PluginUnknown` if the class is not here, or may not run.
        """
        self.halt = Halt()
        self.failure: LastFailure | None = None
        self._launch = launch
        self._hosts = hosts
        self._report = report
        self._grace_s = grace_s
        self._require = require
        self._restarts = Restarts(RestartPolicy.of(launch.connector_config))
        self._status = StatusReports(launch, report, lambda: self._restarts.made)
        self._notes = TaskNotes(launch, hosts.ledger)
        self._has_run = False
        self._is_fenced = False
        self._target = launch.target_state
        self._present: HostedRun | None = None
        """The run of now, or the last one."""
        self._remark = ""
        """What has become of its plugin since it started; "" if nothing has."""
        self._slow: tuple[str, str, str] | None = None
        """What has not come back, at which line and since when."""

    def run(self, error: Exception | None = None) -> Ending:
        """Run until asked to end, or until Kafka says that another has its place."""
        self.failure = run_with_restarts(
            self._attempt, self.halt, self._restarts, self._status.report, error
        )
        if self._is_fenced:
            return Ending.FENCED
        return Ending.CANCELLED if self.halt.is_cancelled else Ending.STOPPED

    def leave(self, *, any_call: bool = False) -> CallTimedOut | None:
        """Return None: no code of a plugin runs on this thread."""

    def cancel(self) -> None:
        """Ask it to end now."""
        self.halt.cancel()

    def turn(self, target: RunState) -> None:
        """Move it to another target state, RUNNING or PAUSED, without an end."""
        self._target = target
        if (run := self._present) is not None:
            run.changed.set()

    def _attempt(self) -> None:
        plugins, self._remark = self._require(_NEW_S), ""
        with self._hosts.joined(self._launch.resource, self._may_write, plugins) as run:
            self._present = run
            try:
                if self._wait_for_host(run):
                    self._run_in(run)
            except HostDied as died:
                self._status.report(RunState.RESTARTING, f"its host has ended: {died}")
                self.halt.wait(_LOST_S)

    def _run_in(self, run: HostedRun) -> None:
        raise NotImplementedError

    def _may_write(self) -> bool:
        launch = self._launch
        may = not self.halt.is_draining and self._hosts.rights.may_write(
            launch.resource, launch.token
        )
        return may and not self.halt.is_draining

    def _wait_for_host(self, run: HostedRun) -> bool:
        """Wait until the host works; return whether it does."""
        while not self.halt.is_draining:
            run.changed.clear()
            if run.ended is not None:
                raise run.ended
            if run.waits is None:
                return True
            if run.is_for_kafka:
                why = f"waiting for Kafka: {run.waits}"
                self._status.report(RunState.RUNNING, why, error=ErrorClass.OUTSIDE)
            else:
                state = RunState.RESTARTING if self._has_run else RunState.UNASSIGNED
                self._status.report(state, f"waiting for the plugin host: {run.waits}")
            self.halt.wait_for(run.changed)
        return False

    def _answer(self, run: HostedRun, question: OpenQuestion, does: str = "") -> Any:  # noqa: ANN401  # JSON
        """Wait for an answer, for as long as it takes; None if asked to end meanwhile.

        What it `does`, and where, becomes the status if it takes long.
        """
        while not question.is_done and not self.halt.is_draining:
            run.changed.clear()
            if question.is_done:
                break
            self.halt.wait_for(run.changed, _SLOW_S)
            is_slow = does and not (question.is_done or run.changed.is_set())
            if is_slow and (line := question.where()):
                self._report_slow(does, line)
        return question.result(0) if question.is_done else None

    def _report_slow(self, does: str, line: str) -> None:
        """Report that code of the plugin does not come back."""
        if self._slow is None or self._slow[:2] != (does, line):
            since = time.strftime("%H:%M:%S", time.localtime(time.time() - _SLOW_S))
            self._slow = does, line, since
        reason = f"{does} has not come back since {self._slow[2]}: it is at {line}"
        self._status.report(RunState.RUNNING, reason, error=ErrorClass.OUTSIDE)

    def _watch(self, run: HostedRun) -> None:
        """Report what the host says, until asked to end; raises `FailedElsewhere`, `HostDied`."""
        look_at = time.monotonic() + _SLOW_S
        while not self.halt.is_draining:
            run.changed.clear()
            if run.ended is not None:
                raise run.ended
            if run.state == RunState.FAILED.value:
                self._fail(run)
                return
            self._turn(run)
            if self._slow is None:
                self._report_working(run)
            if self._is_to_begin_anew(run):
                return
            self._notes.keep(run.take_topics(), run.figures)
            is_unproven = self._restarts.is_unproven
            left_s = max(0.0, look_at - time.monotonic())
            self.halt.wait_for(run.changed, _PROVEN_S if is_unproven else left_s)
            if not is_unproven and time.monotonic() >= look_at:
                self._look_for_plugin(run)
                self._look(run)
                look_at = time.monotonic() + _SLOW_S

    def _is_to_begin_anew(self, run: HostedRun) -> bool:
        """Return whether a plugin wants to split its work again, or its config has to be read."""
        if run.is_outdated:
            self._status.report(RunState.RESTARTING, _OUTDATED)
        return run.is_outdated or run.wants_reconfiguration

    def _turn(self, run: HostedRun) -> None:
        """Pause or resume what runs, if it was asked to."""

    def _report_working(self, run: HostedRun) -> None:
        """Report RUNNING; after a failure only once it has run for a while, until then FAILED."""
        if run.state == RunState.PAUSED.value:
            self._has_run = True
            self._status.report(RunState.PAUSED, self._remark)
        if run.state != RunState.RUNNING.value:
            return
        self._has_run = True
        if time.monotonic() - run.state_since >= _PROVEN_S:
            self._restarts.is_unproven = False
        if not self._restarts.is_unproven:
            self._status.report(RunState.RUNNING, self._remark)

    def _look_for_plugin(self, run: HostedRun) -> None:
        """Notice that its plugin is another one now, or has gone."""
        try:
            self._remark = "" if self._require(_OLD_S) <= run.plugins else _CHANGED
        except PluginUnknown:
            self._remark = _GONE

    def _look(self, run: HostedRun) -> None:
        """Notice that code of the plugin does not come back, or has."""

    def _fail(self, run: HostedRun) -> None:
        if run.was_refused or _FENCED.search(run.trace):
            self._is_fenced = True
            first = run.trace.partition("\n")[0]
            self._status.report(RunState.UNASSIGNED, f"fenced: {first}")
            self.halt.drain()
            return
        raise FailedElsewhere(run.trace)

    def _wait_for_stop(self, question: OpenQuestion) -> None:
        """Wait for an answer as long as a stop may take."""
        begun = time.monotonic()
        by = begun + self._grace_s + STOP_SLACK_S
        while not question.is_done and time.monotonic() < by:
            question.wait(_STOP_LOOK_S)
            if self.halt.is_cancelled and time.monotonic() - begun < self._grace_s / 2:
                # It is cancelled by the worker, not since its grace period is over.
                by = min(by, time.monotonic() + _ABANDON_S)


class PluginTask(_Body):
    """A task of one of Connect's own classes."""

    _seen: tuple[Mapping[str, str] | None, Sequence[int]] = None, ()
    """Which method of the task was at work at the last look and at which line, None if none was;
    and what the task had done by then."""
    _turned: RunState
    """The target state that its host knows."""

    def _run_in(self, run: HostedRun) -> None:
        if not self._may_begin(run):
            return
        launch = self._launch
        self._notes.begin()
        given = {"config": launch.connector_config, "own": launch.config, "tasks": launch.tasks}
        self._turned = self._target
        paused = self._turned is RunState.PAUSED
        question = run.put("start task", task=launch.resource.task, paused=paused, **given)
        try:
            if self._answer(run, question, "creating the task") is not None:
                self._watch(run)
        finally:
            self._slow = None
            run.stop(question, "stop task", self._wait_for_stop)
            self._leave_group(run)

    @property
    def _place(self) -> Mapping[str, object]:
        place = self._launch.resource
        return {"connector": place.connector, "task": place.task}

    def _may_begin(self, run: HostedRun) -> bool:
        """Wait while a task is paused that has failed: it stays FAILED; False if asked to end."""
        while self._restarts.is_unproven and self._target is RunState.PAUSED:
            if self.halt.is_draining:
                break
            run.changed.clear()
            if run.ended is not None:
                raise run.ended
            if self._target is RunState.PAUSED:
                self.halt.wait_for(run.changed)
        return not self.halt.is_draining

    def _turn(self, run: HostedRun) -> None:
        """Pause or resume the task in its place, if it was asked to."""
        if (target := self._target) is not self._turned:
            paused = target is RunState.PAUSED
            if self._answer(run, run.put("turn task", paused=paused, **self._place)) is not None:
                self._turned = target

    def _leave_group(self, run: HostedRun) -> None:
        """Remove a task that has ended for good from the consumer group that it may be in."""
        resource = self._launch.resource
        may_wait = self.halt.is_draining and not self.halt.is_cancelled
        has_ended = may_wait and self._hosts.rights.has_ended(resource)
        stays_failed = run.has_failed and self._restarts.are_used_up
        if not (has_ended or stays_failed):
            return
        config, by = self._launch.connector_config, time.monotonic() + _LEAVE_S
        question = run.put("leave", config=config, task=resource.task)
        while not (question.is_done or self.halt.is_cancelled) and time.monotonic() < by:
            question.wait(_STOP_LOOK_S)
        try:
            question.result(0)
        except (PluginFailed, HostSlow, HostDied) as error:
            LOGGER.warning("%s stays in its group until its session ends: %s", resource, error)

    def _look(self, run: HostedRun) -> None:
        found = run.put("busy", **self._place)
        busy = self._answer(run, found)
        done = run.figures.counts if run.figures is not None else ()
        before, self._seen = self._seen, (busy, done)
        if busy and self._seen == before:
            self._report_slow(f"its {busy['method']}", busy["line"])
        else:
            self._slow = None


class PluginConnector(_Body):
    """A connector of one of Connect's own classes: it splits its work, again when it asks to."""

    _reported: tuple[Mapping[str, str], ...] | None = None
    """The task configs that were reported last; None: none were."""

    @property
    def _configs(self) -> tuple[Mapping[str, str], ...]:
        """The present task configs: those reported last, or else those of the log."""
        return self._launch.split if self._reported is None else self._reported

    def _run_in(self, run: HostedRun) -> None:
        config = self._launch.connector_config
        question = run.put("start connector", config=config)
        try:
            configs = self._answer(run, question, "its start")
            while configs is not None and not self.halt.is_draining:
                self._tell(run, configs)
                self._watch(run)
                if not run.wants_reconfiguration:
                    return
                run.wants_reconfiguration = False
                again = run.put("task configs", config=config)
                configs = self._answer(run, again, "splitting its work")
        except PluginFailed as failed:
            if run.state == RunState.FAILED.value:
                self._fail(run)  # the state has the stack trace
            else:  # it is not the plugin's start that has failed: Kafka may be away
                raise FailedElsewhere(f"{failed.kind}: {failed}") from None
        finally:
            run.stop(question, "stop connector", self._wait_for_stop)

    def _tell(self, run: HostedRun, configs: list[dict[str, str]]) -> None:
        """Report task configs if they have changed, once no task of before can write any more."""
        if (split := tuple(configs)) == self._configs:
            return
        if not self._fence(run, len(split)):
            return
        self._reported = split
        launch = self._launch
        self._report(TaskConfigsChanged(launch.resource.connector, launch.token, split))
        self._wait_logged()  # until then the log says that it splits its work again

    def _fence(self, run: HostedRun, tasks: int) -> bool:
        """Fence the former tasks if they may still write; return False if asked to end meanwhile.

        A single task that follows a single one fences it when it begins, as each task does. If
        there were none, those of a connector that was deleted may still run.
        """
        config = self._launch.connector_config
        if not self._configs:
            return self._answer(run, run.put("fence former", config=config)) is not None
        if len(self._configs) == tasks == 1:
            return True
        needs = self._answer(run, run.put("fences", config=config))
        if needs:
            self._status.report(RunState.RUNNING, SPLITS_AGAIN)
            self._wait_logged()
            fence = run.put("fence", config=config, tasks=len(self._configs))
            return self._answer(run, fence) is not None  # no other status may come meanwhile
        return needs is not None

    def _wait_logged(self) -> None:
        """Wait until the log has what was reported, or never will."""
        resource = self._launch.resource
        while not (self.halt.is_draining or self._hosts.rights.has_logged(resource)):
            self.halt.wait(_LOGGED_LOOK_S)
