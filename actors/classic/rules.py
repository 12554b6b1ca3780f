"""The rules of a classic group: its members' calls, and the rounds (rebalances) that they lead to.

A call is JoinGroup, SyncGroup, Heartbeat or LeaveGroup. Each reads a `ClassicDraft`, and writes
there what it leads to: the next soft state, a record, answers. `state` has the phases of a round;
here is how each begins, and how it ends.

* A round begins when a member joins, rejoins with other metadata, leaves, or is lost. All members
  are to rejoin, each by the answer to its next heartbeat.
* Its join phase ends with a generation, once all members have joined or its time is over. Each
  generation has one leader, and its number is one more than any epoch that the group ever had. It
  is written before any member learns of it.
* The leader's SyncGroup brings the assignments; with these the members are answered.

Sources: Kafka 4.3's group coordinator as measured, KIP-134 (the initial delay), KIP-345 (static
members), KIP-394 (a member id first) and KIP-814 (a static leader that returns need not assign
again).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ...events.model import Cause, ClassicMember, Why
from ...events.records import ClassicGroup
from ..messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    JoinedMember,
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
from .state import ClassicDraft, ClassicSeat, PendingCall, RoundPhase, longest_rebalance_ms

MOST_PENDING_JOINS = 1_000
"""How many given-out ids that have not joined are remembered; the oldest are forgotten."""


def join(draft: ClassicDraft, call: JoinGroup, caller: PendingCall, fresh: str) -> None:
    """Decide a JoinGroup; `fresh` makes the id of a member that has none."""
    if refused := refuse_join(draft, call):
        _refuse(draft, call, caller, *refused)
        return
    state, seated_id = draft.state, seat_of(draft, call)
    if call.member_id in state.pending_joins and call.instance_id is None:
        del state.pending_joins[call.member_id]
        _add_member(draft, call, caller, call.member_id)
    elif call.member_id:
        error = refuse_member(draft, call.member_id, call.instance_id)
        if error is not None:
            _refuse(draft, call, caller, error)
        else:
            _rejoin(draft, call, caller)
    elif seated_id is not None:
        _replace_static_member(draft, call, caller, seated_id, f"{call.instance_id}-{fresh}")
    elif call.instance_id is None and call.asks_for_id:
        _give_out_id(draft, call, caller, f"{call.client_id}-{fresh}")
    else:
        _add_member(draft, call, caller, f"{call.instance_id or call.client_id}-{fresh}")


def _refuse(
    draft: ClassicDraft, call: JoinGroup, caller: PendingCall, error: Error, message: str = ""
) -> None:
    draft.answer(caller, JoinGroupReply(error, call.member_id, message=message))


def _give_out_id(draft: ClassicDraft, call: JoinGroup, caller: PendingCall, member_id: str) -> None:
    """Assign a newcomer a member id, with which it must join before a round begins (KIP-394)."""
    pending_joins = draft.state.pending_joins
    if len(pending_joins) >= MOST_PENDING_JOINS:
        del pending_joins[next(iter(pending_joins))]
    pending_joins[member_id] = call.session_timeout_ms
    draft.renewed.append(member_id)
    draft.answer(caller, JoinGroupReply(Error.MEMBER_ID_REQUIRED, member_id))


def _add_member(draft: ClassicDraft, call: JoinGroup, caller: PendingCall, member_id: str) -> None:
    """Add a new member, which is in the group from the next generation on."""
    state = draft.state
    if not state.seats:
        state.protocol_type = call.protocol_type
    state.put(ClassicSeat(_member(call, member_id), joining=caller, is_new=True))
    state.leader = state.leader or member_id
    draft.renewed.append(member_id)
    if state.phase is RoundPhase.PREPARING:
        extend_initial_delay(draft)
        complete_if_all_joined(draft)
    else:
        prepare_rebalance(draft, Cause(Why.MEMBER_JOINED, member_id))


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


def _rejoin(draft: ClassicDraft, call: JoinGroup, caller: PendingCall) -> None:
    """Add a member to the round again; it begins one if it leads, or if its metadata changed."""
    state, seat = draft.state, draft.state.seats[call.member_id]
    draft.renewed.append(call.member_id)
    is_changed = seat.member.protocols != call.protocols
    leads_anew = state.phase is RoundPhase.STABLE and state.leader == call.member_id
    if state.phase is not RoundPhase.PREPARING and not is_changed and not leads_anew:
        draft.answer(caller, join_reply(draft, call.member_id))
        return
    if seat.joining is not None:  # it asks once more, and the earlier request is superseded
        superseded = JoinGroupReply(Error.REBALANCE_IN_PROGRESS, call.member_id)
        draft.answer(seat.joining, superseded)
    member = carry_over(seat.member, _member(call, call.member_id))
    has_stopped = seat.has_stopped or _stops_first(draft, seat)
    state.put(replace(seat, member=member, joining=caller, has_stopped=has_stopped))
    if state.phase is RoundPhase.PREPARING:
        complete_if_all_joined(draft)
    else:
        why = Why.METADATA_CHANGED if is_changed else Why.REBALANCE_REQUESTED
        prepare_rebalance(draft, Cause(why, call.member_id))


def _stops_first(draft: ClassicDraft, seat: ClassicSeat) -> bool:
    """Return whether a member stopped everything before it joined: its protocol is eager."""
    return seat.has_assignment and draft.group.classic is not None and is_eager(draft.group.classic)


def _replace_static_member(
    draft: ClassicDraft, call: JoinGroup, caller: PendingCall, old_id: str, member_id: str
) -> None:
    """Give a static member's seat to its new process, and fence the old one (KIP-345).

    No round is needed while the group is stable and would keep its protocol.
    """
    state, old = draft.state, draft.state.seats[old_id]
    remove_member(draft, old_id, Error.FENCED_INSTANCE_ID)
    member = _member(call, member_id)
    state.put(ClassicSeat(member, is_new=old.is_new, is_pending_sync=old.is_pending_sync))
    leads = state.leader == old_id
    state.leader = member_id if leads else state.leader
    draft.renewed.append(member_id)
    last = draft.group.classic
    protocol = elect_protocol(seat.member for seat in state.seats.values())
    if state.phase is RoundPhase.STABLE and last is not None and last.protocol == protocol:
        state.put(replace(state.seats[member_id], member=take_over(last, old.member, member)))
        members = tuple(seat.member for seat in state.seats.values())
        draft.record = replace(
            last, time_ms=draft.now.wall_ms, leader=state.leader, members=members
        )
        reply = join_reply(draft, member_id)
        if leads and not call.may_skip_assignment:
            reply = replace(reply, leader=old_id, members=())  # else it would assign, unasked
        draft.answer(caller, replace(reply, skips_assignment=leads and call.may_skip_assignment))
        return
    state.put(replace(state.seats[member_id], joining=caller))
    if state.phase is RoundPhase.PREPARING:
        complete_if_all_joined(draft)
    else:
        prepare_rebalance(draft, Cause(Why.MEMBER_JOINED, member_id))


def sync(draft: ClassicDraft, call: SyncGroup, caller: PendingCall) -> None:
    """Decide a SyncGroup: send the member its assignment, now or once the leader has assigned."""
    state = draft.state
    if refused := refuse_sync(draft, call):
        draft.answer(caller, SyncGroupReply(refused[0], message=refused[1]))
        return
    if state.phase is RoundPhase.PREPARING:
        draft.answer(caller, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
        return
    seat, last = state.seats[call.member_id], draft.generation
    draft.renewed.append(call.member_id)
    if state.phase is RoundPhase.STABLE and last is not None:
        state.put(replace(seat, is_pending_sync=False))
        _send_assignment(draft, last, seat.member, caller)
        return
    if seat.syncing is not None:
        draft.answer(seat.syncing, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
    state.put(replace(seat, syncing=caller, is_pending_sync=False))
    if call.member_id == state.leader:
        _assign(draft, call)


def _assign(draft: ClassicDraft, call: SyncGroup) -> None:
    """Record the leader's assignments, and send them to the members that wait for theirs."""
    state, last = draft.state, draft.group.classic
    if last is None:
        return
    state.phase = RoundPhase.STABLE
    seats = state.seats.values()
    have = [without_grants(seat.member) if seat.has_stopped else seat.member for seat in seats]
    granted = grant_assignments(last, have, call.assignments)
    draft.record = replace(last, time_ms=draft.now.wall_ms, members=granted, is_synced=True)
    for member in granted:
        seat = state.seats[member.member_id]
        state.put(replace(seat, member=member, syncing=None))
        if seat.syncing is not None:
            _send_assignment(draft, last, member, seat.syncing)


def _send_assignment(
    draft: ClassicDraft, last: ClassicGroup, member: ClassicMember, caller: PendingCall
) -> None:
    reply = SyncGroupReply(Error.NONE, last.protocol_type, last.protocol, member.assignment)
    draft.answer(caller, reply)
    draft.renewed.append(member.member_id)
    seat = draft.state.seats[member.member_id]
    draft.state.put(replace(seat, has_assignment=True, has_stopped=False))
    if not draft.state.pending_syncs:
        goes_on = draft.settings.grants_from_log and needs_another_round(draft.generation)
        draft.state.ends_ms = draft.now.steady_ms if goes_on else None


def heartbeat(draft: ClassicDraft, call: ClassicHeartbeat, caller: PendingCall) -> None:
    """Decide a Heartbeat: the session starts again, and in a join phase the member is to rejoin."""
    error = refuse_generation(draft, call.member_id, call.instance_id, call.generation)
    if error is None:
        draft.renewed.append(call.member_id)
        is_called = draft.state.phase is RoundPhase.PREPARING
        error = Error.REBALANCE_IN_PROGRESS if is_called else Error.NONE
    seat = draft.state.seats.get(call.member_id)
    has_joined = seat is not None and seat.joining is not None
    draft.answer(caller, ClassicHeartbeatReply(error, has_joined=has_joined))


def leave(draft: ClassicDraft, call: LeaveGroup, caller: PendingCall) -> None:
    """Decide a LeaveGroup: remove all members that it names, with one answer for each."""
    before = len(draft.state.seats)
    results = tuple(
        LeaverReply(each.member_id, each.instance_id, _leave(draft, each)) for each in call.leavers
    )
    if len(draft.state.seats) < before:
        gone = next(each for each in results if each.error is Error.NONE)
        rebalance_without(draft, Cause(Why.MEMBER_LEFT, gone.member_id or str(gone.instance_id)))
    else:
        complete_if_all_joined(draft)
    draft.answer(caller, LeaveGroupReply(Error.NONE, results))


def _leave(draft: ClassicDraft, leaver: Leaver) -> Error:
    """Remove a member, which is named by its instance id alone (as operators do) or by its id."""
    state, member_id = draft.state, leaver.member_id
    if not member_id and leaver.instance_id is not None:
        member_id = state.instances.get(leaver.instance_id, "")
    elif state.pending_joins.pop(member_id, None) is not None:
        return Error.NONE
    error = refuse_member(draft, member_id, leaver.instance_id)
    if error is None:
        remove_member(draft, member_id)
    return error or Error.NONE


# -- rounds


def prepare_rebalance(draft: ClassicDraft, cause: Cause) -> None:
    """Begin a round: all members are to rejoin (PreparingRebalance).

    Those that wait for their assignment get that answer now, others with their next heartbeat.
    """
    state, was = draft.state, draft.state.phase
    for seat in [each for each in state.seats.values() if each.syncing or each.is_pending_sync]:
        if seat.syncing:
            draft.answer(seat.syncing, SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
        state.put(replace(seat, syncing=None, is_pending_sync=False))
    state.phase, state.cause, state.delay_limit_ms = RoundPhase.PREPARING, cause, None
    longest_ms = longest_rebalance_ms(state)
    state.ends_ms = draft.now.steady_ms + longest_ms
    delay_ms = draft.settings.initial_delay_ms
    if was is RoundPhase.EMPTY and not delay_ms:
        complete_join(draft)  # without waiting for ids that were given out: nothing has to stop
    elif was is RoundPhase.EMPTY:
        state.delay_limit_ms = draft.now.steady_ms + max(longest_ms, delay_ms)
        extend_initial_delay(draft)
    else:
        complete_if_all_joined(draft)


def extend_initial_delay(draft: ClassicDraft) -> None:
    """Extend the initial delay, counted from now; only a first round has one (KIP-134)."""
    state = draft.state
    if state.delay_limit_ms is not None:
        until_ms = draft.now.steady_ms + draft.settings.initial_delay_ms
        state.ends_ms = min(until_ms, state.delay_limit_ms)


def complete_if_all_joined(draft: ClassicDraft) -> None:
    """End the join phase if all members have joined."""
    state = draft.state
    is_waiting = state.joined < len(state.seats) or bool(state.pending_joins)
    if state.phase is RoundPhase.PREPARING and state.delay_limit_ms is None and not is_waiting:
        complete_join(draft)


def complete_join(draft: ClassicDraft) -> None:
    """End the join phase: a generation of the members that have joined, and of static members.

    A static member may be away for a session. While only such members are left, the group waits for
    one of them.
    """
    state = draft.state
    for seat in [*state.seats.values()]:
        if seat.joining is None and seat.member.instance_id is None:
            state.drop(seat.member_id)
    state.delay_limit_ms = None
    if state.seats and not _elect_leader(draft):
        state.ends_ms = draft.now.steady_ms + longest_rebalance_ms(state)
        return
    _begin_generation(draft)
    for seat in [*state.seats.values()]:
        if seat.joining is not None:
            draft.answer(seat.joining, join_reply(draft, seat.member_id))
            draft.renewed.append(seat.member_id)
        begins = replace(
            seat, joining=None, is_new=False, is_pending_sync=True, has_assignment=False
        )
        state.put(begins)
    state.ends_ms = draft.now.steady_ms + longest_rebalance_ms(state) if state.seats else None


def _elect_leader(draft: ClassicDraft) -> bool:
    """Choose a leader that has joined, the last one if it has; False: no member has joined."""
    state = draft.state
    leader = state.seats.get(state.leader)
    if leader is None or leader.joining is None:
        here = (seat.member_id for seat in state.seats.values() if seat.joining is not None)
        state.leader = next(here, "")
    return bool(state.leader)


def _begin_generation(draft: ClassicDraft) -> None:
    state = draft.state
    state.phase = RoundPhase.COMPLETING if state.seats else RoundPhase.EMPTY
    state.leader = state.leader if state.seats else ""
    draft.record = ClassicGroup(
        draft.group.group_epoch + 1,
        state.cause,
        draft.now.wall_ms,
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


def join_reply(draft: ClassicDraft, member_id: str) -> JoinGroupReply:
    """Return the answer to a member's JoinGroup; the leader's has the metadata of all members.

    Raises ValueError if there is no generation.
    """
    last = draft.generation
    if last is None or last.protocol is None:
        raise ValueError(f"{member_id} is to be told of a generation, and there is none")
    return JoinGroupReply(
        Error.NONE,
        member_id,
        last.generation,
        last.protocol_type,
        last.protocol,
        last.leader,
        _members(draft, last.protocol) if last.leader == member_id else (),
    )


def _members(draft: ClassicDraft, protocol: str) -> tuple[JoinedMember, ...]:
    return tuple(
        JoinedMember(seat.member_id, seat.member.instance_id, _metadata(seat, protocol))
        for seat in draft.state.seats.values()
    )


def _metadata(seat: ClassicSeat, protocol: str) -> bytes:
    return next(each.metadata for each in seat.member.protocols if each.name == protocol)


def end_member(draft: ClassicDraft, member_id: str) -> None:
    """Remove a dynamic member whose process has ended; a static one waits for its next process."""
    seat = draft.state.seats.get(member_id)
    if seat is not None and seat.member.instance_id is None:
        remove_member(draft, member_id)
        rebalance_without(draft, Cause(Why.PROCESS_ENDED, member_id))


def remove_member(
    draft: ClassicDraft, member_id: str, error: Error = Error.UNKNOWN_MEMBER_ID
) -> None:
    """Remove a member, and answer its waiting calls with this error."""
    seat = draft.state.seats[member_id]
    draft.state.drop(member_id)
    if seat.joining is not None:
        draft.answer(seat.joining, JoinGroupReply(error, member_id))
    if seat.syncing is not None:
        draft.answer(seat.syncing, SyncGroupReply(error))


def rebalance_without(draft: ClassicDraft, cause: Cause) -> None:
    """Continue after members were removed: begin a round, or end the join phase if it can end."""
    if draft.state.phase in {RoundPhase.COMPLETING, RoundPhase.STABLE}:
        prepare_rebalance(draft, cause)
    else:
        complete_if_all_joined(draft)


def end_phase(draft: ClassicDraft) -> None:
    """End a phase whose time is up: the join phase, or that of members that did not sync."""
    state = draft.state
    if state.phase is RoundPhase.PREPARING:
        complete_join(draft)
        return
    state.ends_ms = None
    late = [seat.member_id for seat in state.seats.values() if seat.is_pending_sync]
    for member_id in late:
        remove_member(draft, member_id)
    if late:
        rebalance_without(draft, Cause(Why.REBALANCE_EXPIRED, late[0]))
    elif draft.settings.grants_from_log and needs_another_round(draft.generation):
        prepare_rebalance(draft, Cause(Why.REBALANCE_REQUESTED, state.leader))


def expire_member(draft: ClassicDraft, member_id: str) -> None:
    """Remove a member id whose session expired: of a silent member, or never used to join.

    A member that waits for an answer is not silent, but a newcomer does not wait for ever.
    """
    state = draft.state
    seat = state.seats.get(member_id)
    if seat is None:
        if state.pending_joins.pop(member_id, None) is not None:
            complete_if_all_joined(draft)
    elif seat.syncing is not None or (seat.joining is not None and not seat.is_new):
        draft.renewed.append(member_id)
    else:
        remove_member(draft, member_id)
        rebalance_without(draft, Cause(Why.SESSION_EXPIRED, member_id))
