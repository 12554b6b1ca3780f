"""The calls of classic members, rule by rule: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Sources: Kafka 4.3's group coordinator as measured, KIP-345 (static members), KIP-394 (a member id
first) and KIP-814 (a static leader that returns need not assign again).
"""

from dataclasses import replace

from ...events.model import Cause, ClassicMember, Why
from ...events.records import ClassicGroup
from ..messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    LeaverReply,
    SyncGroup,
    SyncGroupReply,
)
from ..messages.errors import Error
from .embedded import url_of_worker
from .grants import (
    carry_over,
    grant_assignments,
    is_eager,
    needs_another_round,
    take_over,
    without_grants,
)
from .refusals import refuse_generation, refuse_join, refuse_member, refuse_sync, seat_of
from .rounds import (
    complete_if_all_joined,
    elect_protocol,
    extend_initial_delay,
    join_reply,
    prepare_rebalance,
    rebalance_without,
    remove_member,
)
from .state import Asked, ClassicSeat, RoundPhase, Turn

MOST_PENDING_JOINS = 1_000
"""How many given-out ids that have not joined are remembered; the oldest are forgotten."""


def join(turn: Turn, call: JoinGroup, asked: Asked, fresh: str) -> None:
    """Decide a JoinGroup; `fresh` makes the id of a member that has none."""
    if refused := refuse_join(turn, call):
        _refuse(turn, call, asked, *refused)
        return
    state, known = turn.state, seat_of(turn, call)
    if call.member_id in state.pending_joins and call.instance_id is None:
        del state.pending_joins[call.member_id]
        _add_member(turn, call, asked, call.member_id)
    elif call.member_id:
        error = refuse_member(turn, call.member_id, call.instance_id)
        if error is not None:
            _refuse(turn, call, asked, error)
        else:
            _rejoin(turn, call, asked)
    elif known is not None:
        _replace_static_member(turn, call, asked, known, f"{call.instance_id}-{fresh}")
    elif call.instance_id is None and call.asks_for_id:
        _give_out_id(turn, call, asked, f"{call.client_id}-{fresh}")
    else:
        _add_member(turn, call, asked, f"{call.instance_id or call.client_id}-{fresh}")


def _refuse(turn: Turn, call: JoinGroup, asked: Asked, error: Error, message: str = "") -> None:
    turn.answer(asked, JoinGroupReply(error, call.member_id, message=message))


def _give_out_id(turn: Turn, call: JoinGroup, asked: Asked, member_id: str) -> None:
    """Give a newcomer an id, with which it has to join before a round begins (KIP-394)."""
    pending_joins = turn.state.pending_joins
    if len(pending_joins) >= MOST_PENDING_JOINS:
        del pending_joins[next(iter(pending_joins))]
    pending_joins[member_id] = call.session_timeout_ms
    turn.renewed.append(member_id)
    turn.answer(asked, JoinGroupReply(Error.MEMBER_ID_REQUIRED, member_id))


def _add_member(turn: Turn, call: JoinGroup, asked: Asked, member_id: str) -> None:
    """Add a new member, which is in the group from the next generation on."""
    state = turn.state
    if not state.seats:
        state.protocol_type = call.protocol_type
    state.put(ClassicSeat(_member(call, member_id), joining=asked, is_new=True))
    state.leader = state.leader or member_id
    turn.renewed.append(member_id)
    if state.phase is RoundPhase.PREPARING:
        extend_initial_delay(turn)
        complete_if_all_joined(turn)
    else:
        prepare_rebalance(turn, Cause(Why.MEMBER_JOINED, member_id))


def _member(call: JoinGroup, member_id: str) -> ClassicMember:
    return ClassicMember(
        member_id,
        call.session_timeout_ms,
        call.rebalance_timeout_ms,
        call.protocols,
        call.instance_id,
        call.client_id,
        call.client_host,
        url=url_of_worker(call.protocol_type, call.protocols),
    )


def _rejoin(turn: Turn, call: JoinGroup, asked: Asked) -> None:
    """Let a member rejoin: a round begins if it is the leader, or if its metadata changed."""
    state, seat = turn.state, turn.state.seats[call.member_id]
    turn.renewed.append(call.member_id)
    is_changed = seat.member.protocols != call.protocols
    leads_anew = state.phase is RoundPhase.STABLE and state.leader == call.member_id
    if state.phase is not RoundPhase.PREPARING and not is_changed and not leads_anew:
        told = join_reply(turn, call.member_id)
        turn.answer(asked, told)
        return
    if seat.joining is not None:  # it asks once more, and the earlier request is superseded
        superseded = JoinGroupReply(Error.REBALANCE_IN_PROGRESS, call.member_id)
        turn.answer(seat.joining, superseded)
    member = carry_over(seat.member, _member(call, call.member_id))
    has_stopped = seat.has_stopped or _stops_first(turn, seat)
    state.put(replace(seat, member=member, joining=asked, has_stopped=has_stopped))
    if state.phase is RoundPhase.PREPARING:
        complete_if_all_joined(turn)
    else:
        why = Why.METADATA_CHANGED if is_changed else Why.REBALANCE_REQUESTED
        prepare_rebalance(turn, Cause(why, call.member_id))


def _stops_first(turn: Turn, seat: ClassicSeat) -> bool:
    """Tell whether a member stopped everything before it joined: its protocol is the eager one."""
    return seat.has_assignment and turn.group.classic is not None and is_eager(turn.group.classic)


def _replace_static_member(
    turn: Turn, call: JoinGroup, asked: Asked, old_id: str, member_id: str
) -> None:
    """Give a static member's seat to its new process, and fence the old one (KIP-345).

    No round is needed while the group is stable and would keep its protocol.
    """
    state, old = turn.state, turn.state.seats[old_id]
    remove_member(turn, old_id, Error.FENCED_INSTANCE_ID)
    member = _member(call, member_id)
    state.put(ClassicSeat(member, is_new=old.is_new, is_pending_sync=old.is_pending_sync))
    leads = state.leader == old_id
    state.leader = member_id if leads else state.leader
    turn.renewed.append(member_id)
    last = turn.group.classic
    protocol = elect_protocol(seat.member for seat in state.seats.values())
    if state.phase is RoundPhase.STABLE and last is not None and last.protocol == protocol:
        state.put(replace(state.seats[member_id], member=take_over(last, old.member, member)))
        members = tuple(seat.member for seat in state.seats.values())
        turn.record = replace(last, time_ms=turn.wall_ms, leader=state.leader, members=members)
        told = join_reply(turn, member_id)
        if leads and not call.may_skip_assignment:
            told = replace(told, leader=old_id, members=())  # else it would assign, unasked
        turn.answer(asked, replace(told, skips_assignment=leads and call.may_skip_assignment))
        return
    state.put(replace(state.seats[member_id], joining=asked))
    if state.phase is RoundPhase.PREPARING:
        complete_if_all_joined(turn)
    else:
        prepare_rebalance(turn, Cause(Why.MEMBER_JOINED, member_id))


def sync(turn: Turn, call: SyncGroup, asked: Asked) -> None:
    """Decide a SyncGroup: send the member its assignment, now or once the leader has assigned."""
    state = turn.state
    if refused := refuse_sync(turn, call):
        turn.answer(asked, SyncGroupReply(refused[0], message=refused[1]))
        return
    if state.phase is RoundPhase.PREPARING:
        turn.answer(asked, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
        return
    seat, last = state.seats[call.member_id], turn.generation
    turn.renewed.append(call.member_id)
    if state.phase is RoundPhase.STABLE and last is not None:
        state.put(replace(seat, is_pending_sync=False))
        _send_assignment(turn, last, seat.member, asked)
        return
    if seat.syncing is not None:
        turn.answer(seat.syncing, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
    state.put(replace(seat, syncing=asked, is_pending_sync=False))
    if call.member_id == state.leader:
        _assign(turn, call)


def _assign(turn: Turn, call: SyncGroup) -> None:
    """Take the leader's assignments, and send them to the members that wait for theirs."""
    state, last = turn.state, turn.group.classic
    if last is None:
        return
    state.phase = RoundPhase.STABLE
    seats = state.seats.values()
    have = [without_grants(seat.member) if seat.has_stopped else seat.member for seat in seats]
    granted = grant_assignments(last, have, call.assignments)
    turn.record = replace(last, time_ms=turn.wall_ms, members=granted, is_synced=True)
    for member in granted:
        seat = state.seats[member.member_id]
        state.put(replace(seat, member=member, syncing=None))
        if seat.syncing is not None:
            _send_assignment(turn, last, member, seat.syncing)


def _send_assignment(turn: Turn, last: ClassicGroup, member: ClassicMember, asked: Asked) -> None:
    reply = SyncGroupReply(Error.NONE, last.protocol_type, last.protocol, member.assignment)
    turn.answer(asked, reply)
    turn.renewed.append(member.member_id)
    seat = turn.state.seats[member.member_id]
    turn.state.put(replace(seat, has_assignment=True, has_stopped=False))
    if not turn.state.pending_syncs:
        goes_on = turn.settings.goes_by_grants and needs_another_round(turn.generation)
        turn.state.ends_ms = turn.steady_ms if goes_on else None


def heartbeat(turn: Turn, call: ClassicHeartbeat, asked: Asked) -> None:
    """Decide a Heartbeat: the session starts again, and in a join phase the member is to rejoin."""
    error = refuse_generation(turn, call.member_id, call.instance_id, call.generation)
    if error is None:
        turn.renewed.append(call.member_id)
        is_called = turn.state.phase is RoundPhase.PREPARING
        error = Error.REBALANCE_IN_PROGRESS if is_called else Error.NONE
    seat = turn.state.seats.get(call.member_id)
    has_joined = seat is not None and seat.joining is not None
    turn.answer(asked, ClassicHeartbeatReply(error, has_joined=has_joined))


def leave(turn: Turn, call: LeaveGroup, asked: Asked) -> None:
    """Decide a LeaveGroup: remove all members that it names, with one answer for each."""
    before = len(turn.state.seats)
    told = tuple(
        LeaverReply(each.member_id, each.instance_id, _leave(turn, each)) for each in call.leavers
    )
    if len(turn.state.seats) < before:
        gone = next(each for each in told if each.error is Error.NONE)
        rebalance_without(turn, Cause(Why.MEMBER_LEFT, gone.member_id or str(gone.instance_id)))
    else:
        complete_if_all_joined(turn)
    turn.answer(asked, LeaveGroupReply(Error.NONE, told))


def _leave(turn: Turn, leaver: Leaver) -> Error:
    """Remove a member, which is named by its instance id alone (as operators do) or by its id."""
    state, member_id = turn.state, leaver.member_id
    if not member_id and leaver.instance_id is not None:
        member_id = state.instances.get(leaver.instance_id, "")
    elif state.pending_joins.pop(member_id, None) is not None:
        return Error.NONE
    error = refuse_member(turn, member_id, leaver.instance_id)
    if error is None:
        remove_member(turn, member_id)
    return error or Error.NONE
