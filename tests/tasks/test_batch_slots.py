"""A few batches run at once; waiting tasks get a slot by waiting time and weight."""

import threading
import time
from pathlib import Path

from fairlead.events.model import Resource, RunState, Token
from fairlead.runtime.pipeline.tasks.contention import BatchSlots
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


class Waiter(threading.Thread):
    """Waits for a slot on a separate thread, and appends its name once it has one."""

    def __init__(self, name: str, slots: BatchSlots, order: list[str], weight: int = 1) -> None:
        super().__init__()
        self.name_in_order, self.weight, self.halt = name, weight, Halt()
        self._slots, self._order = slots, order

    def run(self) -> None:
        with self._slots.acquire(self.weight, self.halt):
            if not self.halt.is_draining:
                self._order.append(self.name_in_order)


def test_waiting_tasks_get_a_slot_by_waiting_time_times_weight() -> None:
    slots, order = BatchSlots(1), list[str]()
    with slots.acquire(1, Halt()):
        waiters = [
            Waiter(name, slots, order, weight)
            for name, weight in (("first", 1), ("second", 1), ("heavy", 1000))
        ]
        for each in waiters:
            each.start()
            time.sleep(0.05)
    for each in waiters:
        each.join(10)
    assert order == ["heavy", "first", "second"]


def test_a_waiting_task_that_is_asked_to_end_returns_at_once_and_takes_no_slot() -> None:
    slots, order = BatchSlots(1), list[str]()
    with slots.acquire(1, Halt()):
        gone, stays = Waiter("gone", slots, order), Waiter("stays", slots, order)
        gone.start()
        stays.start()
        gone.halt.cancel()
        gone.join(10)
        assert not gone.is_alive()
        assert order == []
    stays.join(10)
    assert order == ["stays"]
    with slots.acquire(1, Halt()):  # the slot is free again
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
