"""What a former owner stages after it was cut off does not stay."""

from pathlib import Path

import pytest

from fairlead.events.commits import CommitId
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.tasks import commits
from fairlead.runtime.pipeline.tasks.reports import Ending
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
    Gate,
    Hooks,
    LineSink,
    Reports,
    staged,
    written,
)
from fairlead_tests.tasks.numbers import numbers_launch as launch_of

TASK, OLD, NEW = Resource("n", 0), Token(1, 0), Token(2, 0)


def stage_late(root: Path) -> None:
    LineSink(root, Hooks()).stage([99], CommitId(*TASK, OLD, 0), 0)


def test_a_task_that_ends_in_good_order_sweeps_once_more(
    root: Path, runner: Runner, ledger: MemoryLedger, reports: Reports
) -> None:
    ledger.grant(TASK, NEW)
    runner.start(launch_of(root, NEW))
    reports.wait_batches(3)
    stage_late(root)
    runner.stop(TASK)
    assert reports.wait_stopped(NEW).ending is Ending.STOPPED
    assert (written(root), staged(root)) == (list(range(9)), [])


def test_a_task_sweeps_now_and_then(
    root: Path, runner: Runner, reports: Reports, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "_SWEEP_S", 0.0)
    runner.start(launch_of(root, NEW))
    reports.wait_batches(3)
    looking, looking_again = Gate(), Gate()
    hooks.at["plan"] = looking
    assert looking.reached.wait(PATIENCE_S)
    stage_late(root)  # while the task does not sweep
    hooks.at["plan"] = looking_again
    looking.opened.set()
    assert looking_again.reached.wait(PATIENCE_S)
    assert (written(root), staged(root)) == (list(range(9)), [])
    hooks.at.clear()
    looking_again.opened.set()
