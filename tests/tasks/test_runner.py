"""What runs, from before its start begins until after its stop has completed."""

from collections.abc import Mapping
from pathlib import Path
from threading import Event

import pytest

from fairlead.events.model import CONNECTOR, Resource, RunState, Token
from fairlead.runtime.pipeline.spi.connector import Pipeline
from fairlead.runtime.pipeline.spi.context import AccessLimits, Context
from fairlead.runtime.pipeline.spi.errors import NotReady
from fairlead.runtime.pipeline.tasks.reports import (
    BatchDone,
    Ending,
    Hung,
    Started,
    StatusChanged,
    Stopped,
    TaskConfigsChanged,
)
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
    Gate,
    Hooks,
    LocalEngine,
    Numbers,
    Reports,
    numbers_launch,
    numbers_plugins,
    staged,
    written,
)

OLD, NEW = Token(1, 0), Token(2, 0)
TASK = Resource("n", 0)
IT = Resource("n", CONNECTOR)


@pytest.fixture
def staging(engine: LocalEngine, hooks: Hooks) -> Event:
    """Set once a batch is being staged, which takes until it is cut short."""
    begun = Event()

    def stage() -> None:
        begun.set()
        engine.wait_cut()

    hooks.at["stage"] = stage
    return begun


def test_a_drain_commits_the_batch_in_flight_and_no_other(
    root: Path, runner: Runner, hooks: Hooks, reports: Reports
) -> None:
    gate = hooks.at["stage"] = Gate()
    runner.start(numbers_launch(root, OLD))
    assert gate.reached.wait(PATIENCE_S)
    runner.stop(TASK)
    assert runner.running() == frozenset({TASK})
    gate.opened.set()
    assert reports.wait_stopped(OLD) == Stopped(TASK, OLD, Ending.STOPPED)
    assert (runner.running(), written(root), staged(root)) == (frozenset(), [0, 1, 2], [])


def test_past_its_grace_a_task_is_cancelled_and_its_batch_does_not_count(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, staging: Event, reports: Reports
) -> None:
    runner = Runner(engine, ledger, numbers_plugins(), reports, grace_ms=50)
    runner.start(numbers_launch(root, OLD))
    assert staging.wait(PATIENCE_S)
    runner.stop(TASK)
    assert reports.wait_stopped(OLD) == Stopped(TASK, OLD, Ending.CANCELLED)
    assert (written(root), staged(root), ledger.accepted) == ([], [], {})
    assert set(engine.cancelled) == {"fairlead-n-0-1-0"}
    runner.close(5)


def test_abandoning_cancels_without_grace(
    root: Path, runner: Runner, ledger: MemoryLedger, staging: Event, reports: Reports
) -> None:
    runner.start(numbers_launch(root, OLD))
    assert staging.wait(PATIENCE_S)
    runner.abandon()
    assert reports.wait_stopped(OLD).ending is Ending.CANCELLED
    assert (written(root), ledger.accepted, runner.running()) == ([], {}, frozenset())


def test_what_runs_is_not_started_beside_itself(
    root: Path, runner: Runner, hooks: Hooks, reports: Reports
) -> None:
    gate = hooks.at["stage"] = Gate()
    runner.start(numbers_launch(root, OLD))
    assert gate.reached.wait(PATIENCE_S)
    with pytest.raises(RuntimeError, match="n-0 runs already"):
        runner.start(numbers_launch(root, NEW))
    hooks.at.clear()
    gate.opened.set()
    reports.wait_batches(3)
    assert [each for each in reports.told if isinstance(each, Started)] == [Started(TASK, OLD)]


def test_batch_numbers_go_on_when_a_task_is_started_again_under_its_token(
    root: Path, runner: Runner, reports: Reports, ledger: MemoryLedger
) -> None:
    runner.start(numbers_launch(root, OLD, last=3))
    reports.wait_batches(1)
    runner.stop(TASK)
    reports.wait_stopped(OLD)
    runner.start(numbers_launch(root, OLD, last=9))
    reports.wait_batches(3)
    assert [each.batch for each in ledger.accepted] == [0, 1, 2]
    assert written(root) == list(range(9))


def test_a_task_that_hangs_in_no_plugin_is_told_and_blocks_nobody(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, reports: Reports
) -> None:
    runner = Runner(engine, ledger, numbers_plugins(), reports, grace_ms=50, hung_ms=50)
    gate = ledger.before_commit = Gate()
    runner.start(numbers_launch(root, OLD))
    assert gate.reached.wait(PATIENCE_S)
    ledger.before_commit = lambda: None
    runner.stop(TASK)
    assert reports.wait(lambda each: isinstance(each, Hung)) == Hung(TASK, OLD)
    other = numbers_launch(root, OLD, task=1)
    runner.start(other)
    reports.wait(lambda each: isinstance(each, BatchDone) and each.commit.commit_id.task == 1)
    assert runner.running() == frozenset({TASK, other.resource})
    gate.opened.set()
    assert runner.close(PATIENCE_S) == frozenset()


def test_a_connector_reports_its_task_configs_once_while_they_stay_the_same(
    root: Path, runner: Runner, reports: Reports
) -> None:
    launch = numbers_launch(root, OLD, task=CONNECTOR, more={"tasks.max": "2"})
    runner.start(launch)
    configs = tuple({**launch.config, "share": share} for share in ("0", "1"))
    found = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert found == TaskConfigsChanged("n", OLD, configs)
    reports.wait_status()
    runner.stop(IT)
    assert reports.wait_stopped(OLD) == Stopped(IT, OLD, Ending.STOPPED)
    assert [each for each in reports.told if isinstance(each, TaskConfigsChanged)] == [found]


def test_a_connector_that_cannot_split_its_work_yet_says_why_and_tries_again(
    root: Path, runner: Runner, hooks: Hooks, reports: Reports
) -> None:
    def not_yet() -> None:
        hooks.at.clear()
        raise NotReady("no file to infer a schema from")

    hooks.at["task_configs"] = not_yet
    runner.start(numbers_launch(root, OLD, task=CONNECTOR))
    reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    reports.wait(lambda each: isinstance(each, StatusChanged) and not each.reason)
    assert [(each.state, each.reason) for each in reports.statuses] == [
        (RunState.RUNNING, "waiting: no file to infer a schema from"),
        (RunState.RUNNING, ""),
    ]


def test_a_connector_and_its_tasks_are_given_what_their_node_has(
    root: Path,
    engine: LocalEngine,
    ledger: MemoryLedger,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Context] = []
    start, pipeline = Numbers.start, Numbers.pipeline

    def started(self: Numbers, context: Context, config: Mapping[str, str]) -> None:
        given.append(context)
        start(self, context, config)

    def made(self: Numbers, context: Context, config: Mapping[str, str]) -> Pipeline:
        given.append(context)
        return pipeline(self, context, config)

    monkeypatch.setattr(Numbers, "start", started)
    monkeypatch.setattr(Numbers, "pipeline", made)
    reach = AccessLimits("/data")
    runner = Runner(engine, ledger, numbers_plugins(), reports, reach=reach, hide=str.upper)
    runner.start(numbers_launch(root, OLD, task=CONNECTOR))
    reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    runner.start(numbers_launch(root, OLD))
    reports.wait_batches(1)
    assert runner.close(PATIENCE_S) == frozenset()
    connector, task = given
    node = (reach, ledger.cluster_id, str.upper, connector.shared)
    for each in (connector, task):
        assert (each.reach, each.cluster_id, each.hide, each.shared) == node


@pytest.mark.parametrize("resource", [IT, TASK])
def test_what_asks_for_another_version_of_its_class_stays_failed_and_names_the_one_installed(
    resource: Resource, root: Path, runner: Runner, reports: Reports
) -> None:
    more = {"connector.plugin.version": "2.0"}
    runner.start(numbers_launch(root, OLD, task=resource.task, more=more))
    last = reports.wait_status(state=RunState.FAILED)
    assert "connector.plugin.version: version 0 is installed here, and no other" in last.trace
    runner.stop(resource)
    assert reports.wait_stopped(OLD) == Stopped(resource, OLD, Ending.STOPPED)
