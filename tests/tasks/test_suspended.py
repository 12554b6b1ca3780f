"""What is paused or stopped has its place, says so, and does nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.tasks.reports import StatusChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.numbers import Hooks, Reports, numbers_launch, written

OLD, NEW = Token(1, 0), Token(2, 0)


def run_until_told(
    runner: Runner, reports: Reports, launch: Launch, state: RunState
) -> StatusChanged:
    """Run a launch until it tells a state, then stop it."""
    reports.told.clear()
    runner.start(launch)
    found = reports.wait_status(state=state)
    runner.stop(launch.resource)
    reports.wait_stopped(launch.token)
    return found


@pytest.mark.parametrize(
    ("task", "wanted", "state"),
    [
        (0, RunState.PAUSED, RunState.PAUSED),
        (0, RunState.STOPPED, RunState.PAUSED),
        (-1, RunState.PAUSED, RunState.PAUSED),
        (-1, RunState.STOPPED, RunState.STOPPED),
    ],
)
def test_what_is_not_to_run_says_so_and_writes_nothing(
    root: Path, runner: Runner, reports: Reports, task: int, wanted: RunState, state: RunState
) -> None:
    launch = replace(numbers_launch(root, OLD, task=task), target_state=wanted)
    run_until_told(runner, reports, launch, state)
    assert written(root) == []
    assert runner.running() == frozenset[Resource]()


def test_a_task_that_failed_stays_failed_while_it_is_paused_until_it_is_restarted(
    root: Path, runner: Runner, hooks: Hooks, reports: Reports
) -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    hooks.at["read"] = fail
    launch = numbers_launch(root, OLD, more={"task.restart.budget": "0"})
    failed = run_until_told(runner, reports, launch, RunState.FAILED)
    paused = replace(launch, target_state=RunState.PAUSED)
    assert run_until_told(runner, reports, paused, RunState.FAILED) == failed
    run_until_told(runner, reports, replace(paused, token=NEW), RunState.PAUSED)


def test_a_body_of_pythons_that_is_to_pause_in_its_place_ends_instead(
    root: Path, runner: Runner, reports: Reports
) -> None:
    """The worker takes it for one of Kafka Connect's: its plugin has gone meanwhile."""
    launch = replace(numbers_launch(root, OLD), target_state=RunState.PAUSED)
    runner.start(launch)
    reports.wait_status(state=RunState.PAUSED)
    runner.turn(launch.resource, RunState.RUNNING)
    reports.wait_stopped(launch.token)
