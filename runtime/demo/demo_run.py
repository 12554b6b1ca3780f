"""The parts of a run that both demos share: its folder, its moves, the kill -9, and its tables.

A demo exits with 0 or 1, which depends on the data alone, or with 130 after Ctrl-C.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ...projections.explain.handovers import Handover
from .stage import VICTIM, DemoFailedError, Stage, staged
from .verdict import Verdict
from .watch import PipelineState, Watcher, short

OK, FAILED, INTERRUPTED = 0, 1, 130
LOOK_SECONDS = 0.2


def run_in_folder(console: Console, keep: Path | None, run: Callable[[Stage], int]) -> int:
    """Run a demo in `keep`, or in a folder that is removed afterwards; return the exit code."""
    if keep and keep.exists() and any(keep.iterdir()):
        console.print(f"{keep} is not empty: name another folder to keep the demo's files in")
        return FAILED
    folder = keep.absolute() if keep else Path(tempfile.mkdtemp(prefix="fairlead-demo-"))
    try:
        with staged(folder) as stage:
            return run(stage)
    except DemoFailedError as error:
        console.print(f"the demo could not be shown: {error}", markup=False)
        return FAILED
    except KeyboardInterrupt:
        console.print("\nstopped: nothing of the demo runs any more")
        return INTERRUPTED
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


class DemoRun:
    """One run of a demo: prints the moves of tasks, and kills a worker."""

    def __init__(self, stage: Stage, tell: Callable[[str], None], longest_seconds: float) -> None:
        self._stage = stage
        self._tell = tell
        self._longest_seconds = longest_seconds
        self._began = time.monotonic()
        self.moves: list[Handover] = []
        """The completed moves of tasks, in order."""
        self.lost: list[str] = []
        """The tasks of the killed worker."""
        self.killed_ms = 0
        """The time of the kill, wall clock; 0 before it."""

    def look(self, watcher: Watcher) -> PipelineState:
        """Print new moves, and return the state of the pipeline; raises `DemoFailedError`."""
        if time.monotonic() - self._began > self._longest_seconds:
            raise DemoFailedError(f"it was not done in {self._longest_seconds:.0f} s")
        self._stage.check()
        view, completed = watcher.look()
        for move in completed:
            self.moves.append(move)
            self._tell(story_of(move))
        return view

    def kill(self, watcher: Watcher) -> None:
        """Kill the process of a worker with -9."""
        self.lost = watcher.held_by(VICTIM)
        pid = self._stage.kill(VICTIM)
        self.killed_ms = time.time_ns() // 1_000_000
        tasks = ", ".join(self.lost) or "no task"
        self._tell(f"kill -9 {pid}: {VICTIM} is gone, and with it {tasks}")

    def has_recovered(self, watcher: Watcher) -> bool:
        """Return whether the tasks of the killed worker run again."""
        return bool(self.killed_ms) and watcher.resumed_since(self.killed_ms, self.lost)


def story_of(move: Handover) -> str:
    """Return a move in one line."""
    down_ms = live_ms(move)
    gap = "its worker died with it" if down_ms is None else f"down {down_ms} ms"
    return f"{move.resource} moved {_way(move)} ({_why(move)}), {gap}"


def _way(move: Handover) -> str:
    workers = (
        short(each.worker) for each in (move.previous_owner, move.new_owner) if each is not None
    )
    return " -> ".join(workers)


def _why(move: Handover) -> str:
    return " ".join(filter(None, (move.reason.kind.value, move.reason.detail)))


def live_ms(move: Handover) -> int | None:
    """Return the downtime of a move whose former worker was alive."""
    return move.downtime_ms if move.is_live else None


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
            f"{live_ms(move)} ms" if live_ms(move) is not None else _since_kill(move, killed_ms),
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
