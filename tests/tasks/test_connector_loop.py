"""A connector splits its work, and waits for what it needs to do so."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Thread

import pytest

from fairlead.events.model import ErrorClass, RunState, Token
from fairlead.runtime.pipeline.spi.errors import BadInput, NotReady, SinkAway, SourceAway
from fairlead.runtime.pipeline.tasks import connector_loop, restarts
from fairlead.runtime.pipeline.tasks.connector_loop import ConnectorLoop
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead_tests.tasks.numbers import PATIENCE_S, Hooks, Numbers, Reports, numbers_launch

Start = Callable[..., ConnectorLoop]
AWAY = "waiting for the source: the database does not answer"


class Watching(Numbers):
    """Numbers that asks whether its split still fits."""

    def needs_reconfiguration(self) -> bool:
        self.hooks.pass_by("needs_reconfiguration")
        return False


@pytest.fixture
def start(root: Path, reports: Reports, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Run a connector whose pauses are short; it has no restarts."""
    monkeypatch.setattr(connector_loop, "_POLL_S", 0.01)
    monkeypatch.setattr(restarts, "_AWAY_S", 0.01)
    begun: list[tuple[ConnectorLoop, Thread]] = []

    def start(more: Mapping[str, str] = {}) -> ConnectorLoop:
        quick = {"task.restart.budget": "0", "task.restart.backoff.max.ms": "10", **more}
        launch = numbers_launch(root, Token(1, 0), task=-1, more=quick)
        loop = ConnectorLoop(launch, Watching, reports)
        thread = Thread(target=loop.run)
        thread.start()
        begun.append((loop, thread))
        return loop

    yield start
    for loop, thread in begun:
        loop.halt.drain()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def failing(hooks: Hooks, point: str, error: Exception, times: int) -> None:
    """Have a call fail so often, and then succeed."""
    left = [error] * times

    def fail() -> None:
        if left:
            raise left.pop()

    hooks.at[point] = fail


def told(reports: Reports) -> list[tuple[RunState, ErrorClass | None, str]]:
    return [(each.state, each.error, each.reason) for each in reports.statuses]


def wait_told(reports: Reports, expected: list[tuple[RunState, ErrorClass | None, str]]) -> None:
    reports.wait(lambda _: told(reports) == expected)


@pytest.mark.parametrize("point", ["start", "task_configs"])
def test_a_connector_waits_for_a_source_that_is_away_and_is_not_failed(
    point: str, hooks: Hooks, start: Start, reports: Reports
) -> None:
    failing(hooks, point, SourceAway("the database does not answer"), 3)
    start()
    waits = (RunState.RUNNING, ErrorClass.OUTSIDE, AWAY)
    wait_told(reports, [waits, (RunState.RUNNING, None, "")])
    assert len([each for each in reports.told if isinstance(each, TaskConfigsChanged)]) == 1


def test_what_is_away_while_a_split_is_watched_is_told_once_until_it_answers(
    hooks: Hooks, start: Start, reports: Reports
) -> None:
    failing(hooks, "needs_reconfiguration", SourceAway("the database does not answer"), 3)
    start()
    runs, waits = (RunState.RUNNING, None, ""), (RunState.RUNNING, ErrorClass.OUTSIDE, AWAY)
    wait_told(reports, [runs, waits, runs])


def test_a_connector_that_waits_for_too_long_has_failed(
    hooks: Hooks, start: Start, reports: Reports
) -> None:
    failing(hooks, "task_configs", SinkAway("the broker does not answer"), 99)
    start({"errors.retry.timeout": "0"})
    failed = reports.wait_status(state=RunState.FAILED)
    assert (failed.reason, failed.error) == ("the broker does not answer", ErrorClass.OUTSIDE)


def test_a_connector_that_is_not_ready_says_what_it_waits_for(
    hooks: Hooks, start: Start, reports: Reports
) -> None:
    failing(hooks, "task_configs", NotReady("no file in /in"), 2)
    start()
    waits = (RunState.RUNNING, ErrorClass.OUTSIDE, "waiting: no file in /in")
    wait_told(reports, [waits, (RunState.RUNNING, None, "")])


def test_input_that_the_work_cannot_be_split_by_is_looked_at_again_when_restarts_are_used_up(
    hooks: Hooks, start: Start, reports: Reports
) -> None:
    failing(hooks, "task_configs", BadInput("/in/a.parquet is torn"), 3)
    start()
    failed = (RunState.FAILED, ErrorClass.INPUT, "/in/a.parquet is torn")
    wait_told(reports, [failed, (RunState.RUNNING, None, "")])


def test_any_other_failure_stays_when_restarts_are_used_up(
    hooks: Hooks, start: Start, reports: Reports
) -> None:
    failing(hooks, "task_configs", KeyError("x"), 1)
    loop = start()
    reports.wait_status("KeyError", state=RunState.FAILED)
    loop.halt.wait(0.1)
    assert told(reports) == [(RunState.FAILED, ErrorClass.BUG, "KeyError: 'x'")]
