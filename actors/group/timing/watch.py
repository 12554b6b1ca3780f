"""Times computations: how long one may take, and when the next may begin.

On the steady clock, for both are soft: a wall clock that jumps neither hurries a member that
computes nor keeps the next one waiting.
"""

from collections.abc import Iterator

from ...messages.timers import EndRest, TimeOutAssignor
from ..state.soft_state import SoftState
from .alarms import TimerQueue


class ComputationTimer:
    """Sees each soft state that a decision left, and tells what has come due of it."""

    def __init__(self) -> None:
        self._begun = 0
        self._begun_ms = 0
        self._rest_ms: int | None = None
        self._queue: TimerQueue[TimeOutAssignor | EndRest] = TimerQueue()

    def see(self, soft: SoftState, steady_ms: int) -> None:
        """Time the computation that has begun since the last soft state, and the rest after it."""
        if soft.begun != self._begun:
            self._queue.cancel(TimeOutAssignor(self._begun))
            self._begun, self._begun_ms, self._rest_ms = soft.begun, steady_ms, None
            if soft.computation is not None:
                timer = TimeOutAssignor(soft.computation.number)
                self._queue.set(timer, steady_ms + soft.computation.timeout_ms)
        rest_ms = soft.settings.assignment_interval_ms
        if soft.rests and rest_ms != self._rest_ms:  # the interval may change meanwhile
            self._rest_ms = rest_ms
            self._queue.set(EndRest(), self._begun_ms + rest_ms)

    def due(self, steady_ms: int) -> Iterator[TimeOutAssignor | EndRest]:
        """Yield what the group is to say to itself now."""
        return self._queue.due(steady_ms)
