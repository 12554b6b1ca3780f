"""The commands of a classic group, the rule for each, and what a decision is."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...events.group import Group
from ...events.model import Cause
from ...events.records import ClassicGroup
from ..messages.classic import ClassicCall, ClassicHeartbeat, JoinGroup, SyncGroup
from .calls import heartbeat, join, leave, sync
from .refusals import refusal_of, refuse_group
from .rounds import end_member, end_phase, expire_member, prepare_rebalance
from .state import Answer, Asked, ClassicSettings, ClassicState, Turn


@dataclass(frozen=True, slots=True)
class MemberCall:
    """A call of a member; `fresh` is an id that was never used."""

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
    answers: Sequence[Answer] = ()
    renewed: Sequence[str] = ()
    """The member ids whose session starts again; some may be removed by now."""


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
        expire_member(turn, command.member_id)
    elif isinstance(command, MemberEnded):
        end_member(turn, command.member_id)
    elif isinstance(command, EndPhase):
        end_phase(turn)
    elif isinstance(command, PrepareRebalance):
        prepare_rebalance(turn, command.cause)
    else:
        _carry_out(turn, command)
    return ClassicDecision(turn.state, turn.record, turn.answers, turn.renewed)


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
