"""The classic members of a group: the commands, the decision of each, and what is kept beside it.

`decide` is pure: it returns the next soft state, the record to write, and the answers that may
leave once that is durable. `ClassicCoordinator` keeps the soft state and the members' session
timers between two decisions. It writes and sends nothing: its shell writes the record of a
decision, has the decision applied, and sends the answers. A decision for which there is no space on
the disk is not applied: the group stays as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...events.group import Group
from ...events.model import Cause, ClassicMember
from ...events.records import ClassicGroup
from ..messages.classic import (
    ClassicCall,
    ClassicHeartbeat,
    JoinGroup,
    JoinGroupReply,
    SyncGroup,
    SyncGroupReply,
)
from ..messages.commands import AddressedReply
from ..messages.errors import Error
from ..timing import Now, TimerQueue, earliest
from .refusals import refusal_of, refuse_commit, refuse_group
from .rules import (
    end_member,
    end_phase,
    expire_member,
    heartbeat,
    join,
    leave,
    prepare_rebalance,
    sync,
)
from .state import (
    ClassicDraft,
    ClassicSeat,
    ClassicSettings,
    ClassicState,
    PendingCall,
    RoundPhase,
    state_of,
)

NEWCOMER_MS = 300_000
"""How long a new member waits at most for the answer to its first JoinGroup, as with Kafka."""


@dataclass(frozen=True, slots=True)
class MemberCall:
    """A call of a member; `fresh` is an id that was never used."""

    call: ClassicCall
    caller: PendingCall
    fresh: str


@dataclass(frozen=True, slots=True)
class ExpireMember:
    """The session of a member, or of an id that was handed out, has expired."""

    member_id: str


@dataclass(frozen=True, slots=True)
class MemberEnded:
    """The process of a member has ended."""

    member_id: str


@dataclass(frozen=True, slots=True)
class EndPhase:
    """The time of the phase is up."""


@dataclass(frozen=True, slots=True)
class PrepareRebalance:
    """The members are to rebalance: the group was of the connect type before."""

    cause: Cause


ClassicCommand = PrepareRebalance | MemberCall | MemberEnded | ExpireMember | EndPhase


@dataclass(frozen=True, slots=True)
class ClassicDecision:
    """The next soft state, the record to write, and the answers once it is durable."""

    state: ClassicState
    record: ClassicGroup | None = None
    answers: Sequence[AddressedReply] = ()
    renewed: Sequence[str] = ()
    """The member ids whose session starts again; some may be removed by now."""


def decide(
    group: Group,
    state: ClassicState,
    settings: ClassicSettings,
    command: ClassicCommand,
    now: Now,
) -> ClassicDecision:
    """Return the decision for a command; group and soft state stay unchanged."""
    is_beat = isinstance(command, MemberCall) and isinstance(command.call, ClassicHeartbeat)
    state = state if is_beat else state.copy()  # a heartbeat changes nothing
    draft = ClassicDraft(group, state, settings, now)
    if isinstance(command, ExpireMember):
        expire_member(draft, command.member_id)
    elif isinstance(command, MemberEnded):
        end_member(draft, command.member_id)
    elif isinstance(command, EndPhase):
        end_phase(draft)
    elif isinstance(command, PrepareRebalance):
        prepare_rebalance(draft, command.cause)
    else:
        _carry_out(draft, command)
    return ClassicDecision(draft.state, draft.record, draft.answers, draft.renewed)


def _carry_out(draft: ClassicDraft, command: MemberCall) -> None:
    call, caller = command.call, command.caller
    if refused := refuse_group(draft.group, call):
        draft.answer(caller, refusal_of(call, *refused))
    elif isinstance(call, JoinGroup):
        join(draft, call, caller, command.fresh)
    elif isinstance(call, SyncGroup):
        sync(draft, call, caller)
    elif isinstance(call, ClassicHeartbeat):
        heartbeat(draft, call, caller)
    else:
        leave(draft, call, caller)


class ClassicHandover(NamedTuple):
    """The unused member ids and due answers of a group that is no longer classic."""

    joinable: Mapping[str, int]
    """The ids that may join for the first time, each with its session, in milliseconds: those that
    were given out, and those of new members."""
    answers: list[AddressedReply]
    """REBALANCE_IN_PROGRESS to the calls that wait."""


class ClassicCoordinator:
    """The soft state of one group's classic members, and their timers."""

    def __init__(self, group: Group, steady_ms: int) -> None:
        """Begin with the members of the last generation, each with a full session."""
        self._group = group
        self._state = state_of(group, steady_ms)
        self._sessions: TimerQueue[str] = TimerQueue()
        """When each member id expires."""
        self.grant_sessions(steady_ms)

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, new ones included."""
        return not self._state.seats

    @property
    def is_idle(self) -> bool:
        """Whether it has no members, is in no round, and no member id is reserved."""
        return self._state.phase is RoundPhase.EMPTY and self.is_unused

    @property
    def is_unused(self) -> bool:
        """Whether it has no members, and no member id is reserved for a join."""
        return not self._state.seats and not self._state.pending_joins

    @property
    def phase(self) -> RoundPhase:
        """The phase of the current round."""
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
        """The size of its members' metadata and assignments."""
        return self._state.metadata_bytes + self._state.assignment_bytes

    @property
    def assignment_bytes(self) -> int:
        """How many bytes the assignments of its members have."""
        return self._state.assignment_bytes

    def member(self, member_id: str, instance_id: str | None) -> ClassicMember | None:
        """Return a member by its id, or a static member without id by its instance id."""
        if not member_id and instance_id is not None:
            member_id = self._state.instances.get(instance_id, "")
        seat = self._state.seats.get(member_id)
        return None if seat is None else seat.member

    def members(self) -> tuple[ClassicMember, ...]:
        """Return its members in the order in which they joined."""
        return tuple(seat.member for seat in self._state.seats.values())

    @property
    def newcomers(self) -> int:
        """The number of members that are in no generation yet."""
        return sum(seat.is_new for seat in self._state.seats.values())

    def remaining(self) -> Sequence[ClassicMember]:
        """Return the members of the last generation that have not left, as they joined last."""
        return [seat.member for seat in self._state.seats.values() if not seat.is_new]

    def ids_with_assignment(self) -> frozenset[str]:
        """Return the ids of the members that were sent their assignment of the last generation."""
        return frozenset(
            seat.member_id for seat in self._state.seats.values() if seat.has_assignment
        )

    def renew_session(
        self, member_id: str, instance_id: str | None, generation: int, steady_ms: int
    ) -> Error | None:
        """Renew the session of a member that commits offsets or has no news.

        Returns why it may not, if it may not.
        """
        last = self._group.classic
        refused = refuse_commit(self._state, last, member_id, instance_id, generation)
        if refused is None:
            self._wait_for(member_id, steady_ms)
        return refused

    def grant_sessions(self, steady_ms: int) -> None:
        """Restart every member's full session."""
        for each in (*self._state.seats, *self._state.pending_joins):
            self._wait_for(each, steady_ms)

    def extend_timers(self, late_ms: int) -> None:
        """Extend every session, and the phase, by a time in which no request was read."""
        self._sessions.extend(late_ms)
        self._state = self._state.extend(late_ms)

    # -- conversions

    def hand_over(self) -> ClassicHandover:
        """Remove all members, since the group is of the connect type from now on."""
        state, self._state = self._state, ClassicState()
        self._sessions = TimerQueue()
        answers: list[AddressedReply] = []
        for seat in state.seats.values():
            if seat.joining is not None:
                reply = JoinGroupReply(Error.REBALANCE_IN_PROGRESS, seat.member_id)
                answers.append(seat.joining.reply(reply))
            if seat.syncing is not None:
                answers.append(seat.syncing.reply(SyncGroupReply(Error.REBALANCE_IN_PROGRESS)))
        newcomers = (each for each in state.seats.values() if each.is_new)
        sessions = {each.member_id: each.member.session_timeout_ms for each in newcomers}
        return ClassicHandover({**state.pending_joins, **sessions}, answers)

    def take_over(self, steady_ms: int) -> None:
        """Coordinate the members of a group that has become classic, each with a full session."""
        self._state = state_of(self._group, steady_ms)
        self.grant_sessions(steady_ms)

    # -- decisions

    def decide(
        self, command: ClassicCommand, settings: ClassicSettings, now: Now
    ) -> ClassicDecision:
        """Decide a command; nothing changes until the decision is applied."""
        return decide(self._group, self._state, settings, command, now)

    def apply(self, decision: ClassicDecision, steady_ms: int) -> None:
        """Apply a decision: its soft state replaces the last one, and the sessions are timed."""
        self._state = decision.state
        for member_id in decision.renewed:
            self._wait_for(member_id, steady_ms)

    def due(self, steady_ms: int) -> Iterator[ClassicCommand]:
        """Yield the commands that are due; decide each before asking for the next."""
        yield from map(ExpireMember, self._sessions.due(steady_ms))
        ends_ms = self._state.ends_ms
        if ends_ms is not None and ends_ms <= steady_ms:
            yield EndPhase()

    def next_ms(self) -> int | None:
        """Return when something may be due next, steady clock."""
        return earliest(self._sessions.next_ms(), self._state.ends_ms)

    def _wait_for(self, member_id: str, since_ms: int) -> None:
        """Start the session timer of a member id, or remove it if the member is gone."""
        seat = self._state.seats.get(member_id)
        session_ms = (
            self._state.pending_joins.get(member_id) if seat is None else _patience_ms(seat)
        )
        if session_ms is not None:
            self._sessions.set(member_id, since_ms + session_ms)


def _patience_ms(seat: ClassicSeat) -> int:
    is_newcomer = seat.is_new and seat.joining is not None
    return NEWCOMER_MS if is_newcomer else seat.member.session_timeout_ms
