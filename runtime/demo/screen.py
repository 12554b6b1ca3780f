"""The demo's screen: a live bar and table in a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from .watch import Seen

PLAIN_SECONDS = 5.0
"""How often progress is told where there is no terminal to draw on."""
RATE_SECONDS = 3.0


class Screen:
    """What happens, line by line, above what is going on."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._began = time.monotonic()
        self._told_at = 0.0
        self._history: list[tuple[float, int]] = []
        self._progress = Progress(
            TextColumn("{task.completed:>7,.0f} of {task.total:,.0f} rows"),
            BarColumn(),
            TextColumn("{task.fields[rate]:>6,.0f} rows/s"),
            TimeElapsedColumn(),
            console=console,
        )
        self._total = total
        self._bar: TaskID = self._progress.add_task("rows", total=total, rate=0.0)
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        """Begin to draw, if there is a terminal."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing."""
        self._live.stop()

    def tell(self, what: str) -> None:
        """Print one line of what happens."""
        self._console.print(f"{time.monotonic() - self._began:5.1f} s  {what}", soft_wrap=True)

    def show(self, seen: Seen) -> None:
        """Show the pipeline as it is now."""
        rate = self._rate(seen.rows)
        if self._console.is_terminal:
            self._progress.update(self._bar, completed=seen.rows, rate=rate)
            self._live.update(Group(self._progress, _crew(seen)), refresh=True)
        elif time.monotonic() >= self._told_at + PLAIN_SECONDS:
            self._told_at = time.monotonic()
            crew = "; ".join(f"{name}: {' '.join(tasks)}" for name, tasks in seen.workers.items())
            self.tell(f"{seen.rows:,} of {self._total:,} rows, {rate:,.0f} rows/s; {crew}")

    def _rate(self, rows: int) -> float:
        now = time.monotonic()
        self._history.append((now, rows))
        while self._history[0][0] < now - RATE_SECONDS:
            del self._history[0]
        since, before = self._history[0]
        return (rows - before) / (now - since) if now > since else 0.0


def _crew(seen: Seen) -> Table:
    table = Table(title=f"group epoch {seen.epoch}, {seen.state}", title_justify="left")
    table.add_column("worker")
    table.add_column("tasks")
    for name, tasks in sorted(seen.workers.items()):
        table.add_row(name, " ".join(tasks))
    for resource, reason in seen.failed.items():
        table.add_row(f"[red]{resource}", f"[red]{reason.splitlines()[0]}")
    return table
