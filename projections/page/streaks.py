"""Since when connectors and tasks have been in trouble, folded from their statuses and grants."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...events.model import BATCHES_RUN, Resource
from ...events.records import TaskStatus
from .troubles import trouble_of

STEADY_MS: Final = 60_000
"""For how long something has to be fine until its streak of troubles is over: restarts end none."""


class Streak(NamedTuple):
    """Troubles that follow each other."""

    began_ms: int
    fine_ms: int | None = None
    """When the last one of them was over; None: it is not."""


class Streaks:
    """The last streak of troubles of each connector and task; times are wall clock, in ms."""

    def __init__(self, statuses: Iterable[TaskStatus]) -> None:
        """Begin with the latest statuses: an earlier beginning is not known."""
        self._streaks: dict[Resource, Streak] = {}
        for each in statuses:
            self.note_status(each, each.time_ms)

    def began_ms(self, resource: Resource) -> int | None:
        """Return when the present streak began; None: the log tells of no trouble."""
        streak = self._streaks.get(resource)
        return streak.began_ms if streak and streak.fine_ms is None else None

    def note_status(self, status: TaskStatus, now_ms: int) -> None:
        """Record what a worker reports."""
        why = "" if status.reason == BATCHES_RUN else status.reason
        streak = self._streaks.get(status.resource)
        if trouble_of(status.state.value, why):
            self.begin(status.resource, now_ms)
        elif streak is not None and streak.fine_ms is None:
            self._streaks[status.resource] = Streak(streak.began_ms, now_ms)

    def begin(self, resource: Resource, now_ms: int) -> None:
        """Record a trouble, such as that no worker has it any more; it may continue a streak."""
        streak = self._streaks.get(resource, Streak(now_ms))
        if streak.fine_ms is not None and now_ms - streak.fine_ms >= STEADY_MS:
            streak = Streak(now_ms)
        self._streaks[resource] = Streak(streak.began_ms)

    def drop(self, resource: Resource) -> None:
        """Forget what is no more."""
        self._streaks.pop(resource, None)
