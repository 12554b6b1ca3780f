"""The rounds of a classic group: how a phase begins, and what its end brings.

One leader to each generation, and each generation is one more than any epoch that the group ever
had. It is a record before anybody hears of it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ...events.model import Cause, ClassicMember, Why
from ...events.records import ClassicGroup
from ..messages.classic import JoinedMember, JoinGroupReply, SyncGroupReply
from ..messages.errors import Error
from .grants import needs_another_round
from .state import ClassicSeat, RoundPhase, Turn, longest_rebalance_ms


def begin_round(turn: Turn, cause: Cause) -> None:
    """Have all members join anew; those that wait for their assignment are told so.

    Others hear of it by their next heartbeat.
    """
    state, was = turn.state, turn.state.phase
    for seat in [each for each in state.seats.values() if each.syncing or each.owes_sync]:
        if seat.syncing:
            turn.answer(seat.syncing, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
        state.put(replace(seat, syncing=None, owes_sync=False))
    state.phase, state.cause, state.delay_limit_ms = RoundPhase.PREPARING, cause, None
    longest_ms = longest_rebalance_ms(state)
    state.ends_ms = turn.steady_ms + longest_ms
    delay_ms = turn.settings.initial_delay_ms
    if was is RoundPhase.EMPTY and not delay_ms:
        complete_join(turn)  # ids that are out are not waited for: nothing runs that had to stop
    elif was is RoundPhase.EMPTY:
        state.delay_limit_ms = turn.steady_ms + max(longest_ms, delay_ms)
        put_off(turn)
    else:
        complete_if_all_joined(turn)


def put_off(turn: Turn) -> None:
    """Let a first round wait for more members, from now on; others are not put off."""
    state = turn.state
    if state.delay_limit_ms is not None:
        until_ms = turn.steady_ms + turn.settings.initial_delay_ms
        state.ends_ms = min(until_ms, state.delay_limit_ms)


def complete_if_all_joined(turn: Turn) -> None:
    """End the join phase once nobody is waited for any more."""
    state = turn.state
    is_waiting = state.joined < len(state.seats) or bool(state.expected)
    if state.phase is RoundPhase.PREPARING and state.delay_limit_ms is None and not is_waiting:
        complete_join(turn)


def complete_join(turn: Turn) -> None:
    """End the join phase: a generation of those who have joined, and of static members.

    A static member may be away for a session. While nobody but such members is left, the group
    waits for one of them.
    """
    state = turn.state
    for seat in [*state.seats.values()]:
        if seat.joining is None and seat.member.instance_id is None:
            state.drop(seat.member_id)
    state.delay_limit_ms = None
    if state.seats and not _elect(turn):
        state.ends_ms = turn.steady_ms + longest_rebalance_ms(state)
        return
    _begin_generation(turn)
    for seat in [*state.seats.values()]:
        if seat.joining is not None:
            turn.answer(seat.joining, joined(turn, seat.member_id))
            turn.heard.append(seat.member_id)
        begins = replace(seat, joining=None, is_new=False, owes_sync=True, has_heard=False)
        state.put(begins)
    state.ends_ms = turn.steady_ms + longest_rebalance_ms(state) if state.seats else None


def _elect(turn: Turn) -> bool:
    """Have a member that has joined lead, the last leader if it can; False: nobody has joined."""
    state = turn.state
    leader = state.seats.get(state.leader)
    if leader is None or leader.joining is None:
        here = (seat.member_id for seat in state.seats.values() if seat.joining is not None)
        state.leader = next(here, "")
    return bool(state.leader)


def _begin_generation(turn: Turn) -> None:
    state = turn.state
    state.phase = RoundPhase.COMPLETING if state.seats else RoundPhase.EMPTY
    state.leader = state.leader if state.seats else ""
    turn.record = ClassicGroup(
        turn.group.group_epoch + 1,
        state.cause,
        turn.wall_ms,
        state.protocol_type,
        elect_protocol(seat.member for seat in state.seats.values()),
        state.leader,
        tuple(replace(seat.member, assignment=b"") for seat in state.seats.values()),
    )


def elect_protocol(members: Iterable[ClassicMember]) -> str | None:
    """Return what all are to speak: each votes for the first of its own that all have.

    Ties go by name. None: there are no members.
    """
    offered = [[each.name for each in member.protocols] for member in members]
    if not offered:
        return None
    counts = Counter(name for names in offered for name in names)
    votes = Counter(
        next(name for name in names if counts[name] == len(offered)) for names in offered
    )
    return min(votes, key=lambda name: (-votes[name], name))


def joined(turn: Turn, member_id: str) -> JoinGroupReply:
    """Return the answer that tells a member of the generation; its leader is told of all members.

    Raises ValueError where there is no generation.
    """
    last = turn.generation
    if last is None or last.protocol is None:
        raise ValueError(f"{member_id} is to be told of a generation, and there is none")
    return JoinGroupReply(
        Error.NONE,
        member_id,
        last.generation,
        last.protocol_type,
        last.protocol,
        last.leader,
        _members(turn, last.protocol) if last.leader == member_id else (),
    )


def _members(turn: Turn, protocol: str) -> tuple[JoinedMember, ...]:
    return tuple(
        JoinedMember(seat.member_id, seat.member.instance_id, _metadata(seat, protocol))
        for seat in turn.state.seats.values()
    )


def _metadata(seat: ClassicSeat, protocol: str) -> bytes:
    return next(each.metadata for each in seat.member.protocols if each.name == protocol)


def take_end(turn: Turn, member_id: str) -> None:
    """End the seat of a member whose process is gone; a static one waits for its next process."""
    seat = turn.state.seats.get(member_id)
    if seat is not None and seat.member.instance_id is None:
        remove(turn, member_id)
        go_on_without(turn, Cause(Why.PROCESS_ENDED, member_id))


def remove(turn: Turn, member_id: str, error: Error = Error.UNKNOWN_MEMBER_ID) -> None:
    """End a seat; whoever waits in its name is told."""
    seat = turn.state.seats[member_id]
    turn.state.drop(member_id)
    if seat.joining is not None:
        turn.answer(seat.joining, JoinGroupReply(error, member_id))
    if seat.syncing is not None:
        turn.answer(seat.syncing, SyncGroupReply(error))


def go_on_without(turn: Turn, cause: Cause) -> None:
    """Go on after members were removed: with another round, or with one that nobody holds up."""
    if turn.state.phase in {RoundPhase.COMPLETING, RoundPhase.STABLE}:
        begin_round(turn, cause)
    else:
        complete_if_all_joined(turn)


def end_phase(turn: Turn) -> None:
    """Do what is due when a phase is over: end the join phase, or go on without the debtors."""
    state = turn.state
    if state.ends_ms is None or state.ends_ms > turn.steady_ms:
        return
    if state.phase is RoundPhase.PREPARING:
        complete_join(turn)
        return
    state.ends_ms = None
    late = [seat.member_id for seat in state.seats.values() if seat.owes_sync]
    for member_id in late:
        remove(turn, member_id)
    if late:
        go_on_without(turn, Cause(Why.REBALANCE_EXPIRED, late[0]))
    elif turn.settings.goes_by_grants and needs_another_round(turn.generation):
        begin_round(turn, Cause(Why.REBALANCE_REQUESTED, state.leader))


def expire(turn: Turn, member_id: str) -> None:
    """End the time of one id: of a member that was silent, or of an id that nobody joined with.

    Who waits for an answer of ours is not silent, but no newcomer waits for ever.
    """
    state = turn.state
    seat = state.seats.get(member_id)
    if seat is None:
        if state.expected.pop(member_id, None) is not None:
            complete_if_all_joined(turn)
    elif seat.syncing is not None or (seat.joining is not None and not seat.is_new):
        turn.heard.append(member_id)
    else:
        remove(turn, member_id)
        go_on_without(turn, Cause(Why.SESSION_EXPIRED, member_id))
