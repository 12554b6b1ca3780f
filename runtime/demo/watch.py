"""Follows the group's two logs for the demo, and shows the progress.

In a terminal this is a live progress bar and table, otherwise plain lines.
"""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.console import Group as Lines
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from ...events.catalogue import entry_key
from ...events.commits import Committed, TaskProgress
from ...events.entries.codec import decode, fold
from ...events.group import Group
from ...events.log.reader import LogReader
from ...events.model import Resource, RunState
from ...events.placement import is_warm
from ...projections.explain.handovers import Handover
from ...projections.explain.reader import EpochReader
from .stage import CONNECTOR, GROUP

PLAIN_SECONDS = 5.0
"""How often progress is printed without a terminal."""
RATE_SECONDS = 3.0


@dataclass(slots=True)
class PipelineState:
    """The pipeline at one time; `runs` has the tasks of each worker by its short name."""

    rows: int = 0
    unpublished: int = 0
    epoch: int = 0
    state: str = ""
    workers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    warm: int = 0
    failed: dict[str, str] = field(default_factory=dict[str, str])


def short(url: str) -> str:
    """Return a worker's short name: the last part of its url."""
    return url.rsplit("/", 1)[-1]


class Watcher:
    """Follows the logs of the demo's group."""

    def __init__(self, folder: Path) -> None:
        self._control = LogReader.open(folder / "control", GROUP)
        self._offsets = LogReader.open(folder / "offsets", GROUP)
        self._group = Group(GROUP)
        self._reader = EpochReader(GROUP)
        self._told: set[tuple[Resource, int | None]] = set()
        """The moves that were returned already, each by its task and the time of its grant."""

    def look(self) -> tuple[PipelineState, list[Handover]]:
        """Return the current state, and the moves completed since the last call."""
        for entries in self._control.tail(self._group.end):
            fold(self._group, entries)
            for entry in entries:
                self._reader.apply(entry)
        return self._view(), [*self._completed()]

    def runs_tasks(self, worker: str) -> bool:
        """Return whether a worker runs any task: its Spark is warm by then."""
        return any(
            resource.is_task and status.state is RunState.RUNNING and short(status.worker) == worker
            for resource, status in self._group.statuses.items()
        )

    def resumed_since(self, moment_ms: int, tasks: Collection[str]) -> bool:
        """Return whether all these tasks have started since that time."""
        since = {
            str(resource)
            for resource, status in self._group.statuses.items()
            if status.state is RunState.RUNNING and status.time_ms > moment_ms
        }
        return since.issuperset(tasks)

    def held_by(self, worker: str) -> list[str]:
        """Return the tasks that a worker owns."""
        return self._view().workers.get(worker, [])

    def close(self) -> None:
        """Close the logs."""
        self._control.close()
        self._offsets.close()

    def _completed(self) -> Iterator[Handover]:
        """Yield the tasks that have started a batch on another worker, each once."""
        for each in self._reader.handovers():
            has_moved = each.previous_owner and each.new_owner and each.first_batch_ms
            key = each.resource, each.granted_ms
            if has_moved and each.resource.is_task and key not in self._told:
                self._told.add(key)
                yield each

    def _view(self) -> PipelineState:
        group = self._group
        view = PipelineState(epoch=group.group_epoch, state=group.state.value)
        for member in group.members.values():
            held = sorted(str(each) for each in member.current.assigned if each.is_task)
            view.workers[short(member.metadata.url)] = held
            view.warm += all(is_warm(each.metadata) for each in member.metadata.assignors)
        view.failed = {
            str(resource): status.reason
            for resource, status in group.statuses.items()
            if status.state is RunState.FAILED
        }
        for entry in self._offsets.scan(*entry_key(TaskProgress, (CONNECTOR,))):
            record = decode(entry)
            if isinstance(record, TaskProgress):
                view.rows += record.rows_out
        view.unpublished = len(self._offsets.scan(*entry_key(Committed, (CONNECTOR,))))
        return view


class Screen:
    """The output of the demo: events line by line, above the live progress."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._began = time.monotonic()
        self._told_at = 0.0
        """When progress was last printed as a plain line, on the monotonic clock."""
        self._history: list[tuple[float, int]] = []
        """The number of rows at times of the last seconds, by the monotonic clock."""
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
        """Start drawing, if there is a terminal."""
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
        """Print one event."""
        self._console.print(f"{time.monotonic() - self._began:5.1f} s  {what}", soft_wrap=True)

    def show(self, view: PipelineState) -> None:
        """Show the current state of the pipeline."""
        rate = self._rate(view.rows)
        if self._console.is_terminal:
            self._progress.update(self._bar, completed=view.rows, rate=rate)
            self._live.update(Lines(self._progress, _workers_table(view)), refresh=True)
        elif time.monotonic() >= self._told_at + PLAIN_SECONDS:
            self._told_at = time.monotonic()
            workers = "; ".join(
                f"{name}: {' '.join(tasks)}" for name, tasks in view.workers.items()
            )
            self.tell(f"{view.rows:,} of {self._total:,} rows, {rate:,.0f} rows/s; {workers}")

    def _rate(self, rows: int) -> float:
        now = time.monotonic()
        self._history.append((now, rows))
        while self._history[0][0] < now - RATE_SECONDS:
            del self._history[0]
        since, before = self._history[0]
        return (rows - before) / (now - since) if now > since else 0.0


def _workers_table(view: PipelineState) -> Table:
    table = Table(title=f"group epoch {view.epoch}, {view.state}", title_justify="left")
    table.add_column("worker")
    table.add_column("tasks")
    for name, tasks in sorted(view.workers.items()):
        table.add_row(name, " ".join(tasks))
    for resource, reason in view.failed.items():
        table.add_row(f"[red]{resource}", f"[red]{reason.splitlines()[0]}")
    return table
