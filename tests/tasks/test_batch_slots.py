"""A few batches run at once; waiting tasks get a slot by waiting time and weight."""

import threading
import time
from contextlib import suppress
from pathlib import Path
from threading import Timer

import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.runtime.pipeline.engines.engine import EngineDown, EngineExhaustedError, TaskError
from fairlead.runtime.pipeline.tasks.contention import BatchSlots, EngineLosses
from fairlead.runtime.pipeline.tasks.reports import Ending, Stopped
from fairlead.runtime.pipeline.tasks.restarts import (
    Halt,
    RestartPolicy,
    Restarts,
    run_with_restarts,
)
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
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

    def __init__(
        self,
        name: str,
        slots: BatchSlots,
        order: list[str],
        weight: int = 1,
        losses: EngineLosses | None = None,
    ) -> None:
        super().__init__()
        self.name_in_order, self.weight, self.halt = name, weight, Halt()
        self._slots, self._order, self._losses = slots, order, losses

    def run(self) -> None:
        with self._slots.acquire(self.weight, self.halt, self._losses):
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
        each.join(PATIENCE_S)
    assert order == ["heavy", "first", "second"]


def test_a_waiting_task_that_is_asked_to_end_returns_at_once_and_takes_no_slot() -> None:
    order, told = list[str](), list[tuple[int, int]]()
    slots = BatchSlots(1, tell=lambda running, waiting: told.append((running, waiting)))
    with slots.acquire(1, Halt()):
        gone, stays = Waiter("gone", slots, order), Waiter("stays", slots, order)
        gone.start()
        stays.start()
        gone.halt.cancel()
        gone.join(PATIENCE_S)
        assert not gone.is_alive()
        assert order == []
    stays.join(PATIENCE_S)
    assert order == ["stays"]
    assert {told[0], told[-1]} == {(1, 0), (0, 0)}
    assert max(told) == (1, 2)
    with slots.acquire(1, Halt()):  # the slot is free again
        pass


def test_the_oldest_open_batch_tells_its_age_whether_it_has_a_slot_or_not() -> None:
    slots = BatchSlots(1)
    assert slots.oldest_batch_s == 0
    with slots.open_batch():
        time.sleep(0.02)
        with slots.open_batch():
            assert slots.oldest_batch_s >= 0.02
    assert slots.oldest_batch_s == 0


def lost(error: Exception, times: int = 1) -> EngineLosses:
    """Return the losses of a task whose last batches were lost with the engine."""
    losses = EngineLosses()
    for _ in range(times):
        with suppress(EngineDown), losses.counted() as begins:
            begins()
            raise error
    return losses


def test_of_the_tasks_that_lost_the_engine_one_at_a_time_runs_a_batch_in_all_workers(
    tmp_path: Path,
) -> None:
    order, down = list[str](), EngineDown("exit code 3")
    one, other = BatchSlots(9, tmp_path / "lock"), BatchSlots(9, tmp_path / "lock")
    late = Waiter("late", other, order, losses=lost(down))
    gone = Waiter("gone", one, order, losses=lost(down))
    with one.acquire(1, Halt(), lost(down)):
        late.start()
        gone.start()
        with other.acquire(1, Halt(), EngineLosses()):  # it lost nothing, and waits for nobody
            gone.halt.drain()
            gone.join(PATIENCE_S)
        assert (order, late.is_alive(), gone.is_alive()) == ([], True, False)
    late.join(PATIENCE_S)
    assert order == ["late"]


def test_a_batch_that_is_staged_clears_its_task() -> None:
    losses = lost(EngineDown("killed"), 2)
    assert losses
    with losses.counted() as begins:
        begins()
    assert not losses


@pytest.mark.parametrize(
    ("why", "kind", "restarts"),
    [
        ("Terminating due to java.lang.OutOfMemoryError: Java heap space", EngineExhaustedError, 0),
        ("killed", TaskError, 2),
    ],
    ids=["memory", "killed"],
)
def test_an_engine_without_the_memory_for_a_batch_is_not_asked_a_fourth_time(
    why: str, kind: type[TaskError], restarts: int
) -> None:
    with pytest.raises(TaskError, match="the engine ended 3 times in a row") as failed:
        lost(EngineDown(why), 3)
    assert type(failed.value) is kind
    halt, made = Halt(), Restarts(RestartPolicy(0, 0, 2, 60, 0, 0))
    Timer(0.2, halt.drain).start()

    def attempt() -> None:
        raise failed.value

    run_with_restarts(attempt, halt, made, lambda *_: None)
    assert made.made.times == restarts


def test_no_more_batches_run_at_once_and_a_task_that_waits_is_running_and_ends_when_asked(
    root: Path, engine: LocalEngine, ledger: MemoryLedger, hooks: Hooks, reports: Reports
) -> None:
    slots = BatchSlots(1)
    runner = Runner(engine, ledger, numbers_plugins(), reports, grace_ms=10_000, slots=slots)
    gate, second = Gate(), threading.Event()
    hooks.at["stage"] = gate
    (root / "a").mkdir()
    (root / "b").mkdir()
    runner.start(numbers_launch(root / "a", OLD))
    assert gate.reached.wait(PATIENCE_S)
    hooks.at["plan"] = second.set
    other = Resource("n", 1)
    runner.start(numbers_launch(root / "b", OLD, task=1))
    assert second.wait(PATIENCE_S)
    hooks.at.clear()
    runner.stop(other)
    stopped = reports.wait(lambda each: isinstance(each, Stopped) and each.resource == other)
    assert stopped == Stopped(other, OLD, Ending.STOPPED)
    assert {each.state for each in reports.statuses if each.resource == other} == {RunState.RUNNING}
    gate.opened.set()
    reports.wait_batches(3)
    assert (written(root / "a"), written(root / "b")) == (list(range(9)), [])
    assert runner.close(PATIENCE_S) == frozenset()
