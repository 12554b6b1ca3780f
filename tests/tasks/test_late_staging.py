"""What a former owner stages after it was cut off does not stay."""

import threading
from pathlib import Path

import pytest

from fairlead.events.commits import CommitId
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.tasks import commits
from fairlead.runtime.pipeline.tasks.reports import Ending
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    Hooks,
    LineSink,
    LocalEngine,
    Reports,
    numbers_plugins,
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
    root: Path, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "_SWEEP_S", 0.0)
    reports = Reports()
    runner = Runner(LocalEngine(), ledger, numbers_plugins(), reports)
    runner.start(launch_of(root, NEW))
    reports.wait_batches(3)
    stage_late(root)
    for _ in range(200):
        if not staged(root):
            break
        threading.Event().wait(0.05)
    assert (written(root), staged(root)) == (list(range(9)), [])
    assert runner.close(10) == frozenset()
