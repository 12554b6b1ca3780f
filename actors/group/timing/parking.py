"""Times parked work on the steady clock as well as by the wall's.

Its deadlines are durable, so they are wall clock times; but a wall clock that is set back
must not keep work waiting longer than it was to wait when its deadline was first seen.
"""

from collections.abc import Iterator

from ....events.group import NO_SCHEDULE
from ....events.records import ScheduledRebalance
from ...messages.timers import ReleaseParked
from .alarms import Alarms


class Parking:
    """Sees each schedule, and tells which of its deadlines have come."""

    def __init__(self) -> None:
        self._schedule = NO_SCHEDULE
        self._alarms: Alarms[int] = Alarms()
        self._timed: set[int] = set()

    def see(self, schedule: ScheduledRebalance, wall_ms: int, steady_ms: int) -> None:
        """Time the deadlines that are new in the schedule; costs nothing while it stays."""
        if schedule is self._schedule:
            return
        self._schedule = schedule
        deadlines = set(schedule.parked.values())
        for deadline_ms in deadlines - self._timed:
            self._alarms.set(deadline_ms, steady_ms + max(0, deadline_ms - wall_ms))
        for deadline_ms in self._timed - deadlines:
            self._alarms.cancel(deadline_ms)
        self._timed = deadlines

    def due(self, steady_ms: int) -> Iterator[ReleaseParked]:
        """Yield what the group is to say to itself now."""
        for deadline_ms in self._alarms.due(steady_ms):
            yield ReleaseParked(deadline_ms)
