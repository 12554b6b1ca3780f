"""The rules of a classic group by what is asked, and what a decision is."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...events.group import Group
from ...events.model import Cause
from ...events.records import ClassicGroup
from ..messages.classic import ClassicCall, ClassicHeartbeat, JoinGroup, SyncGroup
from .calls import heartbeat, join, leave, sync
from .refusals import refusal_of, refuse_group
from .rounds import begin_round, end_phase, expire, take_end
from .state import Answer, Asked, ClassicSettings, ClassicState, Turn


@dataclass(frozen=True, slots=True)
class MemberCall:
    """What a member asks; `fresh` is an id that nobody ever had."""

    call: ClassicCall
    asked: Asked
    fresh: str


@dataclass(frozen=True, slots=True)
class ExpireMember:
    """A member, or an id that was given out, has been silent for its session."""

    member_id: str


@dataclass(frozen=True, slots=True)
class MemberEnded:
    """The process of a member was seen to end."""

    member_id: str


@dataclass(frozen=True, slots=True)
class EndPhase:
    """The phase may be over by now."""


@dataclass(frozen=True, slots=True)
class BeginRound:
    """The members have to agree anew: a connect group has become theirs."""

    cause: Cause


ClassicCommand = BeginRound | MemberCall | MemberEnded | ExpireMember | EndPhase


@dataclass(frozen=True, slots=True)
class ClassicDecision:
    """The soft state to go on with, the record to write, and what may be said once it is."""

    state: ClassicState
    record: ClassicGroup | None = None
    answers: Sequence[Answer] = ()
    heard: Sequence[str] = ()
    """The ids whose time begins anew; some may be gone by now."""


def decide(
    group: Group,
    state: ClassicState,
    settings: ClassicSettings,
    command: ClassicCommand,
    wall_ms: int,
    steady_ms: int,
) -> ClassicDecision:
    """Return what a command leads to; group and soft state stay as they are."""
    is_beat = isinstance(command, MemberCall) and isinstance(command.call, ClassicHeartbeat)
    state = state if is_beat else state.copy()  # a heartbeat changes nothing
    turn = Turn(group, state, settings, wall_ms, steady_ms)
    if isinstance(command, ExpireMember):
        expire(turn, command.member_id)
    elif isinstance(command, MemberEnded):
        take_end(turn, command.member_id)
    elif isinstance(command, EndPhase):
        end_phase(turn)
    elif isinstance(command, BeginRound):
        begin_round(turn, command.cause)
    else:
        _carry_out(turn, command)
    return ClassicDecision(turn.state, turn.record, turn.answers, turn.heard)


def _carry_out(turn: Turn, command: MemberCall) -> None:
    call, asked = command.call, command.asked
    if refused := refuse_group(turn.group, call):
        turn.answer(asked, refusal_of(call, *refused))
    elif isinstance(call, JoinGroup):
        join(turn, call, asked, command.fresh)
    elif isinstance(call, SyncGroup):
        sync(turn, call, asked)
    elif isinstance(call, ClassicHeartbeat):
        heartbeat(turn, call, asked)
    else:
        leave(turn, call, asked)
