"""The timers of a group, and the commands that become due as time passes (PROTOCOL §4, §5, §7).

* *Members* (sessions, revocations) and *computations* (their timeout, the interval after one, the
  initial rebalance delay) have timers on the steady clock alone. They are soft state: after a
  restart of the coordinator every member has a full session again, and each revocation its full
  time. A wall clock that jumps changes none of them. No timer has to be cancelled: the rule of its
  command finds nothing to do then.
* *Promises*: the deadlines of parked work, the time of the next moves, the back-off after a failed
  computation and the time until which a worker is expected back are durable, so they are wall clock
  times. But a wall clock may be set back, before or after a restart: nothing waits longer than was
  promised, counted on the steady clock from when this process first saw the promise. It may also be
  set forward: so these times are compared with it as well, at each tick.
* The work of a connector that is being deleted or stopped ends at an unknown time: that is looked
  at in each tick.

The rule of each command checks once more that its reason still holds.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from ...events.group import NO_SCHEDULE, NO_TARGET, Group, Member
from ...events.model import MemberState
from ...events.placement import worker_name
from ...events.records import (
    ConnectorConfig,
    CurrentAssignment,
    MemberMetadata,
    Operator,
    Record,
    TargetState,
    Tombstone,
)
from ..messages.commands import (
    Command,
    ContinueMoves,
    EndExpectation,
    EndInitialDelay,
    EndInterval,
    ExpireRebalance,
    ExpireSession,
    FinishDeletion,
    FinishStop,
    FreeSeat,
    RecordAlteration,
    ReleaseParked,
    RetryAssignor,
    TimeOutAssignor,
)
from ..timing import Now, TimerQueue, earliest
from .computing.target import is_next_move_due, is_retry_due
from .orders.departures import due_removals
from .orders.lifecycle import is_stopping
from .state.settings import GroupSettings
from .state.soft_state import InitialDelay, SoftState
from .state.workers import is_by_order

LOOK_MS: Final = 1_000
"""The longest time between two ticks: the wall clock may be set in between."""
LOOK_SOON_MS: Final = 100
"""The same while something may be due that has no timer."""
AGAIN_MS: Final = 1_000
"""After which time a due command is repeated, while no member is there to compute."""
SLOW_MS: Final = 50
"""From which duration on a computation is followed by an interval of its own."""
LONGEST_RECOVERY_MS: Final = 1_000

Promise = ReleaseParked | ContinueMoves | RetryAssignor | EndExpectation
"""The commands with a durable time."""

Timed = TimeOutAssignor | EndInterval | EndInitialDelay
"""The commands of computations that have timers."""


class GroupTimers:
    """The timers of one group, and its other due times."""

    def __init__(self, group: Group, settings: GroupSettings, steady_ms: int) -> None:
        """Begin with a full session, and a full rebalance timeout, for every member of the log."""
        self._group = group
        self.members = MemberTimers(group, settings, steady_ms)
        self._computation = ComputationTimer()
        """When the member that computes has taken too long."""
        self._promises = PromiseTimers()
        """When the schedule, the target and orders are to be followed up."""
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
        """Restart every member's full session and full rebalance timeout."""
        self.members = MemberTimers(self._group, settings, steady_ms)

    def extend(self, late_ms: int) -> None:
        """Extend the members' timers by the time for which this process was held up."""
        self.members.extend(late_ms)

    def follow_soft_state(self, soft: SoftState, steady_ms: int) -> SoftState:
        """Time a computation that has begun; return the soft state with the interval after it."""
        return self._computation.follow(soft, steady_ms)

    def follow_record(self, record: Record, steady_ms: int) -> None:
        """Start and stop timers after a record by which the group has just evolved."""
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

    def follow_promises(self, now: Now) -> None:
        """Start timers for the group's durable times; free while these stay the same."""
        self._promises.follow(self._group, now)
        if self._has_new_orders:
            self._has_new_orders = False
            orders = self._group.worker_orders.values()
            members = self._group.members
            self._has_removals = any(each.gently and each.removing in members for each in orders)
            self._promises.follow_orders(self._group, now)

    def due(self, settings: GroupSettings, now: Now) -> Iterator[Command]:
        """Yield the commands that are due; decide each before asking for the next."""
        while self._to_free:
            yield FreeSeat(self._to_free.pop().member_id)
        unlooked, self._unlooked = self._unlooked, []
        yield from map(RecordAlteration, unlooked)
        yield from self.members.due(now.steady_ms)
        yield from self._computation.due(now.steady_ms)
        yield from self._due_by_wall_clock(settings, now.wall_ms)
        yield from map(FinishDeletion, sorted(self._deleting))
        yield from map(FinishStop, sorted(self._stopping))
        self.follow_promises(now)
        yield from self._promises.due(now.steady_ms)

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
        """Return when the next timer may expire; None: not before another request.

        A group without connectors and orders has nothing else to look at.
        """
        return earliest(
            self.members.next_ms(), self._computation.next_ms(), self._promises.next_ms()
        )


class MemberTimers:
    """The session and rebalance timers of one group's members.

    They are never cancelled: when the seat or the revocation is over, the command does nothing.
    """

    def __init__(self, group: Group, settings: GroupSettings, steady_ms: int) -> None:
        """Begin with a full session, and a full rebalance timeout, for every member of the log."""
        self._sessions: TimerQueue[tuple[str, int]] = TimerQueue()
        """By member id and joined epoch: a later member with the same id has its own timer."""
        self._revocations: TimerQueue[tuple[str, int]] = TimerQueue()
        """By member id and the log offset of the record that asks for the revocation."""
        self._heard_ms: dict[str, int] = {}
        """When each member was last heard of by this process, by member id."""
        for member in group.members.values():
            self.grant_session(member, settings, steady_ms)
            self.time_revocation(member, steady_ms)

    def extend(self, late_ms: int) -> None:
        """Extend all timers by the time for which this process was held up.

        That is safe: a member fences itself by its own clock.
        """
        self._sessions.extend(late_ms)
        self._revocations.extend(late_ms)

    def renew_session(self, member: Member, settings: GroupSettings, since_ms: int) -> None:
        """Renew a member's session, counted from the arrival of its request."""
        self.hear(member.metadata.member_id, since_ms)
        self.grant_session(member, settings, since_ms)

    def hear(self, member_id: str, at_ms: int) -> None:
        """Record when the last heartbeat of a member came that has renewed its session."""
        self._heard_ms[member_id] = at_ms

    def forget(self, member_id: str) -> None:
        """Forget a member that was removed."""
        self._heard_ms.pop(member_id, None)

    def forget_others(self, members: Collection[str]) -> None:
        """Forget all but these members."""
        self._heard_ms = {each: at for each, at in self._heard_ms.items() if each in members}

    def heartbeat_ages(self, members: Iterable[str], now_ms: int) -> dict[str, int]:
        """Return how old the last heartbeat of each of these members is, in milliseconds.

        One that is held counts from its arrival. A member that this process has not heard of yet is
        left out. Time for which the process was held up does not count.
        """
        heard = ((each, self._heard_ms.get(each)) for each in members)
        return {each: max(0, now_ms - at_ms) for each, at_ms in heard if at_ms is not None}

    def grant_session(self, member: Member, settings: GroupSettings, since_ms: int) -> None:
        """Start a member's session again, whether anything was heard of it or not."""
        seat = member.metadata.member_id, member.metadata.joined_epoch
        self._sessions.set(seat, since_ms + session_timeout_of(member, settings))

    def time_revocation(self, member: Member, steady_ms: int) -> None:
        """Start the timer of a member's pending revocation, which its last record asked for."""
        if member.current.state is MemberState.UNREVOKED:
            revocation = member.member_id, member.offset
            until_ms = steady_ms + member.metadata.rebalance_timeout_ms
            self._revocations.set(revocation, until_ms)

    def time_revocation_anew(self, member: Member, settings: GroupSettings, steady_ms: int) -> None:
        """Restart a revocation's timer at a repeated join that does not acknowledge it.

        Such a member has stopped everything and forgotten its deadline. What the answer grants it
        may run until the session that begins now ends, so the timer runs for at least as long.
        """
        if member.current.state is MemberState.UNREVOKED:
            timeout_ms = member.metadata.rebalance_timeout_ms
            longest_ms = max(timeout_ms, session_timeout_of(member, settings))
            self._revocations.set((member.member_id, member.offset), steady_ms + longest_ms)

    def due(self, now_ms: int) -> Iterator[ExpireSession | ExpireRebalance]:
        """Yield the members whose timers have expired, each once."""
        for member_id, joined_epoch in self._sessions.due(now_ms):
            silent_ms = now_ms - self._heard_ms.get(member_id, now_ms)
            yield ExpireSession(member_id, joined_epoch, silent_ms)
        for member_id, offset in self._revocations.due(now_ms):
            yield ExpireRebalance(member_id, offset)

    def next_ms(self) -> int | None:
        """Return when the next member timer may expire."""
        return earliest(self._sessions.next_ms(), self._revocations.next_ms())


class ComputationTimer:
    """Times how long a computation may take, and when the next, or the first, may begin.

    It sees the soft state after each decision. While changes come faster than targets can be
    computed, a group should not only compute: if one computation took long and the next has begun,
    a third begins no sooner than twice that time after the second did, and covers all changes until
    then.
    """

    def __init__(self) -> None:
        self._begun = 0
        """The number of the last computation that it has seen."""
        self._begun_ms = 0
        """When that began, steady clock."""
        self._is_under_way = False
        """Whether a member computes."""
        self._took_ms = 0
        """How long a member took for the last computation that is over."""
        self._interval_ms: int | None = None
        """The interval that a timer is set for, from the last beginning on; None: none is yet."""
        self._initial_delay: tuple[InitialDelay, int] | None = None
        """What the group waits for before its first target, and the delay that was set."""
        self._delay_began_ms = 0
        """When that began, steady clock."""
        self._queue: TimerQueue[Timed] = TimerQueue()

    def follow(self, soft: SoftState, steady_ms: int) -> SoftState:
        """Set the timers of a computation that has begun; return the soft state with its interval.

        One that follows a long one has an interval even if none is configured.
        """
        has_begun = soft.begun != self._begun
        if self._is_under_way and (has_begun or soft.computation is None):
            self._is_under_way, self._took_ms = False, steady_ms - self._begun_ms
        if has_begun:
            self._queue.cancel(TimeOutAssignor(self._begun))
            self._begun, self._begun_ms, self._interval_ms = soft.begun, steady_ms, None
            if soft.computation is not None:
                self._is_under_way = True
                timer = TimeOutAssignor(soft.computation.number)
                self._queue.set(timer, steady_ms + soft.computation.timeout_ms)
                soft = replace(soft, is_in_interval=soft.is_in_interval or self._took_ms >= SLOW_MS)
            else:
                self._took_ms = 0  # the coordinator has computed at once
        interval_ms = max(soft.settings.assignment_interval_ms, self._recovery_ms())
        if soft.is_in_interval and interval_ms != self._interval_ms:  # it may change meanwhile
            self._interval_ms = interval_ms
            self._queue.set(EndInterval(), self._begun_ms + interval_ms)
        self._time_initial_delay(soft, steady_ms)
        return soft

    def _time_initial_delay(self, soft: SoftState, steady_ms: int) -> None:
        """Restart the initial rebalance delay with each new member, and when it is changed."""
        before, self._initial_delay = self._initial_delay, None
        if soft.initial_delay is None:
            self._queue.cancel(EndInitialDelay())
            return
        delay_ms = soft.settings.connect_initial_delay_ms
        self._initial_delay = soft.initial_delay, delay_ms
        if before is None or soft.initial_delay.newcomers < before[0].newcomers:
            self._delay_began_ms = steady_ms
        if self._initial_delay != before:
            until_ms = self._delay_began_ms + soft.initial_delay.longest_ms
            self._queue.set(EndInitialDelay(), min(steady_ms + delay_ms, until_ms))

    def _recovery_ms(self) -> int:
        return min(2 * self._took_ms, LONGEST_RECOVERY_MS) if self._took_ms >= SLOW_MS else 0

    def due(self, steady_ms: int) -> Iterator[Timed]:
        """Yield the commands that are due."""
        return self._queue.due(steady_ms)

    def next_ms(self) -> int | None:
        """Return when a computation must end, or when the next may begin."""
        return self._queue.next_ms()


class PromiseTimers:
    """The timers for the durable times of one group, in its schedule and its target."""

    def __init__(self) -> None:
        self._schedule, self._target = NO_SCHEDULE, NO_TARGET
        """What was seen last."""
        self._queue: TimerQueue[Promise] = TimerQueue()
        self._timed: set[Promise] = set()
        """What the schedule and the target promise, and has a timer."""
        self._expected: set[Promise] = set()
        """The workers expected back, that have a timer."""

    def follow(self, group: Group, now: Now) -> None:
        """Start timers for new times in the schedule and the target; free while they stay."""
        if group.schedule is self._schedule and group.target is self._target:
            return
        self._schedule, self._target = group.schedule, group.target
        self._timed = self._time(self._timed, _find_promises(group), now)

    def follow_orders(self, group: Group, now: Now) -> None:
        """Time until when workers are expected back; for whenever an order changes."""
        self._expected = self._time(self._expected, _find_expectations(group), now)

    def due(self, steady_ms: int) -> Iterator[Promise]:
        """Yield the commands that the group sends to itself now.

        What is promised as before when the group has heard of it could not be done yet.
        """
        for each in self._queue.due(steady_ms):
            yield each
            if isinstance(each, ContinueMoves | RetryAssignor) and each in self._timed:
                self._queue.set(each, steady_ms + AGAIN_MS)

    def next_ms(self) -> int | None:
        """Return when the next of these times may have passed."""
        return self._queue.next_ms()

    def _time(self, timed: set[Promise], promised: dict[Promise, int], now: Now) -> set[Promise]:
        """Set the timers of what is promised now, each with the longest that it may wait."""
        for each in promised.keys() - timed:
            left_ms = min(each.until_ms - now.wall_ms, promised[each])
            self._queue.set(each, now.steady_ms + max(0, left_ms))
        for each in timed - promised.keys():
            self._queue.cancel(each)
        return set(promised)


def _find_promises(group: Group) -> dict[Promise, int]:
    """Return the durable times in the schedule and the target, each with its longest wait."""
    schedule, made_ms = group.schedule, group.target.time_ms
    promises: dict[Promise, int] = {
        ReleaseParked(until_ms): wait_ms for until_ms, wait_ms in _find_waits(group).items()
    }
    if schedule.again_at_ms:
        promises[ContinueMoves(schedule.again_at_ms)] = schedule.again_at_ms - made_ms
    if retry_at_ms := group.target.retry_at_ms:
        promises[RetryAssignor(retry_at_ms)] = retry_at_ms - made_ms
    return promises


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


def session_timeout_of(member: Member, settings: GroupSettings) -> int:
    """Return how long the group waits for a word of the member, in milliseconds.

    The group's session timeout may change while members run. A member fences itself by the session
    of its last answer, and says in its requests which that is; its record keeps it. The group waits
    for the longer of that and its own: after the session was shortened, until the member says that
    it uses the shorter one; after it was lengthened, from the first answer with the longer one,
    which is recorded before it is sent. So the group never ends a session before the member does,
    whichever answer is lost and whichever process restarts. A member that is away runs nothing, and
    is waited for as long as lost work would be parked. A classic member has the session that it
    asked for.
    """
    if member.metadata.classic is not None:
        return member.metadata.session_timeout_ms
    session_ms = max(settings.session_timeout_ms, member.metadata.session_timeout_ms)
    return max(session_ms, settings.max_delay_ms) if member.is_away else session_ms
