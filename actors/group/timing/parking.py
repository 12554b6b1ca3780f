"""Times on the steady clock what a group has promised by the wall's.

The deadlines of parked work, the time of the next moves, the back-off after a failed computation
and the time until which a worker is expected back are durable, so they are wall clock times. But a
wall clock may be set back, before or after a restart of the coordinator: nothing waits longer than
it was to wait when it was promised, counted from when this process has seen it first.
"""

from collections.abc import Iterator

from ....events.group import NO_SCHEDULE, NO_TARGET, Group
from ....events.orders import worker_name
from ....events.records import ScheduledRebalance, TargetAssignment
from ...messages.timers import ContinueMoves, EndExpectation, ReleaseParked, RetryAssignor
from ..state.in_force import shares_deadline
from .alarms import TimerQueue

AGAIN_MS = 1_000
"""How soon what is due is asked for again, while nobody is there to compute."""

Promise = ReleaseParked | ContinueMoves | RetryAssignor | EndExpectation
"""What the group is to say to itself at a time, and until when it was to wait for that."""


class ParkingTimers:
    """Sees what a group has promised, and tells which of the times have come."""

    def __init__(self) -> None:
        self._schedule: ScheduledRebalance = NO_SCHEDULE
        self._target: TargetAssignment = NO_TARGET
        self._queue: TimerQueue[Promise] = TimerQueue()
        self._timed: set[Promise] = set()
        self._expected: set[Promise] = set()

    def see(self, group: Group, wall_ms: int, steady_ms: int) -> None:
        """Time what is new in the schedule and the target; costs nothing while they stay."""
        if group.schedule is self._schedule and group.target is self._target:
            return
        self._schedule, self._target = group.schedule, group.target
        self._timed = self._time(self._timed, _promised(group), wall_ms, steady_ms)

    def see_orders(self, group: Group, wall_ms: int, steady_ms: int) -> None:
        """Time until when workers are expected back; for whenever an order changes."""
        self._expected = self._time(self._expected, _expectations(group), wall_ms, steady_ms)

    def due(self, steady_ms: int) -> Iterator[Promise]:
        """Yield what the group is to say to itself now.

        What is promised as before when the group has heard of it could not be done yet.
        """
        for each in self._queue.due(steady_ms):
            yield each
            if isinstance(each, ContinueMoves | RetryAssignor) and each in self._timed:
                self._queue.set(each, steady_ms + AGAIN_MS)

    def _time(
        self, timed: set[Promise], promised: dict[Promise, int], wall_ms: int, steady_ms: int
    ) -> set[Promise]:
        """Set the timers of what is promised now, each with the longest that it may wait."""
        for each in promised.keys() - timed:
            left_ms = min(each.until_ms - wall_ms, promised[each])
            self._queue.set(each, steady_ms + max(0, left_ms))
        for each in timed - promised.keys():
            self._queue.cancel(each)
        return set(promised)


def _promised(group: Group) -> dict[Promise, int]:
    """Return what the schedule and the target promise, and for how long each was to wait."""
    schedule, made_ms = group.schedule, group.target.time_ms
    found: dict[Promise, int] = {
        ReleaseParked(until_ms): wait_ms for until_ms, wait_ms in _waits(group).items()
    }
    if schedule.again_at_ms:
        found[ContinueMoves(schedule.again_at_ms)] = schedule.again_at_ms - made_ms
    if retry_at_ms := group.target.retry_at_ms:
        found[RetryAssignor(retry_at_ms)] = retry_at_ms - made_ms
    return found


def _waits(group: Group) -> dict[int, int]:
    """Return for how long parked work was to wait, by its deadline: since its loss, or an order."""
    since_ms: dict[int, int] = {}
    for loss in group.losses.values():
        set_ms = loss.time_ms
        if not shares_deadline(group, loss):
            set_ms = group.worker_orders[worker_name(loss)].time_ms
        since_ms[loss.deadline_ms] = min(set_ms, since_ms.get(loss.deadline_ms, set_ms))
    deadlines = set(group.schedule.parked.values())
    return {each: each - since_ms.get(each, group.target.time_ms) for each in deadlines}


def _expectations(group: Group) -> dict[Promise, int]:
    return {
        EndExpectation(name, order.expected_back_ms): order.expected_back_ms - order.time_ms
        for name, order in group.worker_orders.items()
        if order.expected_back_ms
    }
