"""Times what a target leaves for later on the steady clock as well as by the wall's.

The deadlines of parked work and the time of the next moves are durable, so they are wall
clock times; but a wall clock that is set back must not keep anything waiting longer than it
was to wait when its time was first seen.
"""

from collections.abc import Iterator

from ....events.group import NO_SCHEDULE
from ....events.records import ScheduledRebalance
from ...messages.timers import ContinueMoves, ReleaseParked
from .alarms import Alarms

AGAIN_MS = 1_000
"""How soon the next moves are asked for again, while nobody is there to compute them."""


class Parking:
    """Sees each schedule, and tells which of its times have come."""

    def __init__(self) -> None:
        self._schedule = NO_SCHEDULE
        self._alarms: Alarms[ReleaseParked | ContinueMoves] = Alarms()
        self._timed: set[ReleaseParked | ContinueMoves] = set()

    def see(self, schedule: ScheduledRebalance, wall_ms: int, steady_ms: int) -> None:
        """Time what is new in the schedule; costs nothing while it stays."""
        if schedule is self._schedule:
            return
        self._schedule = schedule
        promised: set[ReleaseParked | ContinueMoves]
        promised = {ReleaseParked(each) for each in set(schedule.parked.values())}
        if schedule.again_at_ms:
            promised.add(ContinueMoves(schedule.again_at_ms))
        for each in promised - self._timed:
            self._alarms.set(each, steady_ms + max(0, each.until_ms - wall_ms))
        for each in self._timed - promised:
            self._alarms.cancel(each)
        self._timed = promised

    def due(self, steady_ms: int) -> Iterator[ReleaseParked | ContinueMoves]:
        """Yield what the group is to say to itself now.

        What is promised as before when the group has heard of it could not be done yet.
        """
        for each in self._alarms.due(steady_ms):
            yield each
            if isinstance(each, ContinueMoves) and each in self._timed:
                self._alarms.set(each, steady_ms + AGAIN_MS)
