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
    grant,
    is_eager,
    needs_another_round,
    succeed,
    take_over,
    without_grants,
)
from .refusals import refuse_generation, refuse_join, refuse_member, refuse_sync, seat_of
from .rounds import (
    begin_round,
    complete_if_all_joined,
    elect_protocol,
    go_on_without,
    joined,
    put_off,
    remove,
)
from .state import Asked, ClassicSeat, RoundPhase, Turn

MOST_EXPECTED = 1_000
"""How many ids may be out that nobody has joined with; beyond them the oldest is forgotten."""


def join(turn: Turn, call: JoinGroup, asked: Asked, fresh: str) -> None:
    """Take a member in, or let one join anew; `fresh` makes the id of one that has none."""
    if refused := refuse_join(turn, call):
        _refuse(turn, call, asked, *refused)
        return
    state, known = turn.state, seat_of(turn, call)
    if call.member_id in state.expected and call.instance_id is None:
        del state.expected[call.member_id]
        _add(turn, call, asked, call.member_id)
    elif call.member_id:
        error = refuse_member(turn, call.member_id, call.instance_id)
        if error is not None:
            _refuse(turn, call, asked, error)
        else:
            _rejoin(turn, call, asked)
    elif known is not None:
        _replace(turn, call, asked, known, f"{call.instance_id}-{fresh}")
    elif call.instance_id is None and call.asks_for_id:
        _expect(turn, call, asked, f"{call.client_id}-{fresh}")
    else:
        _add(turn, call, asked, f"{call.instance_id or call.client_id}-{fresh}")


def _refuse(turn: Turn, call: JoinGroup, asked: Asked, error: Error, message: str = "") -> None:
    turn.answer(asked, JoinGroupReply(error, call.member_id, message=message))


def _expect(turn: Turn, call: JoinGroup, asked: Asked, member_id: str) -> None:
    """Tell a newcomer its id: nothing begins before it joins with that (KIP-394)."""
    expected = turn.state.expected
    if len(expected) >= MOST_EXPECTED:
        del expected[next(iter(expected))]
    expected[member_id] = call.session_timeout_ms
    turn.heard.append(member_id)
    turn.answer(asked, JoinGroupReply(Error.MEMBER_ID_REQUIRED, member_id))


def _add(turn: Turn, call: JoinGroup, asked: Asked, member_id: str) -> None:
    """Take in a newcomer: it is in the group from the next generation on."""
    state = turn.state
    if not state.seats:
        state.protocol_type = call.protocol_type
    state.put(ClassicSeat(_member(call, member_id), joining=asked, is_new=True))
    state.leader = state.leader or member_id
    turn.heard.append(member_id)
    if state.phase is RoundPhase.PREPARING:
        put_off(turn)
        complete_if_all_joined(turn)
    else:
        begin_round(turn, Cause(Why.MEMBER_JOINED, member_id))


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
    """Let a member join anew: that calls for another round if it leads, or says something new."""
    state, seat = turn.state, turn.state.seats[call.member_id]
    turn.heard.append(call.member_id)
    is_changed = seat.member.protocols != call.protocols
    leads_anew = state.phase is RoundPhase.STABLE and state.leader == call.member_id
    if state.phase is not RoundPhase.PREPARING and not is_changed and not leads_anew:
        told = joined(turn, call.member_id)
        turn.answer(asked, told)
        return
    if seat.joining is not None:  # it asks once more: whoever waits no longer counts
        superseded = JoinGroupReply(Error.REBALANCE_IN_PROGRESS, call.member_id)
        turn.answer(seat.joining, superseded)
    member = succeed(seat.member, _member(call, call.member_id))
    has_stopped = seat.has_stopped or _stops_first(turn, seat)
    state.put(replace(seat, member=member, joining=asked, has_stopped=has_stopped))
    if state.phase is RoundPhase.PREPARING:
        complete_if_all_joined(turn)
    else:
        why = Why.METADATA_CHANGED if is_changed else Why.REBALANCE_REQUESTED
        begin_round(turn, Cause(why, call.member_id))


def _stops_first(turn: Turn, seat: ClassicSeat) -> bool:
    """Tell whether a member has stopped all it had before it joined: it knows that all have to."""
    return seat.has_heard and turn.group.classic is not None and is_eager(turn.group.classic)


def _replace(turn: Turn, call: JoinGroup, asked: Asked, old_id: str, member_id: str) -> None:
    """Give a static seat to the process that is there now; the one before is fenced (KIP-345).

    While the group is stable and would speak the same protocol, no round is needed.
    """
    state, old = turn.state, turn.state.seats[old_id]
    remove(turn, old_id, Error.FENCED_INSTANCE_ID)
    member = _member(call, member_id)
    state.put(ClassicSeat(member, is_new=old.is_new, owes_sync=old.owes_sync))
    leads = state.leader == old_id
    state.leader = member_id if leads else state.leader
    turn.heard.append(member_id)
    last = turn.group.classic
    protocol = elect_protocol(seat.member for seat in state.seats.values())
    if state.phase is RoundPhase.STABLE and last is not None and last.protocol == protocol:
        state.put(replace(state.seats[member_id], member=take_over(last, old.member, member)))
        members = tuple(seat.member for seat in state.seats.values())
        turn.record = replace(last, time_ms=turn.wall_ms, leader=state.leader, members=members)
        told = joined(turn, member_id)
        if leads and not call.may_skip_assignment:
            told = replace(told, leader=old_id, members=())  # else it would assign, unasked
        turn.answer(asked, replace(told, skips_assignment=leads and call.may_skip_assignment))
        return
    state.put(replace(state.seats[member_id], joining=asked))
    if state.phase is RoundPhase.PREPARING:
        complete_if_all_joined(turn)
    else:
        begin_round(turn, Cause(Why.MEMBER_JOINED, member_id))


def sync(turn: Turn, call: SyncGroup, asked: Asked) -> None:
    """Give a member its assignment, or have it wait until the leader has brought them."""
    state = turn.state
    if refused := refuse_sync(turn, call):
        turn.answer(asked, SyncGroupReply(refused[0], message=refused[1]))
        return
    if state.phase is RoundPhase.PREPARING:
        turn.answer(asked, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
        return
    seat, last = state.seats[call.member_id], turn.generation
    turn.heard.append(call.member_id)
    if state.phase is RoundPhase.STABLE and last is not None:
        state.put(replace(seat, owes_sync=False))
        _hand_over(turn, last, seat.member, asked)
        return
    if seat.syncing is not None:
        turn.answer(seat.syncing, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
    state.put(replace(seat, syncing=asked, owes_sync=False))
    if call.member_id == state.leader:
        _assign(turn, call)


def _assign(turn: Turn, call: SyncGroup) -> None:
    """Take the leader's assignments, and hand them to all who wait; whom it left out has none."""
    state, last = turn.state, turn.group.classic
    if last is None:
        return
    state.phase = RoundPhase.STABLE
    seats = state.seats.values()
    have = [without_grants(seat.member) if seat.has_stopped else seat.member for seat in seats]
    granted = grant(last, have, call.assignments)
    turn.record = replace(last, time_ms=turn.wall_ms, members=granted, is_synced=True)
    for member in granted:
        seat = state.seats[member.member_id]
        state.put(replace(seat, member=member, syncing=None))
        if seat.syncing is not None:
            _hand_over(turn, last, member, seat.syncing)


def _hand_over(turn: Turn, last: ClassicGroup, member: ClassicMember, asked: Asked) -> None:
    reply = SyncGroupReply(Error.NONE, last.protocol_type, last.protocol, member.assignment)
    turn.answer(asked, reply)
    turn.heard.append(member.member_id)
    seat = turn.state.seats[member.member_id]
    turn.state.put(replace(seat, has_heard=True, has_stopped=False))
    if not turn.state.debtors:
        goes_on = turn.settings.goes_by_grants and needs_another_round(turn.generation)
        turn.state.ends_ms = turn.steady_ms if goes_on else None


def heartbeat(turn: Turn, call: ClassicHeartbeat, asked: Asked) -> None:
    """Hear a member; while a round begins it is told to join anew."""
    error = refuse_generation(turn, call.member_id, call.instance_id, call.generation)
    if error is None:
        turn.heard.append(call.member_id)
        is_called = turn.state.phase is RoundPhase.PREPARING
        error = Error.REBALANCE_IN_PROGRESS if is_called else Error.NONE
    seat = turn.state.seats.get(call.member_id)
    has_joined = seat is not None and seat.joining is not None
    turn.answer(asked, ClassicHeartbeatReply(error, has_joined=has_joined))


def leave(turn: Turn, call: LeaveGroup, asked: Asked) -> None:
    """Let members leave for good, all in one; the answer tells of each."""
    before = len(turn.state.seats)
    told = tuple(
        LeaverReply(each.member_id, each.instance_id, _leave(turn, each)) for each in call.leavers
    )
    if len(turn.state.seats) < before:
        gone = next(each for each in told if each.error is Error.NONE)
        go_on_without(turn, Cause(Why.MEMBER_LEFT, gone.member_id or str(gone.instance_id)))
    else:
        complete_if_all_joined(turn)
    turn.answer(asked, LeaveGroupReply(Error.NONE, told))


def _leave(turn: Turn, leaver: Leaver) -> Error:
    """End a seat: by its instance id alone, as operators do, or by who sits in it."""
    state, member_id = turn.state, leaver.member_id
    if not member_id and leaver.instance_id is not None:
        member_id = state.instances.get(leaver.instance_id, "")
    elif leaver.instance_id is None and state.expected.pop(member_id, None) is not None:
        return Error.NONE
    error = refuse_member(turn, member_id, leaver.instance_id)
    if error is None:
        remove(turn, member_id)
    return error or Error.NONE
