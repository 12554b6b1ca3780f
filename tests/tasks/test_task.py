"""A batch counts once, whatever happens before, at and after its commit."""

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.events.commits import CommitId, Document, Manifest
from fairlead.events.model import ErrorClass, Resource, RunState, Token
from fairlead.projections.metrics.processes import PHASES
from fairlead.runtime.pipeline.engines.engine import EngineState
from fairlead.runtime.pipeline.spi.connector import Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.errors import BadInput, NotReady, SinkAway, SourceAway
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit
from fairlead.runtime.pipeline.tasks import restarts
from fairlead.runtime.pipeline.tasks.commits import TaskMemory
from fairlead.runtime.pipeline.tasks.contention import IdlePauses
from fairlead.runtime.pipeline.tasks.reports import (
    Ending,
    StatusChanged,
    Stopped,
    Warned,
)
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead.runtime.pipeline.tasks.task import Task, TaskHost
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
    CountingSource,
    Gate,
    Hooks,
    LineSink,
    LocalEngine,
    Numbers,
    Reports,
    numbers_launch,
    staged,
    written,
)

OLD, NEW = Token(1, 0), Token(2, 0)
TASK = Resource("n", 0)
ALL = list(range(9))
EMPTY_PROOF = "fairlead.runtime.pipeline.tasks.task._EMPTY_PROOF_S"


def task(
    root: Path,
    token: Token,
    engine: LocalEngine,
    ledger: MemoryLedger,
    reports: Reports,
    memory: TaskMemory | None = None,
    *,
    number: int = 0,
) -> Task:
    launch = numbers_launch(root, token, task=number)
    made = Numbers()
    return Task(
        launch,
        lambda context: made.pipeline(context, launch.config),
        TaskHost(engine, ledger, reports),
        memory,
    )


@contextmanager
def meanwhile(act: Callable[[], object]) -> Generator[None]:
    """Have something done on a thread of its own, and done with by the end."""
    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()


def run_to_end(successor: Task, reports: Reports, batches: int) -> Ending:
    """Run a task until so many batches in all were reported, then drain it."""

    def drain() -> None:
        reports.wait_batches(batches)
        successor.halt.drain()

    with meanwhile(drain):
        return successor.run()


def run_unanswered(old: Task, reports: Reports) -> Ending:
    """Run a task until it is told that a commit has no answer, then cancel it."""

    def cancel() -> None:
        reports.wait_status("no answer")
        old.cancel()

    with meanwhile(cancel):
        return old.run()


@contextmanager
def asleep(old: Task, gate: Gate) -> Generator[None]:
    """Run a task up to a gate; at the end it goes on with its batch, as a zombie."""
    thread = threading.Thread(target=old.run)
    thread.start()
    assert gate.reached.wait(PATIENCE_S)
    try:
        yield
    finally:
        old.halt.drain()
        gate.opened.set()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.mark.parametrize("point", ["plan", "read", "stage", "commit", "publish"])
def test_a_task_that_falls_asleep_anywhere_and_wakes_too_late_loses_and_doubles_nothing(
    point: str, root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger
) -> None:
    gate = Gate()
    if point == "commit":
        ledger.before_commit = gate
    else:
        hooks.at[point] = gate
    with asleep(task(root, OLD, engine, ledger, Reports()), gate):
        hooks.at.clear()
        ledger.before_commit = lambda: None
        reports = Reports()
        ledger.grant(TASK, NEW)
        left = 2 if point == "publish" else 3
        successor = task(root, NEW, engine, ledger, reports)
        assert run_to_end(successor, reports, left) is Ending.STOPPED
        assert (written(root), ledger.to_publish) == (ALL, [])
    assert (written(root), staged(root)) == (ALL, [])


def test_what_another_task_has_read_of_a_partition_is_in_the_sink_before_anything_newer(
    root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger
) -> None:
    gate = hooks.at["publish"] = Gate()
    former, reports = task(root, OLD, engine, ledger, Reports()), Reports()
    ledger.grant(Resource("n", 1), NEW)
    follower = task(root, NEW, engine, ledger, reports, number=1)

    def let_go() -> None:
        reports.wait_status("another task")
        assert written(root) == []
        former.halt.drain()
        hooks.at.clear()
        gate.opened.set()
        reports.wait_batches(2)
        follower.halt.drain()

    with asleep(former, gate), meanwhile(let_go):
        assert follower.run() is Ending.STOPPED
    assert (written(root), staged(root), ledger.to_publish) == (ALL, [], [])


def test_each_try_to_publish_a_batch_has_its_number_and_each_later_batch_a_higher_one(
    root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger
) -> None:
    ledger.faults.extend(["", "lost"])
    gate = Gate()
    hooks.at["publish"] = lambda: gate() if len(hooks.sequences) == 2 else None
    with asleep(task(root, OLD, engine, ledger, Reports()), gate):
        hooks.at.clear()
        ledger.grant(TASK, NEW)
        run_to_end(task(root, NEW, engine, ledger, reports := Reports()), reports, 1)
        first, tried, again, last = hooks.sequences
        assert first < tried == again < last


def test_a_note_that_the_log_cannot_hold_ends_the_batch_before_its_commit(
    root: Path,
    engine: LocalEngine,
    ledger: MemoryLedger,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = LineSink.stage

    def noted(self: LineSink, rows: Any, commit_id: CommitId, input_bytes: int) -> Manifest:
        return replace(stage(self, rows, commit_id, input_bytes), note={"upload": "x" * 5000})

    monkeypatch.setattr(LineSink, "stage", noted)
    first = task(root, OLD, engine, ledger, reports)
    with meanwhile(first.run):
        told = reports.wait_status("note")
        first.cancel()
    told_reason, _, _ = told.reason.partition(";")
    assert told_reason == "sink.stage: the manifest's note takes 5014 bytes: 4096 are allowed"
    assert (ledger.accepted, staged(root)) == ({}, [])


def test_a_lost_answer_does_not_double_a_batch(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    ledger.faults.extend(["lost", "away", "away", "", "lost"])
    assert run_to_end(task(root, OLD, engine, ledger, reports), reports, 3) is Ending.STOPPED
    assert (written(root), len(ledger.accepted)) == (ALL, 3)


def test_a_cancelled_task_leaves_a_batch_of_unknown_outcome_to_its_successor(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    ledger.faults.extend(["lost", *["away"] * 1000])
    old = task(root, OLD, engine, ledger, reports)
    assert run_unanswered(old, reports) is Ending.CANCELLED
    assert (written(root), len(staged(root))) == ([], 1)
    ledger.faults.clear()
    ledger.grant(TASK, NEW)
    assert run_to_end(task(root, NEW, engine, ledger, reports), reports, 2) is Ending.STOPPED
    assert (written(root), staged(root)) == (ALL, [])


def test_a_commit_of_unknown_outcome_is_settled_before_the_next_batch_of_the_same_token(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    ledger.faults.extend(["away"] * 1000)
    memory = TaskMemory()
    first = task(root, OLD, engine, ledger, reports, memory)
    run_unanswered(first, reports)
    ledger.faults.clear()
    assert memory.unsettled is not None
    again = task(root, OLD, engine, ledger, reports, memory)
    assert run_to_end(again, reports, 2) is Ending.STOPPED
    assert (written(root), [each.batch for each in ledger.accepted]) == (ALL, [0, 1, 2])


def test_a_zombie_is_fenced_and_leaves_nothing_behind(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    gate = ledger.before_commit = Gate()
    zombie = task(root, OLD, engine, ledger, reports)
    endings: list[Ending] = []
    thread = threading.Thread(target=lambda: endings.append(zombie.run()))
    thread.start()
    assert gate.reached.wait(PATIENCE_S)
    assert len(staged(root)) == 1
    ledger.before_commit = lambda: None
    ledger.grant(TASK, NEW)
    successor = Reports()
    run_to_end(task(root, NEW, LocalEngine(), ledger, successor), successor, 3)
    assert staged(root) == []
    gate.opened.set()
    thread.join()
    assert (endings, written(root), staged(root)) == ([Ending.FENCED], ALL, [])


def test_a_refused_commit_ends_the_task_as_fenced(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    ledger.grant(TASK, NEW)
    assert task(root, OLD, engine, ledger, reports).run() is Ending.FENCED
    assert (written(root), staged(root)) == ([], [])
    assert reports.statuses[-1] == StatusChanged(
        TASK, OLD, RunState.UNASSIGNED, "fenced: token 1-0 is not current: 2-0 is"
    )


def test_a_lost_engine_is_waited_for_and_the_batch_is_redone_under_the_same_token(
    root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    def lose() -> None:
        hooks.at.clear()
        engine.lose()

    hooks.at["stage"] = lose
    worker = task(root, OLD, engine, ledger, reports)

    def reopen() -> None:
        reports.wait_status("waiting")
        engine.open()

    with meanwhile(reopen):
        run_to_end(worker, reports, 3)
    assert (written(root), [each.batch for each in ledger.accepted]) == (ALL, [1, 2, 3])
    assert [(each.state, each.reason) for each in reports.statuses] == [
        (RunState.RUNNING, ""),
        (RunState.RESTARTING, "the engine is down: the driver is gone"),
        (RunState.RESTARTING, "waiting for the engine: a driver of the tests"),
        (RunState.RUNNING, ""),
    ]


def test_an_idle_task_tells_at_once_that_its_engine_is_gone(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    worker = task(root, OLD, engine, ledger, reports)

    def lose() -> None:
        reports.wait_batches(3)
        engine.lose()
        worker.wake.set()
        reports.wait_status("the engine is down: a driver of the tests")
        engine.open()
        reports.wait(
            lambda _: (
                [each.state for each in reports.statuses][-2:]
                == [RunState.RESTARTING, RunState.RUNNING]
            )
        )
        worker.halt.drain()
        worker.wake.set()

    with meanwhile(lose):
        worker.run()
    states = [each.state for each in reports.statuses]
    assert {*states[1:-1]} == {RunState.RESTARTING}
    assert (states[0], states[-1]) == (RunState.RUNNING, RunState.RUNNING)


def test_a_batch_that_ends_the_engine_again_and_again_fails_its_task_until_it_is_staged(
    root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    ends: list[None] = []

    def end_engine() -> None:
        ends.append(None)
        if len(ends) < 5:
            engine.lose()
            engine.open()

    hooks.at["stage"] = end_engine
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 3)
    failed = [each for each in reports.statuses if each.state is RunState.FAILED]
    assert [each.error for each in failed] == [ErrorClass.INPUT] * 2
    assert failed[0].reason.startswith(
        "the engine ended 3 times in a row over a batch of this task, which may take more memory"
        " than there is: raise spark.heap, lower batch.max.bytes, or change its query."
    )
    assert failed[1].reason.startswith("the engine ended 4 times in a row"), "none was staged since"
    assert written(root) == ALL


def test_an_engine_that_ends_before_the_batch_of_a_task_begins_is_not_held_against_the_task(
    root: Path, hooks: Hooks, ledger: MemoryLedger, reports: Reports
) -> None:
    class OftenLost(LocalEngine):
        def wait_warm(self, seconds: float) -> bool:
            self.open()
            return super().wait_warm(seconds)

    ends: list[None] = []
    engine = OftenLost()

    def end_engine() -> None:
        ends.append(None)
        if len(ends) < 5:
            engine.lose()

    hooks.at["plan"] = end_engine
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 3)
    assert [each.state for each in reports.statuses] == [
        RunState.RUNNING,
        *((RunState.RESTARTING, RunState.RUNNING) * 4),
    ]
    assert written(root) == ALL


def test_a_task_that_comes_before_the_engine_is_warm_waits_with_a_reason(
    root: Path, ledger: MemoryLedger, reports: Reports
) -> None:
    engine = LocalEngine(EngineState.WARMING)
    worker = task(root, OLD, engine, ledger, reports)

    def warm() -> None:
        reports.wait_status()
        engine.open()

    with meanwhile(warm):
        run_to_end(worker, reports, 3)
    assert reports.statuses[0].state is RunState.UNASSIGNED
    assert reports.statuses[0].reason == "waiting for the engine: a driver of the tests"


def test_a_failed_task_restarts_and_says_why(
    root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    def fail_once() -> None:
        hooks.at.clear()
        raise OSError(28, "No space left on device")

    hooks.at["stage"] = fail_once
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 3)
    states = [each.state for each in reports.statuses]
    assert states == [RunState.RUNNING, RunState.FAILED, RunState.RESTARTING, RunState.RUNNING]
    assert reports.statuses[1].trace.endswith("OSError: [Errno 28] No space left on device")
    assert (written(root), staged(root)) == (ALL, [])


def test_a_task_that_somebody_has_to_mend_the_input_of_is_failed_until_a_batch_is_staged(
    root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    reads: list[None] = []

    def fail_twice() -> None:
        reads.append(None)
        if len(reads) < 3:
            raise BadInput("3 is no word")

    hooks.at["read"] = fail_twice
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 3)
    states = [each.state for each in reports.statuses]
    assert states == [RunState.RUNNING, RunState.FAILED, RunState.FAILED, RunState.RUNNING]
    assert (written(root), staged(root)) == (ALL, [])


def test_a_crash_loop_ends_failed_with_its_history(
    root: Path, runner: Runner, hooks: Hooks, reports: Reports
) -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    hooks.at["read"] = fail
    launch = numbers_launch(root, OLD, more={"task.restart.budget": "2"})
    runner.start(launch)
    last = reports.wait_status("stayed FAILED")
    assert (last.state, last.reason) == (RunState.FAILED, "ValueError: no such thing")
    assert last.trace.count("ValueError: no such thing") == 4  # once raised, thrice in its history
    assert runner.running() == frozenset({TASK})
    runner.stop(TASK)
    assert reports.wait_stopped(OLD) == Stopped(TASK, OLD, Ending.STOPPED)


def test_a_config_that_is_not_fit_for_use_fails_without_restarts(
    root: Path, runner: Runner, reports: Reports
) -> None:
    launch = numbers_launch(root, OLD, more={"connector.class": "Numbr"})
    runner.start(launch)
    first = reports.wait_status()
    why = (
        "Failed to find any class that implements Connector and which name matches Numbr,"
        " available connectors are: fairlead_tests.tasks.numbers.Numbers; did you mean Numbers?"
    )
    assert isinstance(first, StatusChanged)
    assert (first.state, first.error) == (RunState.FAILED, ErrorClass.CONFIG)
    assert (first.reason, first.trace) == (why, why)
    runner.stop(TASK)


def test_a_batch_is_measured_in_all_its_phases(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 3)
    assert [each.is_first for each in reports.batches] == [True, False, False]
    told = [(each.commit_id.batch, each.rows_in, each.manifest.rows) for each in reports.commits]
    assert told == [(0, 3, 3), (1, 3, 3), (2, 3, 3)]
    assert all(tuple(each.seconds) == PHASES for each in reports.batches)
    assert all(min(each.seconds.values()) > 0 for each in reports.batches)


def test_a_task_that_finds_no_work_at_first_is_told_to_have_begun_when_it_looked(
    root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    looked_ms: list[int] = []

    def look() -> None:
        looked_ms.append(time.time_ns() // 1_000_000)
        if len(looked_ms) == 1:
            raise NotReady("nothing is there yet")

    hooks.at["plan"] = look
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 1)
    first = reports.batches[0]
    assert first.is_first
    assert first.began_ms <= looked_ms[0] < looked_ms[1]


def test_a_source_that_is_away_is_waited_for_with_a_reason_and_costs_no_restart(
    root: Path,
    hooks: Hooks,
    engine: LocalEngine,
    ledger: MemoryLedger,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[None] = []

    def look() -> None:
        looks.append(None)
        if len(looks) <= 7:  # more often than there are restarts
            raise SourceAway("the database does not answer")

    monkeypatch.setattr(restarts, "_AWAY_S", 0.01)
    hooks.at["plan"] = look
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 1)
    waits = "waiting for the source: the database does not answer"
    told = [(each.state, each.error, each.reason) for each in reports.statuses]
    assert told == [
        (RunState.RUNNING, None, ""),
        (RunState.RUNNING, ErrorClass.OUTSIDE, waits),
        (RunState.RUNNING, None, ""),
    ]


@pytest.mark.parametrize(
    ("point", "failure"),
    [
        ("plan", (ConnectionRefusedError("refused"), "source: source.plan: refused")),
        ("read", (ConnectionResetError("reset"), "source: source.read: reset")),
        ("stage", (TimeoutError("timed out"), "sink: sink.stage: timed out")),
        ("publish", (BrokenPipeError("broken"), "sink: sink.publish: broken")),
    ],
)
def test_a_connection_that_fails_says_that_the_source_or_the_sink_is_away(
    point: str,
    failure: tuple[Exception, str],
    root: Path,
    hooks: Hooks,
    runner: Runner,
    reports: Reports,
) -> None:
    error, reason = failure

    def fail_once() -> None:
        hooks.at.clear()
        raise error

    hooks.at[point] = fail_once
    runner.start(numbers_launch(root, OLD))
    reports.wait(lambda _: written(root) == ALL)
    told = [(each.state, each.reason) for each in reports.statuses if each.error]
    assert told == [(RunState.RUNNING, f"waiting for the {reason}")]
    runner.stop(TASK)


@pytest.fixture
def nothing_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def discard(*_: object) -> None:
        raise SinkAway("the disk is gone")

    monkeypatch.setattr(LineSink, "discard", discard)


@pytest.mark.usefixtures("nothing_is_discarded")
def test_why_a_batch_does_not_count_is_told_though_it_cannot_be_discarded(
    root: Path, hooks: Hooks, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    def fail_once() -> None:
        hooks.at.clear()
        raise BadInput("3 is no word")

    hooks.at["read"] = fail_once
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 3)
    (failed,) = (each for each in reports.statuses if each.state is RunState.FAILED)
    assert failed.reason.startswith("3 is no word; restarts in")
    assert written(root) == ALL


@pytest.mark.usefixtures("nothing_is_discarded")
def test_a_refused_commit_ends_the_task_though_it_cannot_be_discarded(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    ledger.grant(TASK, NEW)
    assert task(root, OLD, engine, ledger, reports).run() is Ending.FENCED
    successor = Reports()
    run_to_end(task(root, NEW, engine, ledger, successor), successor, 3)
    assert (written(root), staged(root)) == (ALL, [])


def test_a_task_lets_go_of_all_its_ends_whatever_they_raise(
    root: Path,
    engine: LocalEngine,
    ledger: MemoryLedger,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def close(_: object) -> None:
        raise OSError("it is stuck")

    monkeypatch.setattr(CountingSource, "close", close)
    monkeypatch.setattr(LineSink, "close", close)
    launch = numbers_launch(root, OLD)

    def pipeline(context: Context) -> Pipeline:
        made = Numbers().pipeline(context, launch.config)
        return replace(made, dead_letters=LineSink(root / "letters", Hooks()))

    ending = run_to_end(Task(launch, pipeline, TaskHost(engine, ledger, reports)), reports, 3)
    told = [each.text for each in reports.told if isinstance(each, Warned)]
    assert (ending, told) == (Ending.STOPPED, 3 * ["closing: it is stuck"])


def test_a_source_that_stays_away_for_too_long_is_a_failure(
    root: Path, hooks: Hooks, runner: Runner, reports: Reports
) -> None:
    def look() -> None:
        raise SourceAway("the database does not answer")

    hooks.at["plan"] = look
    more = {"errors.retry.timeout": "0", "task.restart.budget": "0"}
    runner.start(numbers_launch(root, OLD, more=more))
    failed = reports.wait_status(state=RunState.FAILED)
    assert failed.reason == "the database does not answer"
    runner.stop(TASK)


def test_a_source_that_answers_in_between_is_not_away_for_too_long(
    root: Path,
    hooks: Hooks,
    runner: Runner,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[None] = []

    def look() -> None:
        looks.append(None)
        if len(looks) % 2:
            raise SourceAway("the database does not answer")
        if len(looks) > 6:
            raise ValueError("the test is over")

    monkeypatch.setattr(restarts, "_AWAY_S", 0.01)
    monkeypatch.setattr(EMPTY_PROOF, 0.0)
    hooks.at["plan"] = look
    more = {"errors.retry.timeout": "0", "task.restart.budget": "0"}
    runner.start(numbers_launch(root, OLD, last=0, more=more))
    failed = reports.wait_status(state=RunState.FAILED)
    assert failed.reason == "ValueError: the test is over"
    runner.stop(TASK)


def test_a_first_look_that_finds_nothing_yet_does_not_end_the_time_that_the_sink_is_away(
    root: Path,
    hooks: Hooks,
    runner: Runner,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, looked = CountingSource.plan, list[CountingSource]()

    def look(
        self: CountingSource, offsets: Mapping[str, Document], limit: Limit
    ) -> BatchPlan[range]:
        if self not in looked:
            looked.append(self)
            return BatchPlan()
        return plan(self, offsets, limit)

    def stage() -> None:
        raise SinkAway("the disk is gone")

    monkeypatch.setattr(restarts, "_AWAY_S", 0.01)
    monkeypatch.setattr(CountingSource, "plan", look)
    hooks.at["stage"] = stage
    more = {"errors.retry.timeout": "0", "task.restart.budget": "0"}
    runner.start(numbers_launch(root, OLD, more=more))
    reports.wait_status(state=RunState.FAILED)
    assert [(each.state, each.reason) for each in reports.statuses] == [
        (RunState.RUNNING, ""),
        (RunState.RUNNING, "waiting for the sink: the disk is gone"),
        (RunState.FAILED, "the disk is gone"),
    ]
    runner.stop(TASK)


def test_a_sink_that_takes_what_is_left_is_not_away_any_more_though_there_is_nothing_new(
    root: Path,
    hooks: Hooks,
    runner: Runner,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def publish() -> None:
        hooks.at.clear()
        raise SinkAway("the disk is gone")

    monkeypatch.setattr(restarts, "_AWAY_S", 0.01)
    monkeypatch.setattr(EMPTY_PROOF, 0.0)
    hooks.at["publish"] = publish
    runner.start(numbers_launch(root, OLD, last=3))
    reports.wait(lambda _: len(reports.statuses) == 3)
    assert [(each.state, each.reason) for each in reports.statuses] == [
        (RunState.RUNNING, ""),
        (RunState.RUNNING, "waiting for the sink: the disk is gone"),
        (RunState.RUNNING, ""),
    ]
    assert written(root) == [0, 1, 2]
    runner.stop(TASK)


def test_a_remark_that_stays_is_not_told_anew_with_each_batch(
    root: Path,
    engine: LocalEngine,
    ledger: MemoryLedger,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = CountingSource.plan

    def remarked(
        self: CountingSource, offsets: Mapping[str, Document], limit: Limit
    ) -> BatchPlan[range]:
        return replace(plan(self, offsets, limit), remark="1 link is skipped")

    monkeypatch.setattr(CountingSource, "plan", remarked)
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 3)
    told = [each.reason for each in reports.statuses if each.state is RunState.RUNNING]
    # The second time is for the first batch: its status has taken the place of the remark.
    assert told == ["", "1 link is skipped", "1 link is skipped"]


def test_a_task_waits_for_the_offsets_without_failing(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    ledger.away_for = 1
    run_to_end(task(root, OLD, engine, ledger, reports), reports, 3)
    assert [(each.state, each.reason) for each in reports.statuses] == [
        (RunState.UNASSIGNED, "waiting for the offsets: the coordinator is away"),
        (RunState.RUNNING, ""),
    ]
    assert written(root) == ALL


def test_a_task_that_waits_for_news_plans_at_once_when_its_source_says_that_there_are_some(
    tmp_path: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    class Told(CountingSource):
        def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[range]:
            del offsets, limit
            looks.append(len(looks))
            if len(looks) == 1:
                contexts[0].wake()
            else:
                waiting.halt.drain()
            return BatchPlan()

    def pipeline(context: Context) -> Pipeline:
        contexts.append(context)
        made = Numbers()
        return replace(made.pipeline(context, launch.config), source=Told(9, made.hooks))

    class Patient(IdlePauses):
        def after(self, poll_s: float, longest_s: float) -> float:
            del poll_s, longest_s
            return 3600.0

    looks, contexts = list[int](), list[Context]()
    launch = numbers_launch(tmp_path, OLD)
    waiting = Task(launch, pipeline, TaskHost(engine, ledger, reports, Patient()))
    assert waiting.run() is Ending.STOPPED
    assert looks == [0, 1]
