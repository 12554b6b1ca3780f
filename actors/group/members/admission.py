"""Which heartbeats are refused, and with which errors (PROTOCOL §3, §8)."""

from ....events.group import AssignorRange, Group, Member
from ....events.model import ClientAssignor
from ....events.records import CurrentAssignment, MemberMetadata
from ...assignors.built_in.catalogue import SERVER_ASSIGNORS
from ...messages.commands import Reply
from ...messages.errors import Error
from ...messages.members import JOIN_EPOCH, LEAVE_EPOCH, Heartbeat, HeartbeatReply
from ..computing.elect import Electorate, range_of
from ..state.soft_state import Decision, SoftState
from ..state.validate import LONGEST_NAME, LONGEST_SESSION_MS, flaw, flaw_in_first_join
from .seats import ended_by, refuse_instance

REMEDY = "its seat is kept; stop everything, and rejoin with epoch 0"
"""What a fenced member has to do."""


def refuse(
    group: Group, soft: SoftState, seat: Member | None, request: Heartbeat
) -> tuple[Error, str] | None:
    """Return why the request is refused, or None if it is admitted.

    `seat` is the result of `seats.seat_of`.
    """
    if request.group_id and request.group_id != group.group_id:
        message = f"group {request.group_id!r} is not served here: ask its own coordinator"
        return Error.GROUP_ID_NOT_FOUND, message
    if seat is not None and seat.member_id == request.member_id:
        return _refuse_member(group, soft, seat, request)
    return _refuse_newcomer(group, soft, seat, request)


def refuse_heartbeat(soft: SoftState, request: Heartbeat, error: Error, message: str) -> Decision:
    """Return the decision to change nothing, and to answer with an error."""
    reply = HeartbeatReply(
        error,
        request.member_id,
        request.member_epoch,
        request.incarnation,
        request.sequence,
        message,
        soft.settings.heartbeat_interval_ms,
        coordinator_epoch=soft.coordinator_epoch,
    )
    return Decision(soft, reply=reply)


def refuse_stale(soft: SoftState, request: Heartbeat) -> Reply:
    """Return the answer to a request that was sent to another process of the coordinator."""
    message = (
        "the group's coordinator is another process than this was sent to; nothing was changed"
    )
    advice = f"say everything anew with coordinator epoch {soft.coordinator_epoch}"
    return refuse_heartbeat(soft, request, Error.NOT_COORDINATOR, f"{message}: {advice}").reply


def _refuse_member(
    group: Group, soft: SoftState, member: Member, request: Heartbeat
) -> tuple[Error, str] | None:
    """Refuse a request under the id of a member: of another process, or at another epoch."""
    if found := flaw(request, member.metadata) or _flaw_in_session(soft, request):
        return Error.INVALID_REQUEST, f"{found}; nothing was changed"
    if refused := refuse_instance(group, request):
        return refused
    leaves = request.member_epoch < JOIN_EPOCH
    is_removal = group.topics is not None and request.member_epoch == LEAVE_EPOCH  # as at a broker
    if member.metadata.classic is not None and leaves and not is_removal:
        message = f"{request.member_id} is a classic member, and leaves by LeaveGroup"
        return Error.UNKNOWN_MEMBER_ID, message
    returns = member.is_away and request.member_epoch == JOIN_EPOCH
    becomes_modern = member.metadata.classic is not None and request.member_epoch >= JOIN_EPOCH
    is_another = request.incarnation != member.metadata.incarnation
    if is_another and not returns and not becomes_modern:
        taken = f"{request.member_id} is the seat of another process, which keeps it"
        message = f"{taken}: join under a member id of your own"
        return Error.UNRELEASED_INSTANCE_ID, message
    if found := _flaw_in_epoch(member.current, request) or _flaw_in_owned(
        group, member.current, request
    ):
        return Error.FENCED_MEMBER_EPOCH, found
    return _refuse_assignors(group, request, member)


def _refuse_newcomer(
    group: Group, soft: SoftState, seat: Member | None, request: Heartbeat
) -> tuple[Error, str] | None:
    """Refuse a request of a process that is no member, unless it joins or takes a seat back."""
    is_join = request.member_epoch == JOIN_EPOCH
    found = flaw(request) or (flaw_in_first_join(request) if is_join else "")
    if found := found or _flaw_in_session(soft, request):
        return Error.INVALID_REQUEST, f"{found}; nothing was changed"
    if not is_join:
        return _refuse_non_member(group, request)
    if refused := refuse_instance(group, request):
        return refused
    if seat is not None:  # a return by the instance id is weighed as the seat it takes
        return _refuse_assignors(group, request, seat)
    if len(group.members) - len(ended_by(group, request)) >= soft.settings.max_size:
        full = f"the group has as many members as group.max.size = {soft.settings.max_size} allows"
        message = f"{full}: raise it, or ask again once one has left"
        return Error.GROUP_MAX_SIZE_REACHED, message
    return _refuse_assignors(group, request, None)


def _flaw_in_session(soft: SoftState, request: Heartbeat) -> str:
    """Return that the member's session is longer than the group would wait, or nothing."""
    if request.session_timeout_ms <= LONGEST_SESSION_MS:
        return ""
    own_ms = max(each.session_timeout_ms for each in (soft.settings, soft.node) if each)
    longest_ms = max(LONGEST_SESSION_MS, own_ms)
    if request.session_timeout_ms <= own_ms:
        return ""
    return f"SessionTimeoutMs is {request.session_timeout_ms}: it may be {longest_ms} at most"


def _refuse_non_member(group: Group, request: Heartbeat) -> tuple[Error, str]:
    if not group.exists:
        message = f"there is no group {request.group_id!r}: join it with epoch 0"
        return Error.GROUP_ID_NOT_FOUND, message
    message = f"{request.member_id} is no member: stop everything, and join with epoch 0"
    return refuse_instance(group, request) or (Error.UNKNOWN_MEMBER_ID, message)


def _flaw_in_epoch(current: CurrentAssignment, request: Heartbeat) -> str:
    """Return why the member epoch is fenced, or nothing (PROTOCOL §3, Epoch check).

    The previous epoch is accepted together with an owned list within *assigned*: the answer with
    the current one was lost, and nothing of it was started. A leave and a repeated join pass. A
    member that left for a while has stopped everything: only a join brings it back.
    """
    epoch = request.member_epoch
    if epoch <= JOIN_EPOCH or epoch == current.member_epoch:
        return ""
    if current.member_epoch < JOIN_EPOCH:
        return f"{current.member_id} left for a while, and its seat is kept: rejoin with epoch 0"
    if epoch == current.previous_epoch and request.owned is not None:
        if current.assigned.keys() >= set(request.owned):
            return ""
        return f"at the previous epoch, {epoch}, owned holds what is not assigned: {REMEDY}"
    return f"epoch {epoch} is not the member's {current.member_epoch}: {REMEDY}"


def _flaw_in_owned(group: Group, current: CurrentAssignment, request: Heartbeat) -> str:
    """Return what the request names as owned and the member may not own, or nothing.

    A member owns at most what it holds: it starts nothing before an answer has granted it, and
    answers leave after their records are durable. What it owns beyond that may run at another
    member, or will once it is granted to one. Only what nobody holds and the target gives to this
    very member does no harm.
    """
    if not request.owned or group.topics is not None:  # Kafka asks it of no consumer
        return ""
    share = group.share_of(current.member_id)
    beyond = set(request.owned) - current.assigned.keys() - current.pending.keys()
    for resource in sorted(beyond):
        holder = group.owner.get(resource)
        if holder is not None:
            return f"owned holds {resource}, which is held by {holder}: {REMEDY}"
        if resource not in share:
            return f"owned holds {resource}, which is not to run there: {REMEDY}"
    return ""


def _refuse_assignors(
    group: Group, request: Heartbeat, seat: Member | None
) -> tuple[Error, str] | None:
    """Refuse assignors with which no member could compute for all (PROTOCOL §6).

    A member either lists the assignors that it can run itself, or names one that the coordinator is
    to run. A list that was accepted is not checked again while the member is present: others may
    have made the group unable to compute since. Members that are away keep no newcomer out: they
    run nothing, and are checked when they return.
    """
    old = None if seat is None else seat.metadata
    named, listed = request.server_assignor, request.assignors
    if named is not None:
        return None if named in SERVER_ASSIGNORS else _refuse_server_assignor(named)
    if listed is None or (seat is not None and _is_settled(seat, request, listed)):
        return None
    if not listed:
        message = "ClientAssignors is empty: list one that the member runs, or a ServerAssignor"
        return Error.UNSUPPORTED_ASSIGNOR, message
    new = MemberMetadata(request.member_id, assignors=listed)
    others = Electorate.of(group).with_change(old, None)
    if _is_able(others.with_change(None, new)):
        return None
    others = others.without(each.metadata for each in group.members_away() if each is not seat)
    return None if _is_able(others.with_change(None, new)) else _refuse_list(others, listed)


def _is_settled(seat: Member, request: Heartbeat, listed: tuple[ClientAssignor, ...]) -> bool:
    """Tell whether a member lists the same assignors as before, and was never away since."""
    returns = seat.is_away and request.member_epoch == JOIN_EPOCH
    return not returns and _versions(seat.metadata.assignors) == _versions(listed)


def _is_able(electorate: Electorate) -> bool:
    return bool(electorate.server_assignor(SERVER_ASSIGNORS) or electorate.fit())


def _refuse_server_assignor(name: str) -> tuple[Error, str]:
    known = " or ".join(SERVER_ASSIGNORS)
    unknown = f"there is no server assignor {name[:LONGEST_NAME]!r}"
    return Error.UNSUPPORTED_ASSIGNOR, f"{unknown}: name {known}, or list ClientAssignors"


def _refuse_list(others: Electorate, listed: tuple[ClientAssignor, ...]) -> tuple[Error, str]:
    """Return the refusal of a list, with what the member would have to list instead."""
    theirs = sorted(others.fit())
    shared = [name for name in theirs if any(each.name == name for each in listed)]
    if not theirs:
        message = (
            "the others have no assignor that one of them can run for all: name a ServerAssignor"
        )
        return Error.UNSUPPORTED_ASSIGNOR, message
    if not shared:
        known = ", ".join(theirs)
        message = f"no assignor in common: the group runs {known}; list one of those as well"
        return Error.UNSUPPORTED_ASSIGNOR, message
    name = shared[0]
    low = min(each[1] for each in others.ranges if each[0] == name)
    high = max(each[2] for each in others.ranges if each[0] == name)
    message = (
        f"nobody could compute for all with {name}: the others read versions {low} to {high};"
        " join with a range that covers those, or write a version that the others read"
    )
    return Error.UNSUPPORTED_ASSIGNOR, message


def _versions(assignors: tuple[ClientAssignor, ...]) -> list[AssignorRange]:
    return [range_of(each) for each in assignors]
