"""How a member is removed: it leaves, a timer expires, or an operator asks (PROTOCOL §7, §8)."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ....events.group import NO_SCHEDULE, Group, Member
from ....events.model import Cause, MemberState, Why
from ....events.records import (
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    Tombstone,
)
from ...messages.commands import ExpireRebalance, ExpireSession
from ...messages.errors import Error
from ...messages.members import TEMPORARY_LEAVE_EPOCH, Heartbeat, HeartbeatReply
from ...messages.orders import EndMember
from ..state.soft_state import Decision, SoftState, accept, bump
from ..state.workers import end_removal, expected_back_ms, is_by_order, removal_of
from .seats import step_away


@dataclass(frozen=True, slots=True)
class Departure:
    """The removal of a member: its cause, and whether its work counts as lost and may be parked.

    The cause came about at `since_ms`, wall clock; 0 if that is not known.
    """

    member: Member
    why: Why
    is_loss: bool = False
    principal: str | None = None
    since_ms: int = 0

    @property
    def cause(self) -> Cause:
        """The cause of the new group epoch, and of the loss if there is one."""
        return Cause(self.why, self.member.metadata.worker_url)


def leave(group: Group, soft: SoftState, request: Heartbeat, now_ms: int) -> Decision:
    """Decide a leave: the member has released everything, which may wait for its return."""
    member = group.members[request.member_id]
    reply = HeartbeatReply(
        Error.NONE,
        request.member_id,
        request.member_epoch,
        request.incarnation,
        request.sequence,
        log_offset=group.end,
        coordinator_epoch=soft.coordinator_epoch,
    )
    removed = _by_order(group, member)
    if request.member_epoch == TEMPORARY_LEAVE_EPOCH and removed is None:
        return _leave_for_a_while(group, soft, member, reply)
    departure = removed or departure_of_leaver(group, soft, member, now_ms)
    return depart(group, soft, departure, now_ms, reply)


def departure_of_leaver(group: Group, soft: SoftState, member: Member, now_ms: int) -> Departure:
    """Return the departure of a member that leaves; its work is parked if it may return.

    It comes back under its url, since its member id ends with its process. A static member that
    comes back leaves for a while, so this leave is for good, unless operators expect the worker.
    """
    metadata = member.metadata
    is_waited_for = soft.settings.delay_after_leave_ms > 0
    is_loss = is_waited_for and bool(metadata.url) and metadata.instance_id is None
    is_loss = is_loss or expected_back_ms(group, metadata, now_ms) is not None
    return Departure(member, Why.MEMBER_LEFT, is_loss)


def _leave_for_a_while(
    group: Group, soft: SoftState, member: Member, reply: HeartbeatReply
) -> Decision:
    """Keep the seat of a static member that leaves temporarily (epoch -2); nothing is parked."""
    after = step_away(member.current)
    if after is member.current:
        return Decision(soft, reply=reply)
    reply = replace(reply, log_offset=group.end + 1)
    return Decision(soft, (after,), reply)


def end_member(group: Group, soft: SoftState, command: EndMember, now_ms: int) -> Decision:
    """Remove a member whose process is known to have ended, as a loss, before its session ends.

    The report is about one process: not about a later one of the same member id, nor about a member
    that left before. If it is wrong the member is answered UNKNOWN_MEMBER_ID, and its commits are
    refused by their fencing tokens.
    """
    member = group.members.get(command.member_id)
    if member is None or member.metadata.incarnation != command.incarnation or member.is_away:
        return accept(group, soft, ())
    departure = silent_departure(group, soft, member, Why.PROCESS_ENDED)
    departure = replace(departure, since_ms=command.ended_ms)
    return accept(group, soft, depart(group, soft, departure, now_ms).records)


def expire_session(group: Group, soft: SoftState, command: ExpireSession, now_ms: int) -> Decision:
    """Remove a member whose session expired; its work is lost if it ever had any.

    A member that took the seat since the timer was set has a session of its own.
    """
    member = group.members.get(command.member_id)
    if member is None or command.joined_epoch not in {None, member.metadata.joined_epoch}:
        return Decision(soft)
    since_ms = now_ms - command.silent_ms if command.silent_ms else 0
    departure = silent_departure(group, soft, member, Why.SESSION_EXPIRED, since_ms)
    return depart(group, soft, departure, now_ms)


def expire_rebalance(
    group: Group, soft: SoftState, command: ExpireRebalance, now_ms: int
) -> Decision:
    """Remove a member that did not acknowledge a revocation within its rebalance timeout."""
    member = group.members.get(command.member_id)
    if (
        member is None
        or member.offset != command.offset
        or member.current.state is not MemberState.UNREVOKED
    ):
        return Decision(soft)
    return depart(group, soft, silent_departure(group, soft, member, Why.REBALANCE_EXPIRED), now_ms)


def silent_departure(
    group: Group, soft: SoftState, member: Member, why: Why, since_ms: int = 0
) -> Departure:
    """Return the departure of a member that did not leave: a loss, or a removal by an operator."""
    is_loss = soft.facts.has_acknowledged(member.member_id)
    departure = Departure(member, why, is_loss, since_ms=since_ms)
    return _by_order(group, member) or departure


def _by_order(group: Group, member: Member) -> Departure | None:
    """Return the departure of a member that an operator removes, None if none does.

    It is not expected back, so none of its work is parked.
    """
    order = removal_of(group, member)
    return None if order is None else Departure(member, Why.MEMBER_REMOVED, principal=order.actor)


def depart(
    group: Group,
    soft: SoftState,
    departure: Departure,
    now_ms: int,
    reply: HeartbeatReply | None = None,
) -> Decision:
    """Return the records of a removal, in the protocol's order, and the soft state after it."""
    member = departure.member
    records = tombstones(member)
    if len(group.members) == 1:
        records += _forget_losses(group)
    else:
        records += losses(group, soft, [departure], now_ms)
    records += end_removal(group, member)
    epoch = group.group_epoch + 1
    since_ms = min(departure.since_ms, now_ms)  # clocks may disagree
    records.append(GroupMetadata(epoch, departure.cause, now_ms, departure.principal, since_ms))

    if reply is None:
        return Decision(soft, tuple(records))
    return Decision(soft, tuple(records), replace(reply, log_offset=group.end + len(records)))


def bury(group: Group, seats: Iterable[Member]) -> list[Record]:
    """Return the tombstones of members that lose nothing; the caller adds the epoch bump.

    They left, or are away. The group keeps other members, or gets one by the same records.
    """
    return [record for seat in seats for record in (*tombstones(seat), *end_removal(group, seat))]


def close_seats(group: Group, seats: Sequence[Member]) -> list[Record]:
    """Return the tombstones of members, and those of the group's losses if no member is left."""
    records = bury(group, seats)
    if len(seats) == len(group.members):
        records += _forget_losses(group)
    return records


def end_seats(
    group: Group, soft: SoftState, seats: Sequence[Member], why: Why, now_ms: int
) -> Decision:
    """Return the decision that removes members that are away, with one epoch bump for all."""
    if not seats:
        return Decision(soft)
    records = close_seats(group, seats)
    subject = Departure(seats[0], why).cause.subject
    subject += f" and {len(seats) - 1} more" if len(seats) > 1 else ""
    records.append(bump(group, why, subject, now_ms))
    return accept(group, soft, records)


def losses(
    group: Group, soft: SoftState, departures: Iterable[Departure], now_ms: int
) -> list[Record]:
    """Return the loss records of departed members; consumers have none."""
    lost = (each for each in departures if each.is_loss and group.topics is None)
    found = (_loss(group, soft, each, now_ms) for each in lost)
    return [each for each in found if each is not None]


def tombstones(member: Member) -> list[Record]:
    """Return the tombstones of a member, in the protocol's order."""
    gone = (member.member_id,)
    return [Tombstone(CurrentAssignment, gone), Tombstone(MemberMetadata, gone)]


def _forget_losses(group: Group) -> list[Record]:
    """Return tombstones of all losses of an empty group: the next member gets everything."""
    records: list[Record] = [Tombstone(Loss, (member_id,)) for member_id in sorted(group.losses)]
    if group.schedule != NO_SCHEDULE:
        records.append(ScheduledRebalance())
    return records


def _loss(group: Group, soft: SoftState, departure: Departure, now_ms: int) -> Loss | None:
    """Return the record of the work that the member loses; None if none of it is parked.

    The work of a member that was away has waited already: it is a loss only while operators expect
    the member back. What still waits of an earlier loss of the same member is part of it.
    """
    member = departure.member
    member_id = member.member_id
    deadline_ms = expected_back_ms(group, member.metadata, now_ms)
    resources = frozenset(
        resource
        for resource in member.current.assigned
        if group.target_owner.get(resource) == member_id and group.owner.get(resource) == member_id
    )
    if member.is_away and deadline_ms:
        resources = group.share_of(member_id) - group.owner.keys()
    if not resources:
        return None
    if (stands := group.losses.get(member_id)) is not None:  # this record replaces it
        resources |= stands.resources & group.schedule.parked.keys()
    return Loss(
        member_id,
        member.metadata.instance_id,
        member.metadata.url,
        resources,
        now_ms,
        departure.cause,
        deadline_ms or _deadline(group, soft, departure.why, now_ms),
    )


def _deadline(group: Group, soft: SoftState, why: Why, now_ms: int) -> int:
    """Return the deadline of lost work without an operator's order."""
    if why is Why.MEMBER_LEFT:
        return now_ms + soft.settings.delay_after_leave_ms
    return _crash_deadline(group, soft, now_ms)


def _crash_deadline(group: Group, soft: SoftState, now_ms: int) -> int:
    """Return the deadline of lost work; a crash soon after another shares its deadline.

    It shares none that an operator set, nor that of a worker that left in good order. It never
    waits longer than it would alone: the clock may have been set back in between.
    """
    alone_ms = now_ms + soft.settings.max_delay_ms
    deadlines = group.loss_deadlines  # most of many losses share one, and it comes first
    for index in range(bisect_left(deadlines, (now_ms + 1, "")), len(deadlines)):
        deadline_ms, member_id = deadlines[index]
        if deadline_ms >= alone_ms:
            break
        loss = group.losses[member_id]
        if loss.cause.why is not Why.MEMBER_LEFT and not is_by_order(group, loss):
            return deadline_ms
    return alone_ms
