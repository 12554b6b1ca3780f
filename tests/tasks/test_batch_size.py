"""A batch is as large as its time and its rate allow, and begins when nothing is owed any more."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from fairlead.events.commits import Document
from fairlead.events.model import Token
from fairlead.runtime.pipeline.spi.connector import Pace, Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.errors import ContractBroken
from fairlead.runtime.pipeline.spi.source import Fetched, FetchingSource, Limit
from fairlead.runtime.pipeline.tasks import batch_size
from fairlead.runtime.pipeline.tasks.batch_size import BatchSize, RateLimit, plan_within
from fairlead.runtime.pipeline.tasks.reports import Ending
from fairlead.runtime.pipeline.tasks.task import Task, TaskHost
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
    LocalEngine,
    Numbers,
    Reports,
    numbers_launch,
    written,
)

MB = 1 << 20

CEILING = Limit(1_000_000, 64 * MB, 4096)


def test_a_batch_is_as_large_as_the_last_ones_say_can_be_done_in_time() -> None:
    size = BatchSize(Pace(CEILING, target_s=1.0))
    assert size.limit == Limit(250_000, 16 * MB, 512)
    size.learn(2.0, Limit(80_000, 16 * MB, 400), backlog=True)
    assert size.limit == Limit(40_000, 8 * MB, 200)
    size.learn(1.5, Limit(40_000, 8 * MB, 200), backlog=True)
    assert size.limit == Limit(34_285, 24 * MB * 2 // 7, 171), "of the last two"
    size.learn(0.5, Limit(40_000, 8 * MB, 200), backlog=True)
    assert size.limit == Limit(80_000, 16 * MB, 400), "of the last, as it was faster"
    size.learn(0.1, Limit(40_000, 8 * MB, 240), backlog=True)
    size.learn(0.1, Limit(40_000, 8 * MB, 240), backlog=True)
    assert size.limit == Limit(400_000, 64 * MB, 2400), "never above the ceiling"


def test_a_batch_is_at_most_four_times_as_large_as_the_one_before() -> None:
    size = BatchSize(Pace(Limit(10_000_000, 1 << 40, 4096), target_s=1.0))
    size.learn(0.01, Limit(250_000, 16 * MB, 512), backlog=True)
    assert size.limit == Limit(1_000_000, 64 * MB, 2048)


def test_a_quick_batch_that_held_all_there_was_says_nothing() -> None:
    size = BatchSize(Pace(CEILING, target_s=1.0))
    size.learn(0.1, Limit(10, 1_000, 1), backlog=False)
    assert size.limit == Limit(250_000, 16 * MB, 512)
    size.learn(8.0, Limit(80_000, 16 * MB, 512), backlog=False)
    assert size.limit == Limit(10_000, 2 * MB, 64), "a slow one does"


def test_a_slow_batch_shrinks_none_below_what_a_batch_costs_anyway() -> None:
    size = BatchSize(Pace(CEILING, target_s=1.0))
    size.learn(60, Limit(100, 1_000, 100), backlog=True)
    assert size.limit == Limit(1_000, 1 * MB, 64)


def test_a_batch_keeps_to_its_ceiling_and_never_shrinks_to_nothing() -> None:
    size = BatchSize(Pace(Limit(1, 1, 1)))
    size.learn(60, Limit(1, 1, 1), backlog=True)
    assert size.limit == Limit(1, 1, 1)


def test_a_batch_holds_no_more_than_one_second_of_its_rate() -> None:
    size = BatchSize(Pace(CEILING, rows_per_s=500, bytes_per_s=0.5))
    assert size.limit == Limit(500, 1, 512)
    size.learn(0.01, Limit(500, 1, 1), backlog=True)
    assert size.limit == Limit(500, 1, 100), "however fast it went"


def test_a_batch_of_many_small_files_is_sized_by_the_time_that_they_take() -> None:
    size = BatchSize(Pace(CEILING, target_s=1.0))
    size.learn(4.0, Limit(512, 8_000, 512), backlog=True)
    assert size.limit == Limit(1_000, 1 * MB, 128)
    size.learn(0.2, Limit(128, 2_000, 128), backlog=True)
    assert size.limit.ranges == 512, "four times as many as before"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the monotonic clock shows, to be set."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_a_task_waits_until_its_rate_has_caught_up_with_what_it_took(now: list[float]) -> None:
    rate = RateLimit(rows_per_s=100)
    assert rate.pause_s == 0, "the first batch begins at once"
    rate.consume(0.0, 250, 64 * MB, backlog=True)
    assert rate.pause_s == 2.5
    now[0] += 2.5
    assert rate.pause_s == 0


def test_the_time_that_a_batch_took_counts_for_its_rate(now: list[float]) -> None:
    rate = RateLimit(rows_per_s=100)
    now[0] += 5.0
    rate.consume(5.0, 1_000, 0, backlog=True)
    assert rate.pause_s == 5.0


def test_a_rate_adds_up_for_one_second_of_idleness_and_no_longer(now: list[float]) -> None:
    rate = RateLimit(bytes_per_s=1_000)
    now[0] += 60.0
    rate.consume(0.0, 1, 3_000, backlog=True)
    assert rate.pause_s == 2.0


@pytest.mark.usefixtures("now")
def test_of_rows_and_bytes_the_scarcer_is_waited_for() -> None:
    rate = RateLimit(rows_per_s=100, bytes_per_s=1_000)
    rate.consume(0.0, 200, 5_000, backlog=True)
    assert rate.pause_s == 5.0


def test_without_a_rate_nothing_is_waited_for(now: list[float]) -> None:
    rate = RateLimit()
    now[0] += 0.1
    rate.consume(0.1, 1 << 40, 1 << 50, backlog=True)
    assert rate.pause_s < 0


def test_a_rate_that_goes_on_keeping_batches_back_is_told_until_there_is_nothing_to_read(
    now: list[float],
) -> None:
    rate = RateLimit(rows_per_s=100, bytes_per_s=1_000)
    told = list[str]()
    for _ in range(7):
        rate.consume(0.0, 100, 10, backlog=True)
        told.append(rate.remark)
        now[0] += rate.pause_s
    remark = "its batches wait for its rate limit: 100 rows and 1000 bytes per second"
    assert told == [*[""] * 5, remark, remark]
    rate.note_idle()
    assert rate.remark == ""
    now[0] += 60.0
    rate.consume(0.0, 1, 10, backlog=True)
    assert rate.remark == "", "what is taken does not use it up"


def test_a_batch_is_let_fill_for_as_long_as_its_sink_asks_unless_it_is_full_already(
    now: list[float],
) -> None:
    rate = RateLimit(rotate_s=60.0)
    assert rate.pause_s == 0, "the first batch begins at once"
    rate.consume(2.0, 10, 1_000, backlog=False)
    assert (rate.pause_s, rate.remark) == (58.0, "")
    now[0] += 58.0
    assert rate.pause_s == 0
    rate.consume(1.0, 1 << 20, 64 * MB, backlog=True)
    assert rate.pause_s <= 0


def test_a_task_that_waits_for_its_rate_reads_nothing_and_ends_at_once_when_drained(
    root: Path,
    engine: LocalEngine,
    ledger: MemoryLedger,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = numbers_launch(root, Token(1, 0))

    def limited(context: Context) -> Pipeline:
        made = Numbers().pipeline(context, launch.config)
        return replace(made, pace=replace(made.pace, rows_per_s=0.001))

    task = Task(launch, limited, TaskHost(engine, ledger, reports))
    monkeypatch.setattr(batch_size, "_REMARK_AFTER_S", 0.0)
    waits = threading.Event()
    wait = task.halt.wait

    def watched(seconds: float) -> None:
        if written(root) and seconds > 0.5:
            waits.set()
        wait(seconds)

    task.halt.wait = watched  # type: ignore[method-assign]

    def drain() -> None:
        waits.wait(PATIENCE_S)
        task.halt.drain()

    thread = threading.Thread(target=drain)
    thread.start()
    assert task.run() is Ending.STOPPED
    thread.join()
    assert (waits.is_set(), written(root)) == (True, [0, 1, 2])
    remark = "its batches wait for its rate limit: 0.001 rows per second"
    assert remark in {each.reason for each in reports.statuses}


class Rows(FetchingSource):
    """A source that keeps to the rows of its limit alone; each takes eight bytes."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched:
        del offsets
        self.asked.append(limit.rows)
        table: Any = cast("Any", pa).table({"n": range(limit.rows)})
        return Fetched(table, ())


def test_a_source_that_knows_rows_alone_is_asked_for_fewer_until_they_fit_into_memory() -> None:
    source, size = Rows(), BatchSize(Pace(CEILING))
    plan = plan_within(source, {}, size, 100_000)
    first, second = source.asked
    assert first == 250_000
    assert (plan.rows, size.limit.rows) == (second, second)
    assert plan.bytes == 8 * second == 50_000
    size.learn(0.01, Limit(second, plan.bytes, 1), backlog=True)
    assert plan_within(source, {}, size, 100_000).rows == second, "it is not asked in vain again"


def test_a_plan_that_does_not_fit_however_few_rows_are_asked_for_is_refused() -> None:
    source = Rows()
    with pytest.raises(ContractBroken, match="holds 8 bytes of rows: a task may hold 7 "):
        plan_within(source, {}, BatchSize(Pace(CEILING)), 7)
    assert source.asked[1:] == [1, 1]
