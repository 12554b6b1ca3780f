"""SyncGroup, Heartbeat and LeaveGroup in a group of the connect type.

A classic member is told to rejoin (REBALANCE_IN_PROGRESS) when it is behind the assignment epoch,
when it has to revoke something, and when everything is free that it waits for. SyncGroup tells it
what it may run. Only its JoinGroup says what it owns.
"""

from collections.abc import Sequence

from ....events.group import Group, Member
from ....events.model import MemberState, Why
from ....events.records import Record
from ...classic.bytes.primitives import UnreadableError, UnwritableError
from ...messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    LeaverReply,
    SyncGroup,
    SyncGroupReply,
)
from ...messages.errors import Error
from ..computing.compute import with_target
from ..members.depart import (
    Departure,
    close_seats,
    depart,
    departure_of_leaver,
    losses,
    silent_departure,
)
from ..state.soft_state import Decision, SoftState, bump
from ..state.workers import removal_of
from .protocol import Translation, assignment_content


def sync(group: Group, soft: SoftState, call: SyncGroup, translation: Translation) -> Decision:
    """Return a classic member's assignment; nothing is written."""
    member = _member(group, call.member_id, call.instance_id, call.generation)
    if isinstance(member, Error):
        return Decision(soft, reply=SyncGroupReply(member))
    classic = member.metadata.classic
    protocol = classic.protocol if classic else ""
    told = translation.protocol_type, protocol
    said = call.protocol_type, call.protocol
    if any(each is not None and each != has for each, has in zip(said, told, strict=True)):
        message = f"the member was told to speak {' '.join(told)}"
        error = Error.INCONSISTENT_GROUP_PROTOCOL
        return Decision(soft, reply=SyncGroupReply(error, message=message))
    is_behind = member.current.member_epoch < group.assignment_epoch
    if is_behind and member.state is not MemberState.UNREVOKED:
        return Decision(soft, reply=SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
    try:
        assignment = translation.assignment(
            protocol, assignment_content(group, member, translation)
        )
    except (UnreadableError, UnwritableError) as error:
        message = f"what {member.member_id} is to run cannot be told in {protocol}: {error}"
        error_code = Error.INCONSISTENT_GROUP_PROTOCOL
        return Decision(soft, reply=SyncGroupReply(error_code, message=message))
    return Decision(soft, reply=SyncGroupReply(Error.NONE, *told, assignment))


def heartbeat(group: Group, soft: SoftState, call: ClassicHeartbeat) -> Decision:
    """Tell a classic member whether it has to rejoin; nothing is written."""
    member = _member(group, call.member_id, call.instance_id, call.generation)
    if isinstance(member, Error):
        return Decision(soft, reply=ClassicHeartbeatReply(member))
    must_rejoin = _must_rejoin(group, member)
    error = Error.REBALANCE_IN_PROGRESS if must_rejoin else Error.NONE
    return Decision(soft, reply=ClassicHeartbeatReply(error))


def _must_rejoin(group: Group, member: Member) -> bool:
    """Tell whether a member has to rejoin to reach its target."""
    current = member.current
    if current.member_epoch < group.assignment_epoch or current.state is MemberState.UNREVOKED:
        return True
    if current.state is not MemberState.UNRELEASED:
        return False
    awaited = group.share_of(member.member_id) - current.assigned.keys()
    return awaited.isdisjoint(group.owner)


def _member(
    group: Group, member_id: str, instance_id: str | None, generation: int
) -> Member | Error:
    """Return the classic member that sent a call, or why the call is refused."""
    owner = None if instance_id is None else group.instances.get(instance_id)
    if owner is not None and owner != member_id:
        return Error.FENCED_INSTANCE_ID
    member = group.members.get(member_id)
    if member is None or member.metadata.classic is None or (instance_id and owner is None):
        return Error.UNKNOWN_MEMBER_ID
    return member if member.current.member_epoch == generation else Error.ILLEGAL_GENERATION


def leave(group: Group, soft: SoftState, call: LeaveGroup, now_ms: int) -> Decision:
    """Remove members, with one epoch bump for all; the answer has a result for each.

    Operators remove a static member by its instance id alone, whichever protocol it speaks, and any
    member of a group of consumers by its member id, as at Kafka's broker.
    """
    gone: dict[str, Member] = {}
    told = [
        LeaverReply(each.member_id, each.instance_id, _leave(group, each, gone))
        for each in call.leavers
    ]
    reply = LeaveGroupReply(Error.NONE, tuple(told))
    if not gone:
        return Decision(soft, reply=reply)
    seats = [*gone.values()]
    records: list[Record] = close_seats(group, seats)
    if len(seats) < len(group.members):
        records += losses(group, soft, _by_themselves(group, soft, call, seats, now_ms), now_ms)
    records.append(bump(group, Why.MEMBER_LEFT, _subject(seats), now_ms))
    return with_target(group, Decision(soft, tuple(records), reply), now_ms)


def _leave(group: Group, leaver: Leaver, gone: dict[str, Member]) -> Error:
    owner = None if leaver.instance_id is None else group.instances.get(leaver.instance_id)
    if leaver.member_id and owner not in {None, leaver.member_id}:
        return Error.FENCED_INSTANCE_ID
    member = group.members.get(leaver.member_id or owner or "")
    is_operators = not leaver.member_id
    is_unknown = leaver.instance_id is not None and owner is None
    if member is None or is_unknown or member.member_id in gone:
        return Error.UNKNOWN_MEMBER_ID
    if member.metadata.classic is None and group.topics is None and not is_operators:
        return Error.UNKNOWN_MEMBER_ID
    gone[member.member_id] = member
    return Error.NONE


def _by_themselves(
    group: Group, soft: SoftState, call: LeaveGroup, seats: Sequence[Member], now_ms: int
) -> list[Departure]:
    """Return the departures of those that leave by themselves and are not being removed."""
    own = {each.member_id for each in call.leavers}
    return [
        departure_of_leaver(group, soft, each, now_ms)
        for each in seats
        if each.member_id in own and removal_of(group, each) is None
    ]


def _subject(seats: Sequence[Member]) -> str:
    first = Departure(seats[0], Why.MEMBER_LEFT).cause.subject
    return first + (f" and {len(seats) - 1} more" if len(seats) > 1 else "")


def expire(group: Group, soft: SoftState, member_id: str, now_ms: int) -> Decision:
    """Remove a classic member that did not rejoin, or did not send SyncGroup, in time.

    Its work is lost, as with an expired session. Nothing happens to one that is gone, or that
    speaks the connect protocol by now.
    """
    member = group.members.get(member_id)
    if member is None or member.metadata.classic is None:
        return Decision(soft)
    departure = silent_departure(group, soft, member, Why.REBALANCE_EXPIRED)
    return with_target(group, depart(group, soft, departure, now_ms), now_ms)
