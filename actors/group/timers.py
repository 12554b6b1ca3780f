"""The timers of members and of computations, and how late a process may be (PROTOCOL §4, §5, §8).

They are soft state on the steady clock. After a restart of the coordinator every member has a full
session again, and each revocation its full time. A wall clock that jumps changes none of them. No
timer has to be cancelled: the rule of its command finds nothing to do then.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ...events.group import Group, Member
from ...events.model import MemberState
from ..messages.commands import (
    EndInitialDelay,
    EndInterval,
    ExpireRebalance,
    ExpireSession,
    TimeOutAssignor,
)
from ..timing import TimerQueue, earliest
from .members.seats import session_timeout_of
from .state.settings import GroupSettings
from .state.soft_state import InitialDelay, SoftState

TICK_MS: Final = 100
"""The least time between two looks at the timers: what comes due meanwhile is done together."""
LATE_MS: Final = 500
"""From which lateness of a tick on the process counts as held up: it could hear no member."""
MOST_EXCUSED_MS: Final = 60_000
SLOW_MS: Final = 50
"""From which duration on a computation is followed by an interval of its own."""
LONGEST_RECOVERY_MS: Final = 1_000


class LatenessBudget:
    """By how much of its own lateness a process may extend its members' timers.

    That is up to a minute at once, and in the long run half of the time that passes: a process that
    is always late would otherwise never end a session.
    """

    def __init__(self) -> None:
        self._left_ms = MOST_EXCUSED_MS
        self._seen_ms: int | None = None
        """When lateness was last excused, steady clock; None: it never was."""

    def spend(self, late_ms: int, now_ms: int) -> int:
        """Return how much of this lateness is excused, in milliseconds."""
        if self._seen_ms is not None:
            earned_ms = (now_ms - self._seen_ms) // 2
            self._left_ms = min(MOST_EXCUSED_MS, self._left_ms + earned_ms)
        self._seen_ms = now_ms
        excused_ms = min(late_ms, self._left_ms)
        self._left_ms -= excused_ms
        return excused_ms


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
        self._excused_ms = 0
        """For how long in all this process was held up; the queues' clock stood still then."""
        for member in group.members.values():
            self._wait(member, settings, steady_ms)
            self.time_revocation(member, steady_ms)

    def excuse(self, late_ms: int) -> None:
        """Extend all timers by the time for which this process was held up.

        That is safe: a member fences itself by its own clock.
        """
        self._excused_ms += late_ms

    def keep_alive(self, member: Member, settings: GroupSettings, since_ms: int) -> None:
        """Renew a member's session, counted from the arrival of its request."""
        self._heard_ms[member.member_id] = since_ms
        self._wait(member, settings, since_ms)

    def forget(self, member_id: str) -> None:
        """Forget a member that was removed."""
        self._heard_ms.pop(member_id, None)

    def _wait(self, member: Member, settings: GroupSettings, since_ms: int) -> None:
        seat = member.member_id, member.metadata.joined_epoch
        self._sessions.set(seat, since_ms + session_timeout_of(member, settings) - self._excused_ms)

    def time_revocation(self, member: Member, steady_ms: int) -> None:
        """Time a revocation from the record that asks for it, if that is the member's last."""
        if member.current.state is MemberState.UNREVOKED:
            asked = member.member_id, member.offset
            self._time(asked, steady_ms + member.metadata.rebalance_timeout_ms)

    def time_revocation_anew(self, member: Member, settings: GroupSettings, steady_ms: int) -> None:
        """Restart a revocation's timer at a repeated join that does not acknowledge it.

        Such a member has stopped everything and forgotten its deadline. What the answer grants it
        may run until the session that begins now ends, so the timer runs for at least as long.
        """
        if member.current.state is MemberState.UNREVOKED:
            asked = member.member_id, member.offset
            timeout_ms = member.metadata.rebalance_timeout_ms
            self._time(asked, steady_ms + max(timeout_ms, session_timeout_of(member, settings)))

    def _time(self, asked: tuple[str, int], until_ms: int) -> None:
        self._revocations.set(asked, until_ms - self._excused_ms)

    def due(self, now_ms: int) -> Iterator[ExpireSession | ExpireRebalance]:
        """Yield the members whose timers have expired, each once."""
        for member_id, joined_epoch in self._sessions.due(now_ms - self._excused_ms):
            silent_ms = now_ms - self._heard_ms.get(member_id, now_ms)
            yield ExpireSession(member_id, joined_epoch, silent_ms)
        for member_id, offset in self._revocations.due(now_ms - self._excused_ms):
            yield ExpireRebalance(member_id, offset)

    def next_ms(self) -> int | None:
        """Return when the next of them may be due."""
        next_ms = earliest(self._sessions.next_ms(), self._revocations.next_ms())
        return None if next_ms is None else next_ms + self._excused_ms


Timed = TimeOutAssignor | EndInterval | EndInitialDelay
"""The commands of computations that have timers."""


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

    def see(self, soft: SoftState, steady_ms: int) -> SoftState:
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
        self._see_initial_delay(soft, steady_ms)
        return soft

    def _see_initial_delay(self, soft: SoftState, steady_ms: int) -> None:
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
        """Return when a computation may take no longer, or the next may begin."""
        return self._queue.next_ms()
