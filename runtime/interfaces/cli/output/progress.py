"""A bar on the terminal for what takes longer than two seconds.

It is drawn on standard error, if that is a terminal, and is gone when the work is done. Nothing is
imported for it before the two seconds are over.
"""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_SECONDS: Final = 2.0
Advance = Callable[[int], None]
"""Says how much is done by now."""


@contextmanager
def show_progress(label: str, total: int | None = None) -> Generator[Advance]:
    """Show that something is being done, and how much of it, if that is known.

    `total` is how much there is to do: files, connectors and so on; None: nobody knows.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    bar = _DelayedBar(label, total)
    timer = Timer(PATIENCE_SECONDS, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield bar.advance
    finally:
        timer.cancel()
        bar.stop()


class _DelayedBar:
    """A bar that is drawn once `start` is called, by another thread."""

    def __init__(self, label: str, total: int | None) -> None:
        self._label, self._total = label, total
        self._done = 0
        self._lock = Lock()
        self._is_over = False
        self._drawn: tuple[Progress, TaskID] | None = None

    def start(self) -> None:
        """Draw the bar, unless all is done."""
        from rich.console import Console  # noqa: PLC0415  # most verbs are done by now
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        counted = [MofNCompleteColumn()] if self._total is not None else []
        columns = (TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn())
        progress = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )
        with self._lock:
            if not self._is_over:
                task = progress.add_task(self._label, total=self._total, completed=self._done)
                progress.start()
                self._drawn = progress, task

    def advance(self, done: int) -> None:
        """Say how much is done."""
        with self._lock:
            self._done = done
            if self._drawn is not None:
                progress, task = self._drawn
                progress.update(task, completed=done)

    def stop(self) -> None:
        """Remove the bar."""
        with self._lock:
            self._is_over = True
            if self._drawn is not None:
                self._drawn[0].stop()
