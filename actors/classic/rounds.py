"""The rounds (rebalances) of a classic group: how each phase begins, and how it ends.

Each generation has one leader, and its number is one more than any epoch that the group ever had.
It is written before any member is told of it.
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


def prepare_rebalance(turn: Turn, cause: Cause) -> None:
    """Begin a round: all members are to rejoin (PreparingRebalance).

    Those that wait for their assignment are told so now, others by their next heartbeat.
    """
    state, was = turn.state, turn.state.phase
    for seat in [each for each in state.seats.values() if each.syncing or each.is_pending_sync]:
        if seat.syncing:
            turn.answer(seat.syncing, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
        state.put(replace(seat, syncing=None, is_pending_sync=False))
    state.phase, state.cause, state.delay_limit_ms = RoundPhase.PREPARING, cause, None
    longest_ms = longest_rebalance_ms(state)
    state.ends_ms = turn.steady_ms + longest_ms
    delay_ms = turn.settings.initial_delay_ms
    if was is RoundPhase.EMPTY and not delay_ms:
        complete_join(turn)  # without waiting for ids that were given out: nothing has to stop
    elif was is RoundPhase.EMPTY:
        state.delay_limit_ms = turn.steady_ms + max(longest_ms, delay_ms)
        extend_initial_delay(turn)
    else:
        complete_if_all_joined(turn)


def extend_initial_delay(turn: Turn) -> None:
    """Have a first round wait for more members, counted from now; other rounds do not (KIP-134)."""
    state = turn.state
    if state.delay_limit_ms is not None:
        until_ms = turn.steady_ms + turn.settings.initial_delay_ms
        state.ends_ms = min(until_ms, state.delay_limit_ms)


def complete_if_all_joined(turn: Turn) -> None:
    """End the join phase if all members have joined."""
    state = turn.state
    is_waiting = state.joined < len(state.seats) or bool(state.pending_joins)
    if state.phase is RoundPhase.PREPARING and state.delay_limit_ms is None and not is_waiting:
        complete_join(turn)


def complete_join(turn: Turn) -> None:
    """End the join phase: a generation of the members that have joined, and of static members.

    A static member may be away for a session. While only such members are left, the group waits for
    one of them.
    """
    state = turn.state
    for seat in [*state.seats.values()]:
        if seat.joining is None and seat.member.instance_id is None:
            state.drop(seat.member_id)
    state.delay_limit_ms = None
    if state.seats and not _elect_leader(turn):
        state.ends_ms = turn.steady_ms + longest_rebalance_ms(state)
        return
    _begin_generation(turn)
    for seat in [*state.seats.values()]:
        if seat.joining is not None:
            turn.answer(seat.joining, join_reply(turn, seat.member_id))
            turn.renewed.append(seat.member_id)
        begins = replace(
            seat, joining=None, is_new=False, is_pending_sync=True, has_assignment=False
        )
        state.put(begins)
    state.ends_ms = turn.steady_ms + longest_rebalance_ms(state) if state.seats else None


def _elect_leader(turn: Turn) -> bool:
    """Choose a leader that has joined, the last one if it has; False: no member has joined."""
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
    """Return the protocol of the group: each member votes for its first one that all offer.

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


def join_reply(turn: Turn, member_id: str) -> JoinGroupReply:
    """Return the answer to a member's JoinGroup; the leader's has the metadata of all members.

    Raises ValueError if there is no generation.
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


def end_member(turn: Turn, member_id: str) -> None:
    """Remove a dynamic member whose process has ended; a static one waits for its next process."""
    seat = turn.state.seats.get(member_id)
    if seat is not None and seat.member.instance_id is None:
        remove_member(turn, member_id)
        rebalance_without(turn, Cause(Why.PROCESS_ENDED, member_id))


def remove_member(turn: Turn, member_id: str, error: Error = Error.UNKNOWN_MEMBER_ID) -> None:
    """Remove a member, and answer its waiting calls with this error."""
    seat = turn.state.seats[member_id]
    turn.state.drop(member_id)
    if seat.joining is not None:
        turn.answer(seat.joining, JoinGroupReply(error, member_id))
    if seat.syncing is not None:
        turn.answer(seat.syncing, SyncGroupReply(error))


def rebalance_without(turn: Turn, cause: Cause) -> None:
    """Continue after members were removed: begin a round, or end the join phase if it can end."""
    if turn.state.phase in {RoundPhase.COMPLETING, RoundPhase.STABLE}:
        prepare_rebalance(turn, cause)
    else:
        complete_if_all_joined(turn)


def end_phase(turn: Turn) -> None:
    """End a phase whose time is up: the join phase, or that of members that did not sync."""
    state = turn.state
    if state.phase is RoundPhase.PREPARING:
        complete_join(turn)
        return
    state.ends_ms = None
    late = [seat.member_id for seat in state.seats.values() if seat.is_pending_sync]
    for member_id in late:
        remove_member(turn, member_id)
    if late:
        rebalance_without(turn, Cause(Why.REBALANCE_EXPIRED, late[0]))
    elif turn.settings.goes_by_grants and needs_another_round(turn.generation):
        prepare_rebalance(turn, Cause(Why.REBALANCE_REQUESTED, state.leader))


def expire_member(turn: Turn, member_id: str) -> None:
    """Expire a member id: a member that was silent, or an id with which nobody has joined.

    A member that waits for an answer is not silent, but a newcomer does not wait for ever.
    """
    state = turn.state
    seat = state.seats.get(member_id)
    if seat is None:
        if state.pending_joins.pop(member_id, None) is not None:
            complete_if_all_joined(turn)
    elif seat.syncing is not None or (seat.joining is not None and not seat.is_new):
        turn.renewed.append(member_id)
    else:
        remove_member(turn, member_id)
        rebalance_without(turn, Cause(Why.SESSION_EXPIRED, member_id))
