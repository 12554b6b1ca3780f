"""The folds of a page: shapes of connectors, rates of the last seconds, rings of the last hour."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.members import ReportStatus, StatusUpdate
from fairlead.events.log.frame import Entry
from fairlead.events.log.reader import Slice
from fairlead.events.model import BATCHES_RUN, RunState, Token
from fairlead.events.records import TaskStatus
from fairlead.projections.page.rates import RowRates
from fairlead.projections.page.recent import RecentRecords
from fairlead.projections.page.rings import STEP_MS, STEPS, Rings
from fairlead.projections.page.shapes import ConnectorShape, shape_of
from fairlead.projections.page.streaks import STEADY_MS, Streaks
from fairlead.projections.views import connector_names
from fairlead_tests.decider import JOIN, Decider, resource
from fairlead_tests.golden.fixtures import generations, read_lines


@dataclass
class GrowingLog:
    """A log of which only the first entries are there yet."""

    entries: list[Entry]
    end: int = 0
    log_id: str = "connect"

    def low(self) -> int:
        return 0

    def load(self) -> Slice:
        return Slice([], self.end)

    def tail(self, start: int) -> Iterator[list[Entry]]:
        if start < self.end:
            yield self.entries[start : self.end]


LIVES = sorted(generations()[-1].glob("*.control"))


@pytest.mark.parametrize("life", LIVES, ids=[each.stem for each in LIVES])
def test_a_connector_of_another_shape_is_among_those_that_records_were_about(life: Path) -> None:
    log = GrowingLog(list(read_lines(life)))
    recent = RecentRecords(log, 0)
    recent.take_changed()
    shapes: dict[str, ConnectorShape] = {}
    for end in range(1, len(log.entries) + 1):
        log.end = end
        recent.read()
        changed, group = recent.take_changed(), recent.group
        before, shapes = shapes, {each: shape_of(group, each) for each in connector_names(group)}
        missed = {name for name, each in shapes.items() if before.get(name) != each}
        assert changed is None or missed <= changed, log.entries[end - 1]
    assert recent.next == len(log.entries)


def test_a_shape_is_that_of_the_worst_task_and_a_lost_worker_makes_tasks_wait() -> None:
    decider = Decider(GroupSettings(max_delay_ms=60_000))
    decider.configure("A A-0 A-1")
    decider.join("W1", replace(JOIN, url="here/w1"))
    decider.settle()
    moves = shape_of(decider.group, "A")
    assert (moves.cells, moves.shape) == ("mm", "wait")
    reports = {"A": "", "A-0": "note: a file took longer", "A-1": "no files yet"}
    for name, reason in reports.items():
        update = StatusUpdate(resource(name), Token(1, 1), RunState.RUNNING, 7_000, reason)
        decider.command(ReportStatus("connect", "W1", (update,)))
    waits = shape_of(decider.group, "A")
    assert (waits.cells, waits.shape, waits.reason, waits.troubles) == (
        "kw",
        "wait",
        "no files yet",
        {"RUNNING with a remark": 1},
    )
    assert shape_of(decider.group, "A", "waiting for space").cells == "kw"
    decider.command(ExpireSession("W1"))
    assert shape_of(decider.group, "A").cells in {"ww", "uu"}


def test_a_rate_is_of_the_last_seconds_and_falls_to_nothing() -> None:
    rates = RowRates()
    for second, rows in enumerate((0, 100, 200, 200)):
        rates.add("a", rows, 1000 * second)
    assert [rates.rate("a", 1000 * each) for each in (3, 5, 11, 13)] == [66.7, 40.0, 10.0, 0.0]
    assert [*rates.moving()] == []
    rates.add("a", 5, 20_000)  # it was deleted and created again
    assert rates.rate("a", 21_000) == 0.0


def test_a_ring_keeps_the_last_hour_and_knows_nothing_of_steps_that_it_missed() -> None:
    rings = Rings(2, 1_000)
    rings.record({"a": (1.5, None)}, 1_000)
    rings.record({"a": (2.5, 7)}, 1_000 + 3 * STEP_MS)
    assert rings.times(9) == [1_000 + each * STEP_MS for each in range(4)]
    assert rings.read("a", 9) == [[1.5, None, None, 2.5], [None, None, None, 7.0]]
    assert rings.read("a", 1) == [[2.5], [7.0]]
    for step in range(4, 2 * STEPS):
        rings.record({"b": (step, None)}, 1_000 + step * STEP_MS)
    assert rings.read("b", STEPS)[0] == [float(each) for each in range(STEPS, 2 * STEPS)]
    assert rings.read("a", 2) == [[None, None], [None, None]]


def status(state: RunState, reason: str = "") -> TaskStatus:
    return TaskStatus(resource("A-0"), state, "here/w1", Token(1, 1), 0, reason)


def test_a_trouble_lasts_since_its_first_failure_and_restarts_do_not_end_it() -> None:
    streaks, task = Streaks([status(RunState.RUNNING)]), resource("A-0")
    began: list[int | None] = []
    for now_ms, told in (
        (1_000, status(RunState.RUNNING, BATCHES_RUN)),
        (2_000, status(RunState.FAILED, "input: no number; restarts in 1 s (1 of 5)")),
        (3_000, status(RunState.RESTARTING)),
        (4_000, status(RunState.RUNNING)),
        (4_000 + STEADY_MS - 1, status(RunState.FAILED, "input: no number")),
        (5_000 + STEADY_MS, status(RunState.RUNNING, "note: a file took longer")),
        (5_000 + 2 * STEADY_MS, status(RunState.FAILED)),
    ):
        streaks.note_status(told, now_ms)
        began.append(streaks.began_ms(task))
    assert began == [None, 2_000, 2_000, None, 2_000, None, 5_000 + 2 * STEADY_MS]
    streaks.drop(task)
    assert streaks.began_ms(task) is None
