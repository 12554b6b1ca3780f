"""Seats that outlive a process: static members leave for a while and return (PROTOCOL §8).

`group.instances` tells who sits in the seat of an instance id. A member at epoch -2 is
away: it keeps its seat, its share of the target and what it was assigned, until it returns
(under any member id) or its time is over.
"""

from dataclasses import replace

from ....events.group import NOT_STARTED, Group, Member
from ....events.model import MemberState, Succession
from ....events.records import CurrentAssignment, MemberMetadata
from ...errors import Error
from ...messages.heartbeat import JOIN_EPOCH, TEMPORARY_LEAVE_EPOCH, Heartbeat
from ..desk import Settings


def is_away(member: Member) -> bool:
    """Tell whether the member left for a while and has not returned."""
    return member.current.member_epoch == TEMPORARY_LEAVE_EPOCH


def those_away(group: Group) -> list[Member]:
    """Return the members that left for a while; costs what static seats there are."""
    seated = (group.members[each] for each in group.instances.values())
    return [each for each in seated if is_away(each)]


def seat_of(group: Group, request: Heartbeat) -> Member | None:
    """Return the member in whose seat the request speaks; None asks for a new one.

    A join with the instance id of a member that is away takes that member's seat.
    """
    member = group.members.get(request.member_id)
    if member is None and request.member_epoch == JOIN_EPOCH and request.instance_id is not None:
        owner = group.instances.get(request.instance_id)
        return None if owner is None else group.members[owner]
    return member


def refuse_instance(group: Group, request: Heartbeat) -> tuple[Error, str] | None:
    """Return why the request may not speak for its instance id, or None if it may."""
    instance_id = request.instance_id
    owner = None if instance_id is None else group.instances.get(instance_id)
    if instance_id is None or owner == request.member_id:
        return None
    if request.member_epoch == JOIN_EPOCH:
        return _refuse_join(group, request, owner)
    if owner is None:
        message = f"no member has the instance id {instance_id!r}: join with epoch 0"
        return Error.UNKNOWN_MEMBER_ID, message
    message = f"instance id {instance_id!r} is the seat of {owner}, who keeps it: stop everything"
    return Error.FENCED_INSTANCE_ID, message


def _refuse_join(group: Group, request: Heartbeat, owner: str | None) -> tuple[Error, str] | None:
    """Refuse a join to the seat of another that is not away, or from one seat to the next."""
    instance_id, member_id = request.instance_id, request.member_id
    if owner is not None and not is_away(group.members[owner]):
        message = f"instance id {instance_id!r} is in use by {owner}, who keeps it"
        return Error.UNRELEASED_INSTANCE_ID, f"{message}: ask again once it has gone"
    if member_id in group.members:
        message = f"{member_id} has a seat of its own: leave it before you join as {instance_id!r}"
        return Error.INVALID_REQUEST, message
    return None


def step_away(current: CurrentAssignment) -> CurrentAssignment:
    """Return the member once it left for a while; the same object if it is away already.

    Who leaves has stopped everything, so that what it was asked to give up is free.
    """
    if current.member_epoch == TEMPORARY_LEAVE_EPOCH:
        return current
    return replace(
        current, member_epoch=TEMPORARY_LEAVE_EPOCH, state=MemberState.STABLE, pending={}
    )


def take_seat(group: Group, away: Member | None, request: Heartbeat) -> Member:
    """Return the member that sits down: a newcomer, or who returns to a seat that was kept.

    Who returns has the seat's assignment and begins at epoch 0; its next step grants it
    everything anew.
    """
    member_id, incarnation = request.member_id, request.incarnation
    if away is None:
        joined_epoch = group.group_epoch + 1
        metadata = MemberMetadata(member_id, incarnation, joined_epoch)
        return Member(metadata, replace(NOT_STARTED, member_id=member_id))
    metadata = replace(
        away.metadata,
        member_id=member_id,
        incarnation=incarnation,
        succession=_succession(group, away),
    )
    assigned = away.current.assigned
    return Member(metadata, CurrentAssignment(member_id, 0, 0, MemberState.STABLE, assigned, {}))


def _succession(group: Group, away: Member) -> Succession:
    last = away.metadata.succession
    if last is None:
        return Succession(1, away.member_id, group.assignment_epoch)
    if last.assignment_epoch == group.assignment_epoch:
        return last._replace(returns=last.returns + 1)
    return Succession(last.returns + 1, away.member_id, group.assignment_epoch)


def patience_ms(member: Member, settings: Settings) -> int:
    """Return how long the group waits for a word of the member, in milliseconds.

    The group's session timeout may change while members run. A member fences itself by
    the session it was last told of, and says which that is; its record keeps it. The
    group waits for the longer of that and its own: once shortened, until the member says
    that it goes by the shorter one; once lengthened, from the first answer that says so,
    which is written down before it leaves. So the group never ends a session before the
    member has, whichever answer is lost and whoever restarts. A member that is away runs
    nothing, and is waited for as long as lost work would be parked.
    """
    session_ms = max(settings.session_timeout_ms, member.metadata.session_timeout_ms)
    return max(session_ms, settings.max_delay_ms) if is_away(member) else session_ms
