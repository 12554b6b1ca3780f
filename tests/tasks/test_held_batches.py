# pyright: basic
"""A batch that its worker holds as a table needs no engine; any other batch waits for one."""

from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

from fairlead.events.commits import Advance, CommitId, Document, Manifest, identity
from fairlead.events.model import RunState, Token
from fairlead.runtime.pipeline.engines.engine import EngineState
from fairlead.runtime.pipeline.spi.connector import Pace, Pipeline, Tolerance
from fairlead.runtime.pipeline.spi.errors import BadInput, LostRange, RowsRefused, Unreadable
from fairlead.runtime.pipeline.spi.rows import ArrowTable, Rejects
from fairlead.runtime.pipeline.spi.source import Fetched, FetchingSource, Limit
from fairlead.runtime.pipeline.spi.transform import Transform
from fairlead.runtime.pipeline.tasks.contention import BatchSlots
from fairlead.runtime.pipeline.tasks.reports import Ending
from fairlead.runtime.pipeline.tasks.restarts import Halt
from fairlead.runtime.pipeline.tasks.task import Task, TaskHost
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    Hooks,
    LineSink,
    LocalEngine,
    Reports,
    numbers_launch,
    staged,
    written,
)

ALL = list(range(9))
TOKEN = Token(1, 0)
NUMBERS = {"numbers": "all"}
GONE = Unreadable((LostRange("a", {"file": "a"}, "it is torn"),))


class HeldNumbers(FetchingSource):
    """Three numbers a batch, as a table."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.is_held = True
        """Whether `table` returns them."""

    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched | None:
        del limit
        self._hooks.pass_by("plan")
        start = offsets.get(identity(NUMBERS))
        begin = int(start["next"] or 0) if start else 0
        if begin >= len(ALL):
            return None
        table: Any = pa.table({"n": ALL[begin : begin + 3]})
        return Fetched(table, (Advance(NUMBERS, start, {"next": begin + 3}),), backlog=True)

    def table(self, ranges: Any) -> ArrowTable | None:
        self._hooks.pass_by("table")
        return super().table(ranges) if self.is_held else None


class HeldSink(LineSink):
    """Writes tables without Spark."""

    takes_arrow = True

    def stage(self, rows: Any, commit_id: CommitId, input_bytes: int) -> Manifest:
        return super().stage(rows["n"].to_pylist(), commit_id, input_bytes)


class Held:
    """A task over an engine that is not there, with what a test reaches into."""

    def __init__(self, root: Path, hooks: Hooks, ledger: MemoryLedger, reports: Reports) -> None:
        self.engine = LocalEngine(EngineState.DOWN)
        self.source = HeldNumbers(hooks)
        self.transforms: tuple[Transform, ...] = ()
        self.tolerance = Tolerance()
        self.slots = BatchSlots(1)
        self.sink = HeldSink(root, hooks)
        self._ledger, self._reports = ledger, reports
        launch = numbers_launch(root, TOKEN)
        self.task = Task(
            launch, self._pipeline, TaskHost(self.engine, ledger, reports, slots=self.slots)
        )

    def _pipeline(self, _: object) -> Pipeline:
        pace = Pace(Limit(10, 1 << 20, 10), poll_interval_s=0.05, linger_s=0.0)
        return Pipeline(self.source, self.transforms, self.sink, pace, self.tolerance)

    def run(self, batches: int = 3) -> Ending:
        """Run the task until so many batches have come."""

        def drain() -> None:
            self._reports.wait_batches(batches)
            self.task.halt.drain()

        thread = Thread(target=drain)
        thread.start()
        ending = self.task.run()
        thread.join()
        return ending


@pytest.fixture
def held(root: Path, hooks: Hooks, ledger: MemoryLedger, reports: Reports) -> Held:
    return Held(root, hooks, ledger, reports)


def test_a_table_is_copied_while_there_is_no_engine_and_no_slot(
    held: Held, root: Path, reports: Reports
) -> None:
    taken = held.slots.acquire(1, Halt())
    assert held.run() is Ending.STOPPED
    taken.close()
    assert written(root) == ALL
    assert [(each.state, each.reason) for each in reports.statuses] == [(RunState.RUNNING, "")]
    assert [each.by_lane for each in reports.batches] == 3 * [{"arrow": (1, 3), "spark": (0, 0)}]


def test_an_engine_that_ends_meanwhile_is_not_noticed(
    held: Held, hooks: Hooks, root: Path, reports: Reports
) -> None:
    held.engine.open()
    hooks.at["stage"] = held.engine.lose
    held.run()
    assert written(root) == ALL
    assert [each.state for each in reports.statuses] == [RunState.RUNNING]


def test_a_batch_that_needs_spark_after_all_waits_for_the_engine_and_says_so(
    held: Held, root: Path, reports: Reports
) -> None:
    held.source.is_held = False
    held.engine.state = EngineState.WARMING

    def open_engine() -> None:
        reports.wait_status("waiting for the engine")
        held.engine.open()

    thread = Thread(target=open_engine)
    thread.start()
    held.run()
    thread.join()
    assert written(root) == ALL
    assert [(each.state, each.reason) for each in reports.statuses] == [
        (RunState.RUNNING, ""),
        (RunState.RESTARTING, "waiting for the engine: a driver of the tests"),
        (RunState.RUNNING, ""),
    ]


def test_a_transform_needs_the_engine(held: Held, reports: Reports) -> None:
    held.transforms = (MagicMock(spec=Transform),)
    thread = Thread(target=held.task.run)
    thread.start()
    reports.wait_status("waiting for the engine", state=RunState.UNASSIGNED)
    held.task.halt.drain()
    thread.join()


def test_a_source_with_a_read_of_its_own_is_read(held: Held, root: Path) -> None:
    class Doubling(HeldNumbers):
        def read(self, spark: Any, ranges: Any) -> Any:
            table: Any = super().read(spark, ranges)
            return pa.table({"n": [2 * each for each in table["n"].to_pylist()]})

    held.source = Doubling(Hooks())
    held.engine.open()
    held.run()
    assert written(root) == [2 * each for each in ALL]


@pytest.mark.parametrize("error", [RowsRefused("a value is too long"), GONE])
def test_rows_that_are_refused_are_looked_for_on_the_engine_if_that_is_tolerated(
    held: Held, hooks: Hooks, root: Path, error: Exception
) -> None:
    """The sink refuses once: then the batch is staged on the engine, under another number."""
    held.tolerance = Tolerance(most_searched=10)
    held.engine.open()

    def refuse() -> None:
        hooks.at.clear()
        raise error

    hooks.at["stage"] = refuse
    held.run()
    assert (written(root), staged(root)) == (ALL, [])


def test_rows_that_are_refused_fail_the_task_without_an_engine(
    held: Held, hooks: Hooks, root: Path, reports: Reports
) -> None:
    def refuse() -> None:
        hooks.at.clear()
        raise RowsRefused("a value is too long")

    hooks.at["stage"] = refuse
    held.run()
    failed = [
        each.reason.partition(";")[0] for each in reports.statuses if each.state is RunState.FAILED
    ]
    assert failed == ["a value is too long"]
    assert written(root) == ALL


def test_a_batch_with_bad_rows_is_staged_on_the_engine(held: Held, root: Path) -> None:
    class Rejecting(HeldNumbers):
        bad = 1

        def rejects(self) -> Any:
            return [Rejects(None, lambda: self.bad)]  # type: ignore[arg-type]

        def table(self, ranges: Any) -> Any:
            held.engine.open()
            return ranges[0]

        def read(self, spark: Any, ranges: Any) -> Any:
            del spark
            self.bad = 0  # a dead letter would ask Spark
            return ranges[0]

        holds_tables = True

    held.source = Rejecting(Hooks())
    held.run()
    assert (written(root), held.source.bad) == (ALL, 0)


def test_an_error_is_blamed_on_the_input(held: Held, hooks: Hooks, reports: Reports) -> None:
    def fail() -> None:
        hooks.at.clear()
        raise ValueError("17")

    held.source.blame = lambda error: BadInput(f"record {error}")  # type: ignore[method-assign]
    hooks.at["table"] = fail
    held.run()
    failed = [
        each.reason.partition(";")[0] for each in reports.statuses if each.state is RunState.FAILED
    ]
    assert failed == ["record 17"]


def test_a_cancelled_batch_leaves_nothing(held: Held, hooks: Hooks, root: Path) -> None:
    hooks.at["stage"] = held.task.cancel
    assert held.task.run() is Ending.CANCELLED
    assert (written(root), staged(root)) == ([], [])
