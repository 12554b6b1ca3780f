"""The demo of flights: a few workers run a pipeline on Spark, through a join and a kill -9.

At the end the output is checked. The exit code depends on the data only: 0 if every row is there
exactly once, 1 if not.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ...projections.explain.handovers import Handover
from .flights import ROWS, FlightsError, ensure_flights
from .stage import (
    FEED_SECONDS,
    GROUP,
    JOIN_AFTER_SECONDS,
    KILL_AFTER_SECONDS,
    LONGEST_SECONDS,
    VICTIM,
    DemoFailedError,
    Stage,
    staged,
)
from .verdict import ExpectedRows, Verdict, expect_flights, judge
from .watch import Screen, Seen, Watcher, short

OK, FAILED, INTERRUPTED = 0, 1, 130
LOOK_SECONDS = 0.2


def demo(seconds: float = FEED_SECONDS, workers: int = 2, keep: Path | None = None) -> int:
    """Run the demo, feeding for so many seconds; its files are kept in `keep` if given.

    Returns the exit code: 0 or 1 by the data, 130 after Ctrl-C.
    """
    console = Console(highlight=False)
    folder = keep.absolute() if keep else Path(tempfile.mkdtemp(prefix="fairlead-demo-"))
    try:
        if keep and folder.exists() and any(folder.iterdir()):
            console.print(f"{folder} is not empty: name another folder to keep the demo's files in")
            return FAILED
        ensure_flights()
        with staged(folder) as stage:
            show = Show(stage, Screen(console, ROWS), seconds, workers)
            expected = show.run()
        return _tell(console, expected, stage, show)
    except (DemoFailedError, FlightsError) as error:
        console.print(f"the demo could not be shown: {error}")
        return FAILED
    except KeyboardInterrupt:
        console.print("\nstopped: nothing of the demo runs any more")
        return INTERRUPTED
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


class Show:
    """One run of the demo, with its moves and the time of the kill."""

    def __init__(self, stage: Stage, screen: Screen, seconds: float, workers: int) -> None:
        self._stage = stage
        self._screen = screen
        self._seconds = seconds
        self._workers = workers
        self._began = time.monotonic()
        self.moves: list[Handover] = []
        """The completed moves of tasks, in order."""
        self.lost: list[str] = []
        """The tasks of the killed worker."""
        self.killed_ms = 0
        """The time of the kill, wall clock; 0 before it."""

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
                self._kill(watcher)
            self._rest()

    def _kill(self, watcher: Watcher) -> None:
        self.lost = watcher.held_by(VICTIM)
        pid = self._stage.kill(VICTIM)
        self.killed_ms = time.time_ns() // 1_000_000
        what = ", ".join(self.lost) or "no task"
        self._screen.tell(f"kill -9 {pid}: {VICTIM} is gone, and with it {what}")

    def _is_done(self, watcher: Watcher) -> bool:
        seen = self._look(watcher)
        is_published = seen.rows >= ROWS and not seen.unpublished
        return is_published and self._has_recovered(watcher)

    def _has_recovered(self, watcher: Watcher) -> bool:
        """Return whether the tasks of the killed worker run again."""
        return bool(self.killed_ms) and watcher.resumed_since(self.killed_ms, self.lost)

    def _look(self, watcher: Watcher) -> Seen:
        if time.monotonic() - self._began > LONGEST_SECONDS:
            raise DemoFailedError(f"it was not done in {LONGEST_SECONDS:.0f} s")
        self._stage.check()
        seen, completed = watcher.look()
        for move in completed:
            self.moves.append(move)
            self._screen.tell(story_of(move))
        self._screen.show(seen)
        return seen

    def _rest(self) -> None:
        time.sleep(LOOK_SECONDS)


def story_of(move: Handover) -> str:
    """Return a move in one line."""
    down_ms = _live_ms(move)
    gap = "its worker died with it" if down_ms is None else f"down {down_ms} ms"
    return f"{move.resource} moved {_way(move)} ({_why(move)}), {gap}"


def _way(move: Handover) -> str:
    workers = (
        short(each.worker) for each in (move.previous_owner, move.new_owner) if each is not None
    )
    return " -> ".join(workers)


def _why(move: Handover) -> str:
    return " ".join(filter(None, (move.reason.kind.value, move.reason.detail)))


def _live_ms(move: Handover) -> int | None:
    """Return the downtime of a move whose former worker was alive."""
    return move.downtime_ms if move.is_live else None


def _tell(console: Console, expected: ExpectedRows, stage: Stage, show: Show) -> int:
    """Print the verdict and the moves; return the exit code."""
    verdict = judge(expected, stage.sink)
    console.print(verdict_table(verdict))
    console.print(moves_table(show.moves, show.killed_ms))
    planned = [ms for move in show.moves if (ms := _live_ms(move)) is not None]
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


def verdict_table(verdict: Verdict) -> Table:
    """Return all checks of a verdict."""
    rows = [
        (check.name, str(check.expected), str(check.found), "ok" if check.ok else "WRONG")
        for check in verdict.checks
    ]
    return _table("verdict, from the output itself", ("check", "expected", "found", ""), rows)


def moves_table(moves: Sequence[Handover], killed_ms: int) -> Table:
    """Return the table of moves; those of a killed worker have the time since the kill."""
    rows = [
        (
            str(move.resource),
            _way(move),
            _why(move),
            f"{_live_ms(move)} ms" if _live_ms(move) is not None else _since_kill(move, killed_ms),
        )
        for move in moves
    ]
    return _table("moves", ("task", "from -> to", "reason", "downtime"), rows)


def _since_kill(move: Handover, killed_ms: int) -> str:
    return f"{((move.up_ms or 0) - killed_ms) / 1000:.1f} s after the kill"


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    return table
