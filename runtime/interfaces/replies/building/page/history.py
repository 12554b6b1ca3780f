"""Records the last hour of connectors, workers and the whole group, for pictures of it.

What a row of the page shows is by the minute, and encoded once a minute. Who looks at one connector
gets all steps of it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final

from msgspec.json import encode

from ......projections.page.recent import ConnectorMark
from ......projections.page.rings import STEP_MS, STEPS, Rings, Values
from ...live.state import (
    ConnectorHistory,
    FigureHistory,
    HistoryMark,
    PageFigures,
    PageWorker,
    RowHistory,
    WorkerUsageHistory,
)
from .facts import ConnectorProgress
from .rows import PageRow

STEPS_PER_MINUTE: Final = 4
MINUTES: Final = 60
NO_HISTORY: Final = encode(RowHistory([]))
_GROUP: Final = ""
MS: Final = 1000


class _Minutes:
    """The last hour of a connector by the minute."""

    def __init__(self) -> None:
        self.rates: deque[float | None] = deque(maxlen=MINUTES)
        """The mean of the rows a second, the latest minute last; None: not known."""
        self.encoded = NO_HISTORY
        """They as `RowHistory` in JSON."""

    def add(self, rates: Values) -> None:
        """Add a minute: the mean of its rates."""
        known = [each for each in rates if each is not None]
        self.rates.append(round(sum(known) / len(known), 1) if known else None)
        self.encoded = encode(RowHistory([*self.rates]))


class PageHistory:
    """The last hour, as far as this process has recorded it; for any thread."""

    def __init__(self, began_ms: int) -> None:
        self._lock = Lock()
        """Guards the rings, which requests read while a step is recorded."""
        self._begin(began_ms)

    def _begin(self, began_ms: int) -> None:
        """Begin, or begin anew: steps have no place before the beginning."""
        self.began_ms = began_ms
        self._connectors = Rings(6, began_ms)
        """Rows and bytes a second, records and bytes left, ms behind, ms since the last commit."""
        self._workers = Rings(3, began_ms)
        """CPU of one core, memory in bytes, and ms since the last heartbeat."""
        self._group = Rings(2, began_ms)
        """Rows read a second, and ms behind."""
        self._minutes: dict[str, _Minutes] = {}
        self._before: dict[str, ConnectorProgress] = {}
        """The progress of each connector at the last step."""
        self._recorded_ms = began_ms
        """When the last step was recorded."""

    def is_due(self, now_ms: int) -> bool:
        """Return whether a step has begun of which nothing is recorded."""
        is_new = (now_ms - self.began_ms) // STEP_MS > self._group.step
        return is_new or self._is_set_back(now_ms)

    def _is_set_back(self, now_ms: int) -> bool:
        """Return whether the clock was set back by more than a step."""
        return now_ms < self._recorded_ms - STEP_MS

    def record(
        self,
        rows: Mapping[str, PageRow],
        progress: Mapping[str, ConnectorProgress],
        workers: Sequence[PageWorker],
        figures: PageFigures,
        now_ms: int,
    ) -> None:
        """Record a step; of a connector, as the rates since the step before.

        If the clock was set back, the hour begins anew.
        """
        if self._is_set_back(now_ms):
            with self._lock:
                self._begin(now_ms)
        seconds = max(now_ms - self._recorded_ms, 1) / MS
        values = {
            name: self._values(name, rows[name], progress.get(name), seconds, now_ms)
            for name in rows
        }
        used = {each.name: (each.cpu, each.memory_bytes, each.heartbeat_age_ms) for each in workers}
        rates = [each[0] for each in values.values() if each[0] is not None]
        total = round(sum(rates), 1) if rates else None
        with self._lock:
            minutes = _minutes_by(self._group.step)
            self._connectors.record(values, now_ms)
            self._workers.record(used, now_ms)
            self._group.record({_GROUP: (total, figures.behind_ms)}, now_ms)
            if ended := _minutes_by(self._group.step) - minutes:
                self._end_minutes(rows, ended)
        self._before, self._recorded_ms = dict(progress), now_ms

    def _values(
        self,
        name: str,
        row: PageRow,
        progress: ConnectorProgress | None,
        seconds: float,
        now_ms: int,
    ) -> Values:
        before = self._before.get(name)
        rows = read = None
        if progress is not None and before is not None:
            rows = max(0, progress.total.rows_in - before.total.rows_in) / seconds
            read = max(0, progress.total.cost.bytes_in - before.total.cost.bytes_in) / seconds
        lag, last_ms = row.row.lag, row.row.last_commit_ms
        age_ms = None if last_ms is None else max(0, now_ms - last_ms)
        left = (lag.records, lag.bytes) if lag else (None, None)
        return (rows, read, *left, row.row.behind_ms, age_ms)

    def _end_minutes(self, names: Mapping[str, PageRow], count: int) -> None:
        """End the minutes up to the last step; before the last one no step was recorded."""
        self._minutes = {name: self._minutes.get(name) or _Minutes() for name in names}
        for name, each in self._minutes.items():
            for _ in range(min(count - 1, MINUTES)):
                each.add(())
            rates, *_ = self._connectors.read(name, STEPS_PER_MINUTE)
            each.add(rates)

    def of_row(self, name: str) -> bytes:
        """Return the encoded `RowHistory` of a connector."""
        minutes = self._minutes.get(name)
        return NO_HISTORY if minutes is None else minutes.encoded

    def of_figures(self) -> FigureHistory:
        """Return the last hour of the whole group."""
        with self._lock:
            return FigureHistory(*self._group.read(_GROUP, STEPS))

    def of_worker(self, name: str) -> WorkerUsageHistory:
        """Return the last hour of a worker."""
        with self._lock:
            return WorkerUsageHistory(*self._workers.read(name, STEPS))

    def of_connector(
        self, name: str, minutes: int, marks: Sequence[ConnectorMark]
    ) -> ConnectorHistory:
        """Return all steps of a connector in the last minutes, with what happened to it then."""
        steps = minutes * STEPS_PER_MINUTE
        with self._lock:
            times, figures = self._connectors.times(steps), self._connectors.read(name, steps)
        since_ms = times[0] if times else self.began_ms
        shown = [HistoryMark(*each) for each in marks if each.time_ms >= since_ms]
        rows, read, records, left, behind, age = figures
        hour = (rows, read, records, left, behind, age)
        return ConnectorHistory(self.began_ms, STEP_MS, times, *hour, shown)


def _minutes_by(step: int) -> int:
    """Return how many minutes are over at the end of a step."""
    return (step + 1) // STEPS_PER_MINUTE
