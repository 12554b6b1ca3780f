"""The soft state of classic members in a connect group: given-out ids, and when calls are due.

Their calls are decided and answered at once. Once a member was told to rejoin it has to send
JoinGroup within its rebalance timeout, and SyncGroup within as long after each JoinGroup. Their
sessions are timed with those of all members.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import NamedTuple, Protocol

from ....events.group import Group
from ....events.log.space import NoRoomError
from ...classic.calls import MOST_PENDING_JOINS
from ...classic.refusals import refusal_of, refuse_group
from ...classic.state import Answer, Asked
from ...messages.classic import (
    ClassicCall,
    ClassicHeartbeat,
    ClassicReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    SyncGroup,
)
from ...messages.errors import Error
from ...timing import Now, TimerQueue
from ..state.soft_state import Decision, Rule
from ..state.workers import is_silenced
from .calls import expire, heartbeat, leave, sync
from .joins import Joining, Terms, join


class MixedHost(Protocol):
    """Carries out what is decided."""

    def carry_out(self, rule: Rule, now: Now) -> Decision:
        """Decide, and evolve the group; raises `NoRoomError`, and changes nothing then."""
        ...

    def hear(self, member_id: str, now: Now) -> None:
        """Renew a member's session; one that is gone has none."""
        ...

    def say(self, answer: Answer) -> None:
        """Send an answer once everything decided so far is durable."""
        ...


class AwaitedCall(Enum):
    """A call that a member has to send in time."""

    FIRST_JOIN = "to join with the id that it was given"
    JOIN = "to join anew"
    SYNC = "to ask for its assignment"


class CallDeadline(NamedTuple):
    """The member that has to send a call."""

    awaited: AwaitedCall
    member_id: str


class MixedMembers:
    """The classic members of one connect group."""

    def __init__(self, group: Group, host: MixedHost, new_id: Callable[[], str]) -> None:
        """Begin with nothing remembered, so that every member has its full time."""
        self._group, self._host, self._new_id = group, host, new_id
        self._expected: dict[str, None] = {}
        """The member ids that were given out and have not joined yet."""
        self._told_to_rejoin: set[str] = set()
        """The ids of the members that were told to rejoin and have not yet."""
        self._deadlines: TimerQueue[CallDeadline] = TimerQueue()
        self._excused_ms = 0
        """For how long in all no member could be heard."""

    def clear(self) -> None:
        """Forget everything: the group is classic now, and may be mixed again later."""
        self._expected.clear()
        self._told_to_rejoin.clear()
        self._deadlines = TimerQueue()

    def excuse(self, late_ms: int) -> None:
        """Extend all deadlines by this time."""
        self._excused_ms += late_ms

    def expect(self, member_id: str, session_ms: int, now: Now) -> None:
        """Let a new member join with this id within its session."""
        if len(self._expected) >= MOST_PENDING_JOINS:
            del self._expected[next(iter(self._expected))]
        self._expected[member_id] = None
        self._set_deadline(AwaitedCall.FIRST_JOIN, member_id, session_ms, now)

    def take(self, call: ClassicCall, asked: Asked, terms: Terms, now: Now) -> None:
        """Decide a call, and answer it, unless its member is being removed by force."""
        if not isinstance(call, LeaveGroup) and is_silenced(self._group, call.member_id):
            return
        try:
            reply = self._answer(call, terms, now)
        except NoRoomError as error:
            reply = refusal_of(call, Error.COORDINATOR_NOT_AVAILABLE, str(error))
        self._host.say(Answer(asked, replace(reply, number=asked.number)))

    def _answer(self, call: ClassicCall, terms: Terms, now: Now) -> ClassicReply:
        if refused := refuse_group(self._group, call):
            return refusal_of(call, *refused)
        decision = self._host.carry_out(self._rule(call, terms, now.wall_ms), now)
        reply = decision.reply
        if not isinstance(reply, ClassicReply):
            raise TypeError(f"{type(call).__name__} is answered by {type(reply).__name__}")
        if isinstance(call, JoinGroup) and isinstance(reply, JoinGroupReply):
            self._see_join(call, reply, now)
        elif isinstance(call, SyncGroup | ClassicHeartbeat):
            self._see_sign_of_life(call, reply.error, now)
        return reply

    def _rule(self, call: ClassicCall, terms: Terms, now_ms: int) -> Rule:
        if isinstance(call, JoinGroup):
            joining = Joining(call, self._new_id(), call.member_id in self._expected)
            return lambda group, soft: join(group, soft, joining, terms, now_ms)
        if isinstance(call, SyncGroup):
            return lambda group, soft: sync(group, soft, call, terms.translation)
        if isinstance(call, ClassicHeartbeat):
            return lambda group, soft: heartbeat(group, soft, call)
        return lambda group, soft: leave(group, soft, call, now_ms)

    def _see_join(self, call: JoinGroup, reply: JoinGroupReply, now: Now) -> None:
        if reply.error is Error.MEMBER_ID_REQUIRED:
            self.expect(reply.member_id, call.session_timeout_ms, now)
        elif reply.error is Error.NONE:
            self._expected.pop(reply.member_id, None)
            self._told_to_rejoin.discard(reply.member_id)
            self._deadlines.cancel(CallDeadline(AwaitedCall.JOIN, reply.member_id))
            self._set_deadline(AwaitedCall.SYNC, reply.member_id, call.rebalance_timeout_ms, now)
            self._host.hear(reply.member_id, now)

    def _see_sign_of_life(self, call: SyncGroup | ClassicHeartbeat, error: Error, now: Now) -> None:
        member = self._group.members.get(call.member_id)
        if member is None or error not in {Error.NONE, Error.REBALANCE_IN_PROGRESS}:
            return
        self._host.hear(call.member_id, now)
        if error is Error.REBALANCE_IN_PROGRESS and call.member_id not in self._told_to_rejoin:
            self._told_to_rejoin.add(call.member_id)
            self._set_deadline(
                AwaitedCall.JOIN, call.member_id, member.metadata.rebalance_timeout_ms, now
            )
        elif error is Error.NONE and isinstance(call, SyncGroup):
            self._deadlines.cancel(CallDeadline(AwaitedCall.SYNC, call.member_id))

    def _set_deadline(
        self, awaited: AwaitedCall, member_id: str, timeout_ms: int, now: Now
    ) -> None:
        self._deadlines.set(
            CallDeadline(awaited, member_id), now.steady_ms + timeout_ms - self._excused_ms
        )

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; not to be called while there is no room."""
        for awaited, member_id in self._deadlines.due(now.steady_ms - self._excused_ms):
            if awaited is AwaitedCall.FIRST_JOIN:
                self._expected.pop(member_id, None)
            else:
                self._told_to_rejoin.discard(member_id)
                self._expire(member_id, now)

    def _expire(self, member_id: str, now: Now) -> None:
        self._host.carry_out(lambda group, soft: expire(group, soft, member_id, now.wall_ms), now)

    def next_ms(self) -> int | None:
        """Return when something may be due next, steady clock."""
        next_ms = self._deadlines.next_ms()
        return None if next_ms is None else next_ms + self._excused_ms
