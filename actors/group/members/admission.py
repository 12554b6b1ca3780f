"""Which heartbeats are admitted, for which seat, and with which errors others are refused.

First a request is looked at by itself (PROTOCOL §3, Validation): what is malformed, or cannot be
encoded, is INVALID_REQUEST whoever sends it. What the group knows of a member was validated before,
and is not checked again. Then it is looked at beside its seat (PROTOCOL §3, §8): whether another
process or another member has it, whether its epoch is the current one, whether the member names as
owned only what it may run, and whether the group could still compute with its assignors.

Nothing is changed by a refused request, and no session is renewed.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection
from operator import itemgetter

from ....events.group import LARGEST_EPOCH, AssignorRange, Group, Member
from ....events.model import CONNECTOR, ClientAssignor, Resource
from ....events.records import CurrentAssignment, MemberMetadata
from ...messages.commands import Reply
from ...messages.errors import Error
from ...messages.members import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    TEMPORARY_LEAVE_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from ..computing.elect import Electorate, range_of
from ..state.soft_state import Decision, SoftState
from ..state.validate import (
    LARGEST_NUMBER,
    LONGEST_NAME,
    LONGEST_SESSION_MS,
    LONGEST_TEXT,
    flaw_in_assignor,
    flaw_in_name,
    flaw_in_text,
    show_number,
)
from .outside_configs import flaw_in_configs

UNCHANGED = -1
"""The value of an unchanged time in a request."""

REMEDY = "its seat is kept; stop everything, and rejoin with epoch 0"
"""What a fenced member has to do."""


def refuse(
    group: Group, soft: SoftState, seat: Member | None, request: Heartbeat
) -> tuple[Error, str] | None:
    """Return why the request is refused, or None if it is admitted.

    `seat` is the result of `seat_of`.
    """
    if request.group_id and request.group_id != group.group_id:
        message = f"group {request.group_id!r} is not served here: ask its own coordinator"
        return Error.GROUP_ID_NOT_FOUND, message
    if seat is not None and seat.metadata.member_id == request.member_id:
        return _refuse_member(group, soft, seat, request)
    return _refuse_newcomer(group, soft, seat, request)


def refuse_heartbeat(soft: SoftState, request: Heartbeat, error: Error, message: str) -> Decision:
    """Return a decision without changes, and with an error as the answer."""
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
    if flaw := flaw_in_request(request, member.metadata) or _flaw_in_session(soft, request):
        return Error.INVALID_REQUEST, f"{flaw}; nothing was changed"
    if refused := refuse_instance(group, request):
        return refused
    leaves = request.member_epoch < JOIN_EPOCH
    is_removal = group.topics is not None and request.member_epoch == LEAVE_EPOCH  # as at a broker
    if member.metadata.classic is not None and leaves and not is_removal:
        message = f"{request.member_id} is a classic member, and leaves by LeaveGroup"
        return Error.UNKNOWN_MEMBER_ID, message
    returns = request.member_epoch == JOIN_EPOCH and member.is_away
    becomes_modern = member.metadata.classic is not None and request.member_epoch >= JOIN_EPOCH
    is_another = request.incarnation != member.metadata.incarnation
    if is_another and not returns and not becomes_modern:
        taken = f"{request.member_id} is the seat of another process, which keeps it"
        message = f"{taken}: join under a member id of your own"
        return Error.UNRELEASED_INSTANCE_ID, message
    if flaw := _flaw_in_epoch(member.current, request) or _flaw_in_owned(
        group, member.current, request
    ):
        return Error.FENCED_MEMBER_EPOCH, flaw
    return _refuse_assignors(group, soft, request, member)


def _refuse_newcomer(
    group: Group, soft: SoftState, seat: Member | None, request: Heartbeat
) -> tuple[Error, str] | None:
    """Refuse a request of a process that is no member, unless it joins or takes a seat back."""
    is_join = request.member_epoch == JOIN_EPOCH
    flaw = flaw_in_request(request) or (flaw_in_first_join(request) if is_join else "")
    if flaw := flaw or _flaw_in_session(soft, request):
        return Error.INVALID_REQUEST, f"{flaw}; nothing was changed"
    if not is_join:
        return _refuse_non_member(group, request)
    if refused := refuse_instance(group, request):
        return refused
    if seat is not None:  # a return by the instance id is weighed as the seat it takes
        return _refuse_assignors(group, soft, request, seat)
    if len(group.members) - len(ended_by(group, request)) >= soft.settings.max_size:
        full = f"the group has as many members as group.max.size = {soft.settings.max_size} allows"
        message = f"{full}: raise it, or ask again once one has left"
        return Error.GROUP_MAX_SIZE_REACHED, message
    return _refuse_assignors(group, soft, request, None)


def _flaw_in_session(soft: SoftState, request: Heartbeat) -> str:
    """Return an error if the member's session is longer than the group would wait, else ""."""
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
    """Return what the request names as owned and the member may not own; "" if none.

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
    group: Group, soft: SoftState, request: Heartbeat, seat: Member | None
) -> tuple[Error, str] | None:
    """Refuse assignors with which no member could compute for all (PROTOCOL §6).

    A member either lists the assignors that it can run itself, or names one that the coordinator is
    to run. A list that was accepted is not checked again while the member is present: others may
    have made the group unable to compute since. Members that are away keep no newcomer out: they
    run nothing, and are checked when they return.
    """
    old = None if seat is None else seat.metadata
    named, listed, served = request.server_assignor, request.assignors, soft.server_assignors
    if named is not None:
        return None if named in served else _refuse_server_assignor(named, served)
    if listed is None or (seat is not None and _is_settled(seat, request, listed)):
        return None
    if not listed:
        message = "ClientAssignors is empty: list one that the member runs, or a ServerAssignor"
        return Error.UNSUPPORTED_ASSIGNOR, message
    new = MemberMetadata(request.member_id, assignors=listed)
    others = Electorate.of(group).with_change(old, None)
    if _is_able(others.with_change(None, new), served):
        return None
    others = others.without(each.metadata for each in group.members_away() if each is not seat)
    return None if _is_able(others.with_change(None, new), served) else _refuse_list(others, listed)


def _is_settled(seat: Member, request: Heartbeat, listed: tuple[ClientAssignor, ...]) -> bool:
    """Return whether a member lists the same assignors as before, and was never away since."""
    returns = seat.is_away and request.member_epoch == JOIN_EPOCH
    return not returns and _versions(seat.metadata.assignors) == _versions(listed)


def _is_able(electorate: Electorate, served: Collection[str]) -> bool:
    return bool(electorate.server_assignor(served) or electorate.fit())


def _refuse_server_assignor(name: str, served: Collection[str]) -> tuple[Error, str]:
    names = " or ".join(served)
    unknown = f"there is no server assignor {name[:LONGEST_NAME]!r}"
    return Error.UNSUPPORTED_ASSIGNOR, f"{unknown}: name {names}, or list ClientAssignors"


def _refuse_list(others: Electorate, listed: tuple[ClientAssignor, ...]) -> tuple[Error, str]:
    """Return the error of listed assignors that cannot compute for all, and those that can."""
    theirs = sorted(others.fit())
    shared = [name for name in theirs if any(each.name == name for each in listed)]
    if not theirs:
        message = (
            "the others have no assignor that one of them can run for all: name a ServerAssignor"
        )
        return Error.UNSUPPORTED_ASSIGNOR, message
    if not shared:
        names = ", ".join(theirs)
        message = f"no assignor in common: the group runs {names}; list one of those as well"
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


# -- seats


def ended_by(group: Group, request: Heartbeat) -> list[Member]:
    """Return the seats that this join ends: its worker's seats under other instance ids.

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
    """Return the member whose seat a request concerns; None: it has no seat yet.

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
    """Return whether a member may take a free instance id: a consumer without one, as in Kafka."""
    return group.topics is not None and member.metadata.instance_id is None


def _may_be_taken(seat: Member) -> bool:
    """Return whether a new process may take a seat: its member is away, or a classic one.

    Classic static members do not say that they leave for a while; their next process takes over at
    once, with new tokens (KIP-345).
    """
    return seat.is_away or seat.metadata.classic is not None


# -- a request by itself


def flaw_in_request(request: Heartbeat, before: MemberMetadata | None = None) -> str:
    """Return what makes the request invalid, or nothing; an INVALID_REQUEST's message.

    What the member's metadata had `before` is valid, and is not checked again.
    """
    flaw = _flaw_in_ids(request) or _flaw_in_list(request)
    flaw = flaw or (flaw_in_configs(request.configs) if request.configs else "")
    if flaw or (before is not None and request.is_bare):
        return flaw
    flaw = _flaw_in_values(request) or _flaw_in_assignors(request, before)
    return flaw or (_flaw_in_names(request) if before is None else "")


def _flaw_in_names(request: Heartbeat) -> str:
    """Return which id is unfit for the log's keys, or nothing; an empty member id is replaced."""
    member_id, instance_id = request.member_id, request.instance_id
    found = flaw_in_name(member_id, "MemberId") if member_id else ""
    if not found and instance_id is not None:
        found = flaw_in_name(instance_id, "InstanceId")
    return found


def _flaw_in_ids(request: Heartbeat) -> str:
    epoch, instance_id = request.member_epoch, request.instance_id
    if not request.group_id:
        return "GroupId is empty: name the group"
    if not TEMPORARY_LEAVE_EPOCH <= epoch <= LARGEST_EPOCH:
        return f"MemberEpoch is {show_number(epoch)}: it must be from -2 to {LARGEST_EPOCH}"
    if not request.member_id and epoch != JOIN_EPOCH:
        return "MemberId is empty: only a join (epoch 0) may leave it out"
    if instance_id == "" or request.rack == "":
        return "InstanceId or RackId is empty: leave it out, or give it a value"
    if epoch == TEMPORARY_LEAVE_EPOCH and instance_id is None:
        return "a temporary leave (epoch -2) needs an InstanceId: send it, or leave with epoch -1"
    return ""


def _flaw_in_values(request: Heartbeat) -> str:
    """Return which field is not encodable; "" if none."""
    for what, time_ms in (
        ("RebalanceTimeoutMs", request.rebalance_timeout_ms),
        ("SessionTimeoutMs", request.session_timeout_ms),
    ):
        if time_ms != UNCHANGED and not 0 < time_ms <= LARGEST_NUMBER:
            return f"{what} is {show_number(time_ms)}: it must be above 0, or -1 if it is unchanged"
    for what, text in (
        ("Incarnation", request.incarnation),
        ("Url", request.url),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack),
        ("ClientId", request.client_id),
        ("ClientHost", request.client_host),
        ("Node", request.node),
    ):
        if text and (found := flaw_in_text(text, what)):
            return found
        if text and len(text.encode()) > LONGEST_TEXT:
            return f"{what} is longer than {LONGEST_TEXT} bytes: shorten it"
    return ""


def _flaw_in_list(request: Heartbeat) -> str:
    owned = request.owned
    if request.member_epoch == JOIN_EPOCH and (owned is None or owned):
        return "a join (epoch 0) must say that it owns nothing: owned present and empty"
    if not owned:
        return ""
    return _flaw_in_leave(request) or _flaw_in_resources(owned)


def _flaw_in_leave(request: Heartbeat) -> str:
    """Return the flaw in a leave of a member that still owns something; "" if none.

    A leave frees all that the member held. If it was accepted, the work would start elsewhere while
    it still runs there; if it is refused, the group waits until the session ends.
    """
    if request.member_epoch >= JOIN_EPOCH:
        return ""
    kept = "its seat and its work are kept until its session ends"
    return f"a leave (epoch -1 or -2) while owned is not empty: stop everything first; {kept}"


def _flaw_in_resources(owned: tuple[Resource, ...]) -> str:
    if any(not CONNECTOR <= resource.task <= LARGEST_NUMBER for resource in owned):
        return f"owned has a task number outside 0 to {LARGEST_NUMBER}: tasks count from 0"
    if any(not resource.connector for resource in owned):
        return "owned has a resource without a connector: name it"
    if len(set(owned)) != len(owned):
        return "owned names a resource twice: name each once"
    return ""


def _flaw_in_assignors(request: Heartbeat, before: MemberMetadata | None) -> str:
    assignors = request.assignors
    if assignors is None:
        return ""
    if request.server_assignor is not None:
        return "ServerAssignor and ClientAssignors exclude each other: send one of them"
    if before and assignors == before.assignors:
        return ""
    names = Counter(assignor.name for assignor in assignors)
    if twice := [name for name, count in names.items() if count > 1]:
        return f"assignor {twice[0]!r} is named twice: name each once"
    return next((found for each in assignors if (found := flaw_in_assignor(each))), "")


def flaw_in_first_join(request: Heartbeat) -> str:
    """Return the missing field in the join of a new member; "" if it is complete."""
    if request.rebalance_timeout_ms <= 0:
        return "a join needs a RebalanceTimeoutMs above 0"
    names_assignor = request.assignors or request.server_assignor is not None
    if not names_assignor and request.subscription is None:
        return "a join needs an assignor: ClientAssignors or ServerAssignor"
    return ""
