"""Seats that outlive a process: static members leave for a while and return (PROTOCOL §8).

`group.instances` maps an instance id (`group.instance.id`) to the member that has its seat. A
member at epoch -2 is away: it runs nothing and holds nothing. It keeps its seat and its share of
the target until it returns (under any member id), a target gives the share to others, or its time
is over. A seat ends earlier when a worker joins under its url, when operators ask for a rebalance
or do not expect it any more, and when its node starts and does not name it any more.
"""

from bisect import bisect_left, bisect_right
from dataclasses import replace
from operator import itemgetter

from ....events.group import NOT_STARTED, Group, Member
from ....events.model import MemberState, Succession
from ....events.records import CurrentAssignment, MemberMetadata
from ...messages.commands import FreeSeat
from ...messages.errors import Error
from ...messages.members import JOIN_EPOCH, TEMPORARY_LEAVE_EPOCH, Heartbeat
from ..state.settings import GroupSettings
from ..state.soft_state import Decision, SoftState
from ..state.workers import removal_of


def ended_by(group: Group, request: Heartbeat) -> list[Member]:
    """Return the seats that end by this join: those of its worker under other instance ids.

    Such a member is away, has the url of the joining worker, and is not the one that returns.
    """
    if not request.url or request.member_epoch != JOIN_EPOCH:
        return []
    taken = seat_of(group, request)
    if taken is not None and not taken.is_away:
        return []
    urls, url_of = group.away_urls, itemgetter(0)
    begin = bisect_left(urls, request.url, key=url_of)
    end = bisect_right(urls, request.url, key=url_of)
    found = (group.members[member_id] for _, member_id in urls[begin:end])
    return [each for each in found if each is not taken]


def seat_of(group: Group, request: Heartbeat) -> Member | None:
    """Return the member whose seat a request is about; None: it has none yet.

    A join with the instance id of a member that is away takes that member's seat.
    """
    member = group.members.get(request.member_id)
    if member is None and request.member_epoch == JOIN_EPOCH and request.instance_id is not None:
        owner = group.instances.get(request.instance_id)
        return None if owner is None else group.members[owner]
    return member


def refuse_instance(group: Group, request: Heartbeat) -> tuple[Error, str] | None:
    """Return why the request may not use its instance id, or None if it may."""
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
    """Refuse a join to the seat of a member that is present, or by a member with another seat."""
    instance_id, member_id = request.instance_id, request.member_id
    if owner is not None and not _may_be_taken(group.members[owner]):
        message = f"instance id {instance_id!r} is in use by {owner}, who keeps it"
        return Error.UNRELEASED_INSTANCE_ID, f"{message}: ask again once it has gone"
    member = group.members.get(member_id)
    if member is not None and (owner is not None or not _may_name_itself(group, member)):
        message = f"{member_id} has a seat of its own: leave it before you join as {instance_id!r}"
        return Error.INVALID_REQUEST, message
    return None


def _may_name_itself(group: Group, member: Member) -> bool:
    """Tell whether a member may take a free instance id: a consumer without one, as at a broker."""
    return group.topics is not None and member.metadata.instance_id is None


def _may_be_taken(seat: Member) -> bool:
    """Tell whether another process may take a seat: if its member is away, or a classic one.

    Classic static members do not say that they leave for a while; their next process takes over at
    once, with new tokens (KIP-345).
    """
    return seat.is_away or seat.metadata.classic is not None


def step_away(current: CurrentAssignment) -> CurrentAssignment:
    """Return a member's assignment once it has left for a while; the same object if it has already.

    It has stopped everything, so it holds nothing: what it had is free for the members that the
    target gives it to. The previous epoch is that of the target which it had when it left.
    """
    is_away = current.member_epoch == TEMPORARY_LEAVE_EPOCH
    if is_away and not current.assigned:
        return current
    left_at = current.previous_epoch if is_away else current.member_epoch
    return CurrentAssignment(
        current.member_id, TEMPORARY_LEAVE_EPOCH, left_at, MemberState.AWAY, {}, {}
    )


def free_seat(group: Group, soft: SoftState, command: FreeSeat, _: int) -> Decision:
    """Release what a member that is away still holds, which an earlier version left it."""
    member = group.members.get(command.member_id)
    if member is None or not member.is_away or not member.current.assigned:
        return Decision(soft)
    return Decision(soft, (step_away(member.current),))


def take_seat(group: Group, away: Member | None, request: Heartbeat) -> Member:
    """Return the member that takes a seat: a new one, or that of a member that is away.

    A member that returns begins at epoch 0 and holds nothing; its next step grants it what the
    target gives its seat.
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
        classic=None,
    )
    return Member(metadata, CurrentAssignment(member_id, 0, 0, MemberState.STABLE, {}, {}))


def takes_over(seat: Member, request: Heartbeat) -> bool:
    """Tell whether a request takes a seat for another process, or for one that was away."""
    return seat.is_away or seat.member_id != request.member_id


def needs_target(group: Group, seat: Member, request: Heartbeat) -> bool:
    """Tell whether a new target is needed when another process takes a seat.

    It is if the seat's member was being removed, since a removal gives its work to others. If that
    member is away, a target is also needed if work is unplaceable, which the new one may be able to
    take; if the join ends other seats, for which work was kept; and if a target of the meantime
    left the seat less than an even share. Nothing else would raise the epoch.
    """
    if removal_of(group, seat) is not None:
        return True
    is_left_over = bool(group.target.unplaceable or ended_by(group, request))
    return seat.is_away and (is_left_over or _is_left_short(group, seat))


def _is_left_short(group: Group, seat: Member) -> bool:
    """Tell whether a target that came while the member was away left it too little.

    A member that is away is given nothing new, so such a target may leave it nothing, or more than
    one resource below an even share. Then its return calls for another target.
    """
    had_target_of = seat.current.previous_epoch
    if not group.configured or not had_target_of < group.assignment_epoch == group.group_epoch:
        return False
    share = len(group.share_of(seat.member_id))
    return not share or share + 1 < len(group.configured) / len(group.members)


def _succession(group: Group, away: Member) -> Succession:
    last = away.metadata.succession
    if last is None:
        return Succession(1, away.member_id, group.assignment_epoch)
    if last.assignment_epoch == group.assignment_epoch:
        return replace(last, returns=last.returns + 1)
    return Succession(last.returns + 1, away.member_id, group.assignment_epoch)


def session_timeout_of(member: Member, settings: GroupSettings) -> int:
    """Return how long the group waits for a word of the member, in milliseconds.

    The group's session timeout may change while members run. A member fences itself by the session
    of its last answer, and says in its requests which that is; its record keeps it. The group waits
    for the longer of that and its own: after the session was shortened, until the member says that
    it uses the shorter one; after it was lengthened, from the first answer with the longer one,
    which is recorded before it is sent. So the group never ends a session before the member does,
    whichever answer is lost and whichever process restarts. A member that is away runs nothing, and
    is waited for as long as lost work would be parked. A classic member has the session that it
    asked for.
    """
    if member.metadata.classic is not None:
        return member.metadata.session_timeout_ms
    session_ms = max(settings.session_timeout_ms, member.metadata.session_timeout_ms)
    return max(session_ms, settings.max_delay_ms) if member.is_away else session_ms
