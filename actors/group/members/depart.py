"""A member goes: by itself, by a timer, or because somebody sends it (PROTOCOL §7, §8)."""

from dataclasses import dataclass, replace

from ....events.group import NO_SCHEDULE, Group, Member
from ....events.model import Cause, Why
from ....events.records import (
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    Tombstone,
)
from ...errors import Error
from ...messages.heartbeat import TEMPORARY_LEAVE_EPOCH, Heartbeat, HeartbeatReply
from ..desk import Decision, Desk
from ..orders.standing import carried_out, expected_back_ms, shares_deadline
from .seats import step_away


@dataclass(frozen=True, slots=True)
class Departure:
    """Who goes, why, and whether its work counts as lost: only a timer's does."""

    member: Member
    why: Why
    lost: bool = False
    actor: str | None = None

    @property
    def cause(self) -> Cause:
        """Why the group's epoch rises, and why its work is lost where it is."""
        return Cause(self.why, self.member.metadata.url or self.member.member_id)


def leave(group: Group, desk: Desk, request: Heartbeat, now_ms: int) -> Decision:
    """Let a member go that says goodbye; it has released everything, so nothing is lost."""
    member = group.members[request.member_id]
    reply = HeartbeatReply(
        Error.NONE,
        request.member_id,
        request.member_epoch,
        request.incarnation,
        request.sequence,
        log_offset=group.end,
    )
    if request.member_epoch == TEMPORARY_LEAVE_EPOCH:
        return _leave_for_a_while(group, desk, member, reply)
    departure = Departure(member, Why.MEMBER_LEFT)
    return depart(group, desk, departure, now_ms, reply)


def _leave_for_a_while(group: Group, desk: Desk, member: Member, reply: HeartbeatReply) -> Decision:
    """Keep the seat of a static member that says that it comes back; nothing is parked."""
    after = step_away(member.current)
    if after is member.current:
        return Decision(desk, reply=reply)
    reply = replace(reply, log_offset=group.end + 1)
    return Decision(desk, (after,), reply)


def depart(
    group: Group,
    desk: Desk,
    departure: Departure,
    now_ms: int,
    reply: HeartbeatReply | None = None,
) -> Decision:
    """Return the records of a removal, in the protocol's order, and the desk after it."""
    member = departure.member
    member_id = member.member_id
    records: list[Record] = [
        Tombstone(CurrentAssignment, (member_id,)),
        Tombstone(MemberMetadata, (member_id,)),
    ]
    if len(group.members) == 1:
        records += _forget_losses(group)
    elif departure.lost and (loss := _loss(group, desk, departure, now_ms)):
        records.append(loss)
    records += carried_out(group, member)
    epoch = group.group_epoch + 1
    records.append(GroupMetadata(epoch, departure.cause, now_ms, departure.actor))

    if reply is None:
        return Decision(desk, tuple(records))
    return Decision(desk, tuple(records), replace(reply, log_offset=group.end + len(records)))


def _forget_losses(group: Group) -> list[Record]:
    """Park nothing in a group that becomes empty: whoever comes next gets everything."""
    records: list[Record] = [Tombstone(Loss, (member_id,)) for member_id in sorted(group.losses)]
    if group.schedule != NO_SCHEDULE:
        records.append(ScheduledRebalance())
    return records


def _loss(group: Group, desk: Desk, departure: Departure, now_ms: int) -> Loss | None:
    """Return what the member held and was to keep, minus what others hold or target."""
    member = departure.member
    member_id = member.member_id
    resources = frozenset(
        resource
        for resource in member.current.assigned
        if group.heirs.get(resource) == member_id and group.holders.get(resource) == member_id
    )
    if not resources:
        return None
    deadline_ms = expected_back_ms(group, member.metadata, now_ms)
    return Loss(
        member_id,
        member.metadata.instance_id,
        member.metadata.url,
        resources,
        now_ms,
        departure.cause,
        deadline_ms or _crash_deadline(group, desk, now_ms),
    )


def _crash_deadline(group: Group, desk: Desk, now_ms: int) -> int:
    """Return how long lost work may wait; a crash in the wake of another shares its deadline."""
    running = [
        loss.deadline_ms
        for loss in group.losses.values()
        if loss.deadline_ms > now_ms and shares_deadline(group, loss)
    ]
    return min(running, default=now_ms + desk.settings.max_delay_ms)
