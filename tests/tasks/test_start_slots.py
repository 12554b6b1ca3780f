"""A few connectors and tasks start at once, however many a worker has been given."""

import operator
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.tasks import contention
from fairlead.runtime.pipeline.tasks.contention import StartSlots
from fairlead.runtime.pipeline.tasks.reports import Started
from fairlead.runtime.pipeline.tasks.restarts import Halt
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
    Hooks,
    LocalEngine,
    Reports,
    numbers_launch,
    numbers_plugins,
)

OLD = Token(1, 0)
SLOTS = 4
MANY = 12


class Crowd:
    """A point at which threads are counted, and kept until the test opens it."""

    def __init__(self) -> None:
        self.most = 0
        """The most threads that were there at once."""
        self.is_full, self.opened, self.all_passed = (threading.Event() for _ in range(3))
        self._lock, self._inside, self._passed = threading.Lock(), 0, 0

    def __call__(self) -> None:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
            if self._inside == SLOTS:
                self.is_full.set()
        assert self.opened.wait(PATIENCE_S)
        with self._lock:
            self._inside -= 1
            self._passed += 1
            if self._passed == MANY:
                self.all_passed.set()


def test_a_start_that_takes_long_lends_its_slot_to_another() -> None:
    slots, halt = StartSlots(), Halt()
    for _ in range(3 * SLOTS):
        slots.acquire(halt)  # none of them is ever given back


def test_a_start_that_is_asked_to_end_waits_for_no_slot_and_takes_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contention, "_LEASE_S", 600.0)
    slots, cancelled = StartSlots(), Halt()
    cancelled.cancel()
    held = [slots.acquire(Halt()) for _ in range(SLOTS)]
    for _ in range(MANY):
        slots.acquire(cancelled).close()
    waiting = threading.Thread(target=slots.acquire, args=[Halt()])
    waiting.start()
    held.pop().close()
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()


@pytest.mark.parametrize(("point", "is_task"), [("start", False), ("plan", True)])
def test_few_of_many_resources_start_at_once_and_all_do_start(
    root: Path,
    engine: LocalEngine,
    hooks: Hooks,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    *,
    is_task: bool,
) -> None:
    monkeypatch.setattr(contention, "_LEASE_S", 600.0)
    runner = Runner(engine, MemoryLedger(), numbers_plugins(), reports)
    crowd = hooks.at[point] = Crowd()
    resources = [Resource("n", each) if is_task else Resource(f"n{each}") for each in range(MANY)]
    for each in resources:
        runner.start(replace(numbers_launch(root, OLD, last=0), resource=each))
    assert crowd.is_full.wait(PATIENCE_S)
    for each in resources:
        reports.wait(partial(operator.eq, Started(each, OLD)))
    crowd.opened.set()
    assert crowd.all_passed.wait(PATIENCE_S)
    assert crowd.most == SLOTS
    assert runner.close(10) == frozenset()
