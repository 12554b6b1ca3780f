"""The classic members of a group, whichever type it has: their calls, their timers, conversions.

A group has one protocol at a time. While it is classic, its members are those of
`ClassicCoordinator`; while it is of its kind, classic ones among them are those of `MixedMembers`,
whose calls are translated. A conversion (PROTOCOL §16) is decided with the request that causes it,
and the members move to the other of the two once its records are decided: so every call that
follows finds them there.
"""

from dataclasses import replace

from ...events.model import Cause, Why
from ..classic.coordinator import (
    ClassicCommand,
    ClassicCoordinator,
    ClassicDecision,
    MemberCall,
    PrepareRebalance,
)
from ..classic.refusals import refusal_of, refuse_group
from ..classic.state import ClassicSettings, PendingCall
from ..messages.classic import ClassicCall, ClassicReply, LeaveGroup, SyncGroupReply
from ..messages.commands import AddressedReply
from ..messages.members import Heartbeat
from ..timing import Now, earliest
from .evolving_group import EvolvingGroup
from .members.request_filter import CallFilter
from .state.soft_state import Decision, Rule
from .state.workers import is_silenced
from .translation.downgrade import Downgrade, downgrade, is_converted
from .translation.mixed import MixedMembers
from .translation.upgrade import ConvertingMembers, upgrade


class ClassicMembers:
    """The classic members of one group; their decisions evolve it, and answers are returned."""

    def __init__(self, state: EvolvingGroup, steady_ms: int) -> None:
        """Begin with a group that was rebuilt from its log."""
        self._state, self._kind = state, state.kind
        self.coordinator = ClassicCoordinator(state.group, steady_ms)
        """The members while the group is classic."""
        self._mixed = MixedMembers(state.group, state.kind.translation)
        """The classic members while the group is of its kind."""
        self._filter = CallFilter()
        """Drops late copies of calls whose members number them."""
        self._downgrade: Downgrade | None = None
        """The last downgrade that was decided."""
        self.is_agreed = not is_converted(state.group)
        """Whether the coordinator has taken over the members since the last downgrade."""

    # -- calls

    def admits(self, call: ClassicCall) -> bool:
        """Return whether a call is newer than all of its member, if members number them."""
        if not self._kind.grants_from_log or isinstance(call, LeaveGroup):
            return True
        return self._filter.is_new(call.member_id, call.number)

    def decide_call(
        self, call: ClassicCall, caller: PendingCall, fresh: str, now: Now
    ) -> list[AddressedReply]:
        """Return the answers to a call, and to others that waited for it.

        `fresh` is an id that was never used. Raises `NoSpaceError`, with nothing changed.
        """
        group = self._state.group
        if not group.members:
            return self.decide(MemberCall(call, caller, fresh), now)
        if not isinstance(call, LeaveGroup) and is_silenced(group, call.member_id):
            return []
        if refused := refuse_group(group, call):
            return [caller.reply(refusal_of(call, *refused))]
        rule = self._mixed.rule_of(call, fresh, self._settings(), now.wall_ms)
        reply = self._decide_mixed(rule, now).reply
        if not isinstance(reply, ClassicReply):
            raise TypeError(f"{type(call).__name__} is answered by {type(reply).__name__}")
        self._state.renew_session(self._mixed.apply(call, reply, now), now.steady_ms)
        return [self._with_log_end(caller.reply(reply))]

    def decide(self, command: ClassicCommand, now: Now) -> list[AddressedReply]:
        """Decide something about the members of a classic group; raises `NoSpaceError`."""
        phase = self.coordinator.phase
        decision = self.coordinator.decide(command, self._settings(), now)
        if decision.record is not None:
            self._state.write_generation(decision.record)
        self.coordinator.apply(decision, now.steady_ms)
        if isinstance(command, MemberCall) and self._kind.grants_from_log:
            self._hear(command.call, decision, now)
        if self.coordinator.phase is not phase:
            self._state.long_poll.mark_all()
        return [self._with_log_end(each) for each in decision.answers]

    def _hear(self, call: ClassicCall, decision: ClassicDecision, now: Now) -> None:
        """Record that a worker was heard of, if its call has renewed its session."""
        if not isinstance(call, LeaveGroup) and call.member_id in decision.renewed:
            self._state.timers.members.hear(call.member_id, now.steady_ms)

    def _decide_mixed(self, rule: Rule, now: Now) -> Decision:
        """Decide something about a classic member of a group that is of its kind."""
        state = self._state
        decision = self._kind.complete(state.group, rule(state.group, state.soft))
        applied = state.apply(self.or_downgrade(decision, now.wall_ms), now)
        if state.group.classic is not None:
            self.follow_conversion(now)
        return applied

    def _with_log_end(self, answer: AddressedReply) -> AddressedReply:
        """Return an answer with the log offset up to which its member has to read."""
        if not isinstance(answer.reply, SyncGroupReply):
            return answer
        return replace(answer, reply=replace(answer.reply, log_offset=self._state.group.end))

    def _settings(self) -> ClassicSettings:
        settings = self._state.soft.settings
        return ClassicSettings(
            settings.initial_delay_ms,
            settings.least_classic_session_ms,
            settings.longest_classic_session_ms,
            settings.max_size,
            grants_from_log=self._kind.grants_from_log,
        )

    # -- conversions

    def upgrade(self, request: Heartbeat, now_ms: int) -> Decision:
        """Decide a join by the modern protocol in a group that has classic members."""
        state, classic = self._state, self.coordinator
        converting = ConvertingMembers(
            classic.remaining(),
            classic.ids_with_assignment(),
            classic.newcomers,
            classic.protocol_type,
            self._kind.translation,
        )
        return upgrade(state.group, state.soft, request, converting, now_ms, self._kind.decide)

    def or_downgrade(self, decision: Decision, now_ms: int) -> Decision:
        """Return a decision with the conversion that follows from it, if one does."""
        converted = downgrade(self._state.group, decision, self._kind.translation, now_ms)
        self._downgrade = converted or self._downgrade
        return converted.decision if converted else decision

    def follow_conversion(self, now: Now) -> None:
        """Move the members to the other state machine if the group was converted."""
        state, classic, last = self._state, self.coordinator, self._state.group.classic
        if state.group.members and not classic.is_idle:
            joinable, answers = classic.hand_over()
            state.outbox.answers += answers
            for member_id, session_ms in joinable.items():
                self._mixed.expect(member_id, session_ms, now.steady_ms)
            for member_id in state.group.translated:
                state.grant_session(member_id, now.steady_ms)
            state.long_poll.mark_all()
        elif last is not None and last.members and classic.is_idle:
            self.is_agreed = False
        if not self.is_agreed and last is not None and not state.is_full:
            self.is_agreed, converted = True, self._downgrade
            self._mixed.clear()
            classic.take_over(now.steady_ms)
            # The cause of the next generation is not the conversion any more.
            cause = converted.cause if converted else Cause(Why.REBALANCE_REQUESTED, last.leader)
            if converted is None or converted.needs_round:
                state.outbox.answers += self.decide(PrepareRebalance(cause), now)

    # -- time

    def extend_timers(self, late_ms: int) -> None:
        """Extend all timers by the time for which the process was held up."""
        self.coordinator.extend_timers(late_ms)
        self._mixed.extend_timers(late_ms)

    def run_timers(self, now: Now) -> None:
        """Execute all due timers; must not be called while the disk is full."""
        for rule in self._mixed.due(now):
            self._decide_mixed(rule, now)
        for command in self.coordinator.due(now.steady_ms):
            self._state.outbox.answers += self.decide(command, now)

    def next_ms(self) -> int | None:
        """Return when something may be due next, steady clock."""
        classic_ms = self.coordinator.next_ms()
        return (
            earliest(classic_ms, self._mixed.next_ms()) if self._state.group.members else classic_ms
        )
