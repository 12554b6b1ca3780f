"""The demo of flights: a few workers run a pipeline on Spark, through a join and a kill -9.

At the end the output is checked. The exit code depends on the data only: 0 if every row is there
exactly once, 1 if not.
"""

import statistics
import time
from pathlib import Path

from rich.console import Console

from .demo_run import (
    FAILED,
    LOOK_SECONDS,
    OK,
    DemoRun,
    live_ms,
    moves_table,
    run_in_folder,
    verdict_table,
)
from .flights import ROWS, FlightsError, ensure_flights
from .stage import (
    FEED_SECONDS,
    GROUP,
    JOIN_AFTER_SECONDS,
    KILL_AFTER_SECONDS,
    LONGEST_SECONDS,
    DemoFailedError,
    Stage,
)
from .verdict import ExpectedRows, expect_flights, judge
from .watch import PipelineState, Screen, Watcher


def demo(seconds: float = FEED_SECONDS, workers: int = 2, keep: Path | None = None) -> int:
    """Run the demo, feeding for so many seconds; its files are kept in `keep` if given.

    Returns the exit code: 0 or 1 by the data, 130 after Ctrl-C.
    """
    console = Console(highlight=False)

    def run(stage: Stage) -> int:
        try:
            ensure_flights()
        except FlightsError as error:
            raise DemoFailedError(str(error)) from None
        show = Show(stage, Screen(console, ROWS), seconds, workers)
        expected = show.run()
        return _tell(console, expected, stage, show)

    return run_in_folder(console, keep, run)


class Show(DemoRun):
    """One run of the demo, on a screen."""

    def __init__(self, stage: Stage, screen: Screen, seconds: float, workers: int) -> None:
        super().__init__(stage, screen.tell, LONGEST_SECONDS)
        self._screen = screen
        self._seconds = seconds
        self._workers = workers

    def run(self) -> ExpectedRows:
        """Run the whole demo, until every row is published or the time is over."""
        screen, stage = self._screen, self._stage
        screen.tell(f"starting a node with {self._workers} workers that share a Spark")
        node = stage.start_node(self._workers)
        screen.tell(f"the node is up: REST on {node.rest}")
        expected = expect_flights()
        watcher = Watcher(stage.data_dir / "groups" / GROUP)
        try:
            with screen:
                self._warm_up(watcher)
                self._play(watcher)
        finally:
            watcher.close()
        screen.tell("every row is published: stopping the node")
        return expected

    def _warm_up(self, watcher: Watcher) -> None:
        while self._look(watcher).warm < self._workers:
            self._rest()
        self._screen.tell("all are warm: creating the connector, feeding 365 days of flights")
        self._stage.create_connector()
        self._stage.start_feeder(self._seconds)

    def _play(self, watcher: Watcher) -> None:
        join_at = time.monotonic() + JOIN_AFTER_SECONDS
        kill_at: float | None = None
        newcomer = f"w{self._workers + 1}"
        has_joined = False
        while not self._is_done(watcher):
            now = time.monotonic()
            if not has_joined and now >= join_at:
                has_joined = True
                self._stage.start_worker()
                self._screen.tell(f"{newcomer} is started: `fairlead worker`")
            if has_joined and kill_at is None and watcher.runs_tasks(newcomer):
                kill_at = now + KILL_AFTER_SECONDS
            if kill_at is not None and not self.killed_ms and now >= kill_at:
                self.kill(watcher)
            self._rest()

    def _is_done(self, watcher: Watcher) -> bool:
        view = self._look(watcher)
        is_published = view.rows >= ROWS and not view.unpublished
        return is_published and self.has_recovered(watcher)

    def _look(self, watcher: Watcher) -> PipelineState:
        view = self.look(watcher)
        self._screen.show(view)
        return view

    def _rest(self) -> None:
        time.sleep(LOOK_SECONDS)


def _tell(console: Console, expected: ExpectedRows, stage: Stage, show: Show) -> int:
    """Print the verdict and the moves; return the exit code."""
    verdict = judge(expected, stage.sink)
    console.print(verdict_table(verdict))
    console.print(moves_table(show.moves, show.killed_ms))
    planned = [ms for move in show.moves if (ms := live_ms(move)) is not None]
    if planned:
        console.print(f"planned moves: down {statistics.median(planned):.0f} ms at the median")
    if recovered := _recovery_ms(show):
        console.print(f"after kill -9: every lost task ran again within {recovered / 1000:.1f} s")
    console.print("PASSED" if verdict.passed else "FAILED")
    return OK if verdict.passed else FAILED


def _recovery_ms(show: Show) -> int:
    back: dict[str, int] = {}
    for move in show.moves:
        up_ms = move.up_ms or 0
        if str(move.resource) in show.lost and up_ms > show.killed_ms:
            back.setdefault(str(move.resource), up_ms - show.killed_ms)
    return max(back.values(), default=0)
