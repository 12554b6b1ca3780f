"""The commands that become due as time passes (PROTOCOL §4, §5, §7).

* *Members* and *computations* have timers on the steady clock alone; see `timers`.
* *Promises*: the deadlines of parked work, the time of the next moves, the back-off after a failed
  computation and the time until which a worker is expected back are durable, so they are wall clock
  times. But a wall clock may be set back, before or after a restart: nothing waits longer than was
  promised, counted on the steady clock from when this process first saw the promise. It may also be
  set forward: so these times are compared with it as well, at each tick.
* The work of a connector that is being deleted or stopped ends at an unknown time: that is looked
  at in each tick.

The rule of each command checks once more that its reason still holds.
"""

from collections.abc import Iterator
from typing import Final

from ...events.connectors import ConnectorConfig, TargetState
from ...events.group import NO_SCHEDULE, NO_TARGET, Group
from ...events.placement import worker_name
from ...events.records import CurrentAssignment, MemberMetadata, Operator, Record, Tombstone
from ..messages.commands import (
    Command,
    ContinueMoves,
    EndExpectation,
    FinishDeletion,
    FinishStop,
    FreeSeat,
    RecordAlteration,
    ReleaseParked,
    RetryAssignor,
)
from ..timing import TimerQueue, earliest
from .computing.target import is_next_move_due, is_retry_due
from .orders.departures import due_removals
from .orders.lifecycle import is_stopping
from .state.settings import GroupSettings
from .state.soft_state import SoftState
from .state.workers import is_by_order
from .timers import ComputationTimer, MemberTimers

LOOK_MS: Final = 1_000
"""The longest time between two ticks: the wall clock may be set in between."""
LOOK_SOON_MS: Final = 100
"""The same while something may be due that has no timer."""
AGAIN_MS: Final = 1_000
"""After which time a due command is repeated, while no member is there to compute."""

Promise = ReleaseParked | ContinueMoves | RetryAssignor | EndExpectation
"""The commands with a durable time."""


class DueCommands:
    """The timers of one group, and what else becomes due."""

    def __init__(self, group: Group, settings: GroupSettings, steady_ms: int) -> None:
        """Begin with a full session, and a full rebalance timeout, for every member of the log."""
        self._group = group
        self.members = MemberTimers(group, settings, steady_ms)
        self._computation = ComputationTimer()
        self._parking = ParkingTimers()
        self._has_new_orders = True
        """Whether orders have changed since the parking timers saw them last."""
        self._has_removals = False
        """Whether any member is removed gently: no timer tells when it holds nothing any more."""
        self._to_free = [each for each in group.members_away() if each.current.assigned]
        """Members that are away and still hold something, which an earlier version left them."""
        self._unlooked = sorted(group.connectors)
        """The connectors whose last change of offsets may be unrecorded."""
        self._deleting = {name for name, each in group.connectors.items() if each.deleting}
        """The connectors to bury as soon as their work has stopped."""
        self._stopping = {name for name, each in group.target_states.items() if is_stopping(each)}
        """The connectors that are STOPPED as soon as their work has ended."""

    def grant_sessions(self, settings: GroupSettings, steady_ms: int) -> None:
        """Give every member a full session, and a full rebalance timeout, again."""
        self.members = MemberTimers(self._group, settings, steady_ms)

    def excuse(self, late_ms: int) -> None:
        """Extend the members' timers by the time for which this process was held up."""
        self.members.excuse(late_ms)

    def see_soft_state(self, soft: SoftState, steady_ms: int) -> SoftState:
        """Time a computation that has begun; return the soft state with the interval after it."""
        return self._computation.see(soft, steady_ms)

    def see_record(self, record: Record, steady_ms: int) -> None:
        """Follow a record that the group has just evolved by."""
        kind = record.kind if isinstance(record, Tombstone) else type(record)
        if isinstance(record, CurrentAssignment):
            self.members.time_revocation(self._group.members[record.member_id], steady_ms)
        elif kind is Operator:
            self._has_new_orders = True
        elif isinstance(record, ConnectorConfig) and record.deleting:
            self._deleting.add(record.connector)
        elif isinstance(record, TargetState):
            follow = self._stopping.add if is_stopping(record) else self._stopping.discard
            follow(record.connector)
        elif isinstance(record, Tombstone) and kind is ConnectorConfig:
            self._deleting.discard(str(record.key[0]))
            self._stopping.discard(str(record.key[0]))
        elif isinstance(record, Tombstone) and kind is MemberMetadata:
            self.members.forget(str(record.key[0]))

    def see_promises(self, wall_ms: int, steady_ms: int) -> None:
        """Time what the group has promised by now; costs nothing while that stays the same."""
        self._parking.see(self._group, wall_ms, steady_ms)
        if self._has_new_orders:
            self._has_new_orders = False
            orders = self._group.worker_orders.values()
            members = self._group.members
            self._has_removals = any(each.gently and each.removing in members for each in orders)
            self._parking.see_orders(self._group, wall_ms, steady_ms)

    def commands(self, settings: GroupSettings, wall_ms: int, steady_ms: int) -> Iterator[Command]:
        """Yield what is due by now; each is to be decided before the next is asked for."""
        while self._to_free:
            yield FreeSeat(self._to_free.pop().member_id)
        unlooked, self._unlooked = self._unlooked, []
        yield from map(RecordAlteration, unlooked)
        yield from self.members.due(steady_ms)
        yield from self._computation.due(steady_ms)
        yield from self._due_by_wall_clock(settings, wall_ms)
        yield from map(FinishDeletion, sorted(self._deleting))
        yield from map(FinishStop, sorted(self._stopping))
        self.see_promises(wall_ms, steady_ms)
        yield from self._parking.due(steady_ms)

    def _due_by_wall_clock(self, settings: GroupSettings, now_ms: int) -> Iterator[Command]:
        group = self._group
        yield from [*due_removals(group, now_ms)]
        if group.next_deadline_ms is not None and group.next_deadline_ms <= now_ms:
            yield ReleaseParked()
        if is_next_move_due(group.schedule, now_ms):
            yield ContinueMoves()
        if is_retry_due(group, settings, now_ms):
            yield RetryAssignor()

    def next_ms(self, steady_ms: int) -> int:
        """Return when something may be due next, steady clock; that may be over already."""
        is_ending = self._deleting or self._stopping
        is_waiting = self._to_free or is_ending or self._has_removals or self._has_new_orders
        look_ms = steady_ms + (LOOK_SOON_MS if is_waiting else LOOK_MS)
        timed_ms = self.timed_ms()
        return look_ms if timed_ms is None else min(look_ms, timed_ms)

    def timed_ms(self) -> int | None:
        """Return when something may be due next by a timer; None: nothing before more is taken.

        A group without connectors and orders has nothing else to look at.
        """
        return earliest(
            self.members.next_ms(), self._computation.next_ms(), self._parking.next_ms()
        )


class ParkingTimers:
    """Sees what a group has promised, and tells which of the times have come."""

    def __init__(self) -> None:
        self._schedule, self._target = NO_SCHEDULE, NO_TARGET
        """What was seen last."""
        self._queue: TimerQueue[Promise] = TimerQueue()
        self._timed: set[Promise] = set()
        """What the schedule and the target promise, and has a timer."""
        self._expected: set[Promise] = set()
        """The workers expected back, that have a timer."""

    def see(self, group: Group, wall_ms: int, steady_ms: int) -> None:
        """Time what is new in the schedule and the target; costs nothing while they stay."""
        if group.schedule is self._schedule and group.target is self._target:
            return
        self._schedule, self._target = group.schedule, group.target
        self._timed = self._time(self._timed, _find_promises(group), wall_ms, steady_ms)

    def see_orders(self, group: Group, wall_ms: int, steady_ms: int) -> None:
        """Time until when workers are expected back; for whenever an order changes."""
        self._expected = self._time(self._expected, _find_expectations(group), wall_ms, steady_ms)

    def due(self, steady_ms: int) -> Iterator[Promise]:
        """Yield what the group is to say to itself now.

        What is promised as before when the group has heard of it could not be done yet.
        """
        for each in self._queue.due(steady_ms):
            yield each
            if isinstance(each, ContinueMoves | RetryAssignor) and each in self._timed:
                self._queue.set(each, steady_ms + AGAIN_MS)

    def next_ms(self) -> int | None:
        """Return when the next of them may have come."""
        return self._queue.next_ms()

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


def _find_promises(group: Group) -> dict[Promise, int]:
    """Return what the schedule and the target promise, and for how long each was to wait."""
    schedule, made_ms = group.schedule, group.target.time_ms
    found: dict[Promise, int] = {
        ReleaseParked(until_ms): wait_ms for until_ms, wait_ms in _find_waits(group).items()
    }
    if schedule.again_at_ms:
        found[ContinueMoves(schedule.again_at_ms)] = schedule.again_at_ms - made_ms
    if retry_at_ms := group.target.retry_at_ms:
        found[RetryAssignor(retry_at_ms)] = retry_at_ms - made_ms
    return found


def _find_waits(group: Group) -> dict[int, int]:
    """Return for how long parked work was to wait, by its deadline: since its loss, or an order."""
    since_ms: dict[int, int] = {}
    for loss in group.losses.values():
        set_ms = loss.time_ms
        if is_by_order(group, loss):
            set_ms = group.worker_orders[worker_name(loss)].time_ms
        since_ms[loss.deadline_ms] = min(set_ms, since_ms.get(loss.deadline_ms, set_ms))
    deadlines = set(group.schedule.parked.values())
    return {each: each - since_ms.get(each, group.target.time_ms) for each in deadlines}


def _find_expectations(group: Group) -> dict[Promise, int]:
    return {
        EndExpectation(name, order.expected_back_ms): order.expected_back_ms - order.time_ms
        for name, order in group.worker_orders.items()
        if order.expected_back_ms
    }
