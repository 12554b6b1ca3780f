"""Times computations: how long one may take, and when the next may begin.

On the steady clock, for both are soft: a wall clock that jumps neither hurries a member that
computes nor keeps the next one waiting.
"""

from collections.abc import Iterator

from ...messages import EndRest, TimeOutAssignor
from ..desk import Desk
from .alarms import Alarms


class Watch:
    """Sees each desk that a decision left, and tells what has come due of it."""

    def __init__(self) -> None:
        self._begun = 0
        self._alarms: Alarms[TimeOutAssignor | EndRest] = Alarms()

    def see(self, desk: Desk, steady_ms: int) -> None:
        """Time the computation that has begun since the last desk, if one has."""
        if desk.begun == self._begun:
            return
        self._alarms.cancel(TimeOutAssignor(self._begun))
        self._begun = desk.begun
        if desk.computation is not None:
            alarm = TimeOutAssignor(desk.computation.number)
            self._alarms.set(alarm, steady_ms + desk.computation.timeout_ms)
        if desk.rests:
            self._alarms.set(EndRest(), steady_ms + desk.settings.assignment_interval_ms)

    def due(self, steady_ms: int) -> Iterator[TimeOutAssignor | EndRest]:
        """Yield what the group is to say to itself now."""
        return self._alarms.due(steady_ms)
