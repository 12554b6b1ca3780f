"""Only so many batches run at once, and who waits is let in by age and weight."""

import threading
import time
from pathlib import Path

from fairlead.events.model import Resource, RunState, Token
from fairlead.runtime.pipeline.tasks.contention import Admission
from fairlead.runtime.pipeline.tasks.reports import Ending, Stopped
from fairlead.runtime.pipeline.tasks.restarts import Halt
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    Gate,
    Hooks,
    LocalEngine,
    Reports,
    numbers_launch,
    numbers_plugins,
    written,
)

OLD = Token(1, 0)


class Visitor(threading.Thread):
    """Enters on a thread of its own, and notes its name once it is let in."""

    def __init__(self, name: str, admission: Admission, order: list[str], weight: int = 1) -> None:
        super().__init__()
        self.visitor, self.weight, self.halt = name, weight, Halt()
        self._admission, self._order = admission, order

    def run(self) -> None:
        with self._admission.enter(self.weight, self.halt):
            if not self.halt.is_draining:
                self._order.append(self.visitor)


def test_who_waits_is_let_in_by_age_times_weight() -> None:
    admission, order = Admission(1), list[str]()
    with admission.enter(1, Halt()):
        visitors = [
            Visitor(name, admission, order, weight)
            for name, weight in (("first", 1), ("second", 1), ("heavy", 1000))
        ]
        for each in visitors:
            each.start()
            time.sleep(0.05)
    for each in visitors:
        each.join(10)
    assert order == ["heavy", "first", "second"]


def test_who_is_to_end_leaves_at_once_and_takes_no_place() -> None:
    admission, order = Admission(1), list[str]()
    with admission.enter(1, Halt()):
        gone, stays = Visitor("gone", admission, order), Visitor("stays", admission, order)
        gone.start()
        stays.start()
        gone.halt.cancel()
        gone.join(10)
        assert not gone.is_alive()
        assert order == []
    stays.join(10)
    assert order == ["stays"]
    with admission.enter(1, Halt()):  # the place is free again
        pass


def test_no_more_batches_run_at_once_and_a_task_that_waits_is_running_and_ends_when_asked(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, hooks: Hooks, reports: Reports
) -> None:
    runner = Runner(engine, ledger, numbers_plugins(), reports, grace_ms=10_000, most_batches=1)
    gate, second = Gate(), threading.Event()
    hooks.at["stage"] = gate
    (root / "a").mkdir()
    (root / "b").mkdir()
    runner.start(numbers_launch(root / "a", OLD))
    assert gate.reached.wait(10)
    hooks.at["plan"] = second.set
    other = Resource("n", 1)
    runner.start(numbers_launch(root / "b", OLD, task=1))
    assert second.wait(10)
    hooks.at.clear()
    runner.stop(other)
    stopped = reports.wait(lambda each: isinstance(each, Stopped) and each.resource == other)
    assert stopped == Stopped(other, OLD, Ending.STOPPED)
    assert {each.state for each in reports.statuses if each.resource == other} == {RunState.RUNNING}
    gate.opened.set()
    reports.wait_batches(3)
    assert (written(root / "a"), written(root / "b")) == (list(range(9)), [])
    assert runner.close(10) == frozenset()
