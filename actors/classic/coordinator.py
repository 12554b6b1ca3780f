"""The coordinator of a group's classic members: decides each call, and keeps their timers.

It does no input or output. What it decides goes to its host, in order: first the record, then the
answers that depend on it. A decision for which the disk has no room is not carried out: the group
stays as it is, and the caller is told so.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from ...events.group import Group
from ...events.log.space import NoRoomError
from ...events.model import Cause, ClassicMember
from ...events.records import ClassicGroup
from ..messages.classic import ClassicCall, JoinGroupReply, SyncGroupReply
from ..messages.errors import Error
from ..timing import Now, TimerQueue, earliest
from .decide import (
    ClassicCommand,
    EndPhase,
    ExpireMember,
    MemberCall,
    MemberEnded,
    PrepareRebalance,
    decide,
)
from .refusals import refusal_of, refuse_commit
from .state import (
    Answer,
    Asked,
    ClassicSeat,
    ClassicSettings,
    ClassicState,
    RoundPhase,
    state_of,
)

NEWCOMER_MS = 300_000
"""How long a new member waits at most for the answer to its first JoinGroup, as with Kafka."""


class ClassicHost(Protocol):
    """Carries out what is decided."""

    def write(self, record: ClassicGroup) -> None:
        """Evolve the group by a record, and queue it for the log.

        Raises `NoRoomError`, and does neither then.
        """
        ...

    def say(self, answer: Answer) -> None:
        """Send an answer once everything written so far is durable."""
        ...


class ClassicCoordinator:
    """The soft state of one group's classic members, and their timers."""

    def __init__(
        self,
        group: Group,
        host: ClassicHost,
        steady_ms: int,
        new_id: Callable[[], str],
    ) -> None:
        """Coordinate a group; every member in its log has a full session."""
        self._group, self._host, self._new_id = group, host, new_id
        self._state = state_of(group, steady_ms)
        self._silences: TimerQueue[str] = TimerQueue()
        """When each member id expires, by a clock that stands still while time is excused."""
        self._excused_ms = 0
        """For how long in all no member could be heard."""
        self.grant_sessions(steady_ms)

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, new ones included."""
        return not self._state.seats

    @property
    def is_unused(self) -> bool:
        """Whether it has no members, and has given out no id with which one could join."""
        return not self._state.seats and not self._state.pending_joins

    @property
    def phase(self) -> RoundPhase:
        """How far its round has come."""
        return self._state.phase

    @property
    def protocol_type(self) -> str:
        """The protocol type of its members, or of the last ones that it had."""
        return self._state.protocol_type

    @property
    def count(self) -> int:
        """How many members it has, new ones included."""
        return len(self._state.seats)

    @property
    def metadata_bytes(self) -> int:
        """How many bytes its members keep: their metadata, and their assignments."""
        return self._state.metadata_bytes + self._state.assignment_bytes

    @property
    def assignment_bytes(self) -> int:
        """How many bytes the assignments of its members have."""
        return self._state.assignment_bytes

    def member(self, member_id: str, instance_id: str | None) -> ClassicMember | None:
        """Return a member by its id, or by that of its static seat if it does not know its own."""
        if not member_id and instance_id is not None:
            member_id = self._state.instances.get(instance_id, "")
        seat = self._state.seats.get(member_id)
        return None if seat is None else seat.member

    def members(self) -> tuple[ClassicMember, ...]:
        """Return its members in the order in which they joined."""
        return tuple(seat.member for seat in self._state.seats.values())

    @property
    def newcomers(self) -> int:
        """How many members are in no generation yet."""
        return sum(seat.is_new for seat in self._state.seats.values())

    def remaining(self) -> Sequence[ClassicMember]:
        """Return the members of the last generation that have not left, as they joined last."""
        return [seat.member for seat in self._state.seats.values() if not seat.is_new]

    def ids_with_assignment(self) -> frozenset[str]:
        """Return the ids of the members that were sent their assignment of the last generation."""
        return frozenset(
            seat.member_id for seat in self._state.seats.values() if seat.has_assignment
        )

    def hear_commit(
        self, member_id: str, instance_id: str | None, generation: int, steady_ms: int
    ) -> Error | None:
        """Renew the session of a member that commits offsets; return why it may not."""
        last = self._group.classic
        refused = refuse_commit(self._state, last, member_id, instance_id, generation)
        if refused is None:
            self._wait_for(member_id, steady_ms - self._excused_ms)
        return refused

    def grant_sessions(self, steady_ms: int) -> None:
        """Give every member a full session again."""
        for each in (*self._state.seats, *self._state.pending_joins):
            self._wait_for(each, steady_ms - self._excused_ms)

    def excuse(self, late_ms: int) -> None:
        """Extend every session, and the phase, by this time."""
        self._excused_ms += late_ms

    def hand_over(self) -> Mapping[str, int]:
        """Forget all members, since the group is of the connect type from now on.

        Waiting calls are answered with REBALANCE_IN_PROGRESS. Returns the ids that may join for the
        first time, each with its session, in milliseconds: those that were given out, and those of
        new members.
        """
        state, self._state = self._state, ClassicState()
        self._silences = TimerQueue()
        for seat in state.seats.values():
            if seat.joining is not None:
                reply = JoinGroupReply(Error.REBALANCE_IN_PROGRESS, seat.member_id)
                self._host.say(Answer(seat.joining, replace(reply, number=seat.joining.number)))
            if seat.syncing is not None:
                told = SyncGroupReply(Error.REBALANCE_IN_PROGRESS, number=seat.syncing.number)
                self._host.say(Answer(seat.syncing, told))
        newcomers = (each for each in state.seats.values() if each.is_new)
        sessions = {each.member_id: each.member.session_timeout_ms for each in newcomers}
        return {**state.pending_joins, **sessions}

    def take_up(self, cause: Cause | None, settings: ClassicSettings, now: Now) -> None:
        """Coordinate the members of a group that has become classic, and begin a round.

        Without a cause no round is needed.
        """
        self._state = state_of(self._group, now.steady_ms - self._excused_ms)
        self.grant_sessions(now.steady_ms)
        if cause is not None:
            self._decide(PrepareRebalance(cause), settings, now.wall_ms, now.steady_ms)

    def take(
        self,
        call: ClassicCall,
        asked: Asked,
        settings: ClassicSettings,
        wall_ms: int,
        steady_ms: int,
    ) -> None:
        """Decide a call; what it leads to goes to the host, its answer now or later."""
        command = MemberCall(call, asked, self._new_id())
        try:
            self._decide(command, settings, wall_ms, steady_ms)
        except NoRoomError as error:
            refused = refusal_of(call, Error.COORDINATOR_NOT_AVAILABLE, str(error))
            self._host.say(Answer(asked, replace(refused, number=asked.number)))

    def end_member(self, member_id: str, settings: ClassicSettings, now: Now) -> None:
        """Remove a member whose process was seen to end, without waiting for its session.

        If there is no room to write that, its session expires as any other.
        """
        with suppress(NoRoomError):
            self._decide(MemberEnded(member_id), settings, now.wall_ms, now.steady_ms)

    def pass_time(self, settings: ClassicSettings, wall_ms: int, steady_ms: int) -> None:
        """Do what is due by now; not to be called while there is no room."""
        for member_id in self._silences.due(steady_ms - self._excused_ms):
            self._decide(ExpireMember(member_id), settings, wall_ms, steady_ms)
        ends_ms = self._state.ends_ms
        if ends_ms is not None and ends_ms <= steady_ms - self._excused_ms:
            self._decide(EndPhase(), settings, wall_ms, steady_ms)

    def next_ms(self) -> int | None:
        """Return when something may be due next, steady clock."""
        next_ms = earliest(self._silences.next_ms(), self._state.ends_ms)
        return None if next_ms is None else next_ms + self._excused_ms

    def _decide(
        self, command: ClassicCommand, settings: ClassicSettings, wall_ms: int, steady_ms: int
    ) -> None:
        since_ms = steady_ms - self._excused_ms
        decision = decide(self._group, self._state, settings, command, wall_ms, since_ms)
        if decision.record is not None:
            self._host.write(decision.record)
        self._state = decision.state
        for member_id in decision.renewed:
            self._wait_for(member_id, since_ms)
        for answer in decision.answers:
            self._host.say(answer)

    def _wait_for(self, member_id: str, since_ms: int) -> None:
        """Start the session timer of a member id; one that is gone has none."""
        seat = self._state.seats.get(member_id)
        session_ms = (
            self._state.pending_joins.get(member_id) if seat is None else _patience_ms(seat)
        )
        if session_ms is not None:
            self._silences.set(member_id, since_ms + session_ms)


def _patience_ms(seat: ClassicSeat) -> int:
    is_newcomer = seat.is_new and seat.joining is not None
    return NEWCOMER_MS if is_newcomer else seat.member.session_timeout_ms
