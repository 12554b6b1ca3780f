"""One heartbeat of one member: admission, merge, step, answer (PROTOCOL §3)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from ...events.group import NOT_STARTED, Group, Member
from ...events.model import NOTHING, Assignor, Cause, Resources, Why
from ...events.records import CurrentAssignment, GroupMetadata, MemberMetadata, Record
from ..messages import JOIN_EPOCH, Error, Heartbeat, HeartbeatReply
from .compute import choose, is_anybody_able, is_news, told
from .depart import leave
from .desk import Decision, Desk
from .elect import able, range_of
from .reconcile import FencedError, Goal, reconcile
from .validate import flaw, flaw_in_first_join

UNSUPPORTED = "no member of the group could run {}; this fairlead has no server assignors yet"
SCHEDULED_REBALANCE_DUE = 2


def heartbeat(group: Group, desk: Desk, request: Heartbeat, now_ms: int) -> Decision:
    """Return what a heartbeat leads to."""
    member = group.members.get(request.member_id)
    if refused := _refuse(group, desk, member, request):
        return _refusal(desk, request, *refused)
    if request.member_epoch < JOIN_EPOCH:
        return leave(group, desk, request, now_ms)
    try:
        return _advance(group, desk, member, request, now_ms)
    except FencedError:
        message = f"the stored state of {request.member_id} is unknown here: rejoin with nothing"
        return _refusal(desk, request, Error.FENCED_MEMBER_EPOCH, message)


def _refuse(
    group: Group, desk: Desk, member: Member | None, request: Heartbeat
) -> tuple[Error, str] | None:
    """Return why the request changes nothing, or None if it may go on."""
    if request.group_id and request.group_id != group.group_id:
        return Error.GROUP_ID_NOT_FOUND, f"{request.group_id!r} is not served here"
    if found := flaw(request, member.metadata if member else None):
        return Error.INVALID_REQUEST, found
    if member is None:
        return _refuse_stranger(group, desk, request)
    if request.incarnation != member.metadata.incarnation:
        message = f"{request.member_id} is the seat of another process, which still lives"
        return Error.UNRELEASED_INSTANCE_ID, message
    if found := _fence(member.current, request):
        return Error.FENCED_MEMBER_EPOCH, found
    return _refuse_assignors(group, request, len(group.members) - 1)


def _refuse_stranger(group: Group, desk: Desk, request: Heartbeat) -> tuple[Error, str] | None:
    if request.member_epoch != JOIN_EPOCH:
        if group.end == 0:
            return Error.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id!r}"
        return Error.UNKNOWN_MEMBER_ID, f"{request.member_id} is no member: rejoin with epoch 0"
    if len(group.members) >= desk.settings.max_size:
        message = f"the group is full: group.max.size is {desk.settings.max_size}"
        return Error.GROUP_MAX_SIZE_REACHED, message
    if found := flaw_in_first_join(request):
        return Error.INVALID_REQUEST, found
    return _refuse_assignors(group, request, len(group.members))


def _refuse_assignors(group: Group, request: Heartbeat, others: int) -> tuple[Error, str] | None:
    """Refuse what would leave the group without an assignor that all can run."""
    if request.server_assignor is not None:
        return Error.UNSUPPORTED_ASSIGNOR, UNSUPPORTED.format(request.server_assignor)
    if request.assignors is None:
        return None
    member = group.members.get(request.member_id)
    if member is not None and _ranges(member.metadata.assignors) == _ranges(request.assignors):
        return None
    ranges = Counter(group.assignor_ranges)
    if member is not None:
        ranges.subtract(map(range_of, member.metadata.assignors))
    ranges.update(map(range_of, request.assignors))
    if not able(+ranges, others + 1):
        known = sorted({name for name, *_ in group.assignor_ranges})
        return Error.UNSUPPORTED_ASSIGNOR, f"nobody could compute for all; the group runs {known}"
    return None


def _fence(current: CurrentAssignment, request: Heartbeat) -> str:
    """Return why the member epoch is not good, or nothing (PROTOCOL §3, Epoch check).

    A lost response is made good by the epoch before it, together with an owned list that
    shows that nothing of the response was begun. A leave and a repeated join pass.
    """
    epoch = request.member_epoch
    if epoch <= JOIN_EPOCH or epoch == current.member_epoch:
        return ""
    if epoch == current.previous_epoch and request.owned is not None:
        if current.assigned.keys() >= set(request.owned):
            return ""
        return f"epoch {epoch} is the previous one, and owned holds what is not assigned"
    return f"epoch {epoch} is not the member's {current.member_epoch}: rejoin with epoch 0"


def _advance(
    group: Group, desk: Desk, member: Member | None, request: Heartbeat, now_ms: int
) -> Decision:
    """Let the member join or go on: merge what it says, and take its next step."""
    records: list[Record] = []
    metadata = _merge(group, member, request)
    if member is None or metadata is not member.metadata:
        records.append(metadata)
    bumped = _bump(group, member, metadata, now_ms)
    if bumped is not None:
        records.append(bumped)
        desk = replace(desk, timed_out=frozenset())
    current = member.current if member else replace(NOT_STARTED, member_id=request.member_id)
    owned = _owned(request)
    goal = Goal(group.assignment_epoch, group.share_of(request.member_id), group.holders)
    after = reconcile(current, goal, owned)
    if after is not current:
        records.append(after)

    group_epoch = bumped.group_epoch if bumped else group.group_epoch
    desk, computes, asked_first = _ask(group, desk, metadata, group_epoch, now_ms)
    reply = HeartbeatReply(
        Error.COMPUTE_ASSIGNMENT if computes else Error.NONE,
        request.member_id,
        after.member_epoch,
        request.incarnation,
        request.sequence,
        heartbeat_interval_ms=desk.settings.heartbeat_interval_ms,
        log_offset=group.end + len(records),
        assignment=_assignment(request, current, after),
    )
    news = bool(records) or asked_first or _missed(request, after, owned)
    return Decision(desk, tuple(records), reply, news)


def _owned(request: Heartbeat) -> Resources | None:
    if request.owned is None:
        return None
    return frozenset(request.owned) if request.owned else NOTHING


def _assignment(
    request: Heartbeat, before: CurrentAssignment, after: CurrentAssignment
) -> Resources | None:
    """Return what the answer must carry: all if the request was full, or what changed."""
    if request.is_full or after.assigned.keys() != before.assigned.keys():
        return frozenset(after.assigned)
    return None


def _missed(request: Heartbeat, after: CurrentAssignment, owned: Resources | None) -> bool:
    """Tell whether a full request shows that the member may have missed an answer."""
    if not request.is_full:
        return False
    return frozenset(after.assigned) != owned or request.member_epoch != after.member_epoch


def _merge(group: Group, member: Member | None, request: Heartbeat) -> MemberMetadata:
    """Return what is known of the member now; the same object if the request adds nothing."""
    old = member.metadata if member else MemberMetadata(request.member_id)
    changes: dict[str, object] = {}
    for name in ("rack", "url", "client_id", "client_host", "assignors", "instance_id"):
        said = getattr(request, name)
        if said is not None and said != getattr(old, name):
            changes[name] = said
    if request.rebalance_timeout_ms not in {-1, old.rebalance_timeout_ms}:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if member is None:
        changes["incarnation"] = request.incarnation
        changes["joined_epoch"] = group.group_epoch + 1
    return replace(old, **changes) if changes else old  # type: ignore[arg-type]


def _bump(
    group: Group, member: Member | None, metadata: MemberMetadata, now_ms: int
) -> GroupMetadata | None:
    why = Why.MEMBER_JOINED if member is None else _change(group, member.metadata, metadata)
    if why is None:
        return None
    cause = Cause(why, metadata.url or metadata.member_id)
    return GroupMetadata(group.group_epoch + 1, cause, now_ms)


def _change(group: Group, old: MemberMetadata, new: MemberMetadata) -> Why | None:
    """Return what changed of a member's assignors that a new target must answer to."""
    if old.assignors is new.assignors:
        return None
    if _ranges(old.assignors) != _ranges(new.assignors):
        return Why.ASSIGNORS_CHANGED
    before = {each.name: each for each in old.assignors}
    for each in new.assignors:
        was = before[each.name]
        if each.metadata != was.metadata:
            return Why.METADATA_CHANGED
        if each.reason not in {0, was.reason} and not _is_premature(group, each):
            return Why.REASON_GIVEN
    return None


def _ranges(assignors: tuple[Assignor, ...]) -> list[tuple[str, int, int]]:
    return [(each.name, each.minimum_version, each.maximum_version) for each in assignors]


def _is_premature(group: Group, assignor: Assignor) -> bool:
    """Tell whether a member calls for what a recorded deadline will bring by itself."""
    return assignor.reason == SCHEDULED_REBALANCE_DUE and group.next_deadline_ms is not None


def _ask(
    group: Group, desk: Desk, metadata: MemberMetadata, group_epoch: int, now_ms: int
) -> tuple[Desk, bool, bool]:
    """Return the desk, whether this member is to compute, and whether it hears so first."""
    if group_epoch <= group.assignment_epoch:
        return desk, False, False
    computation = desk.computation
    is_known = metadata.member_id in group.members
    if computation is None and is_known and not is_anybody_able(group):
        return desk, False, False
    if computation is None or (
        computation.member_id != metadata.member_id and computation.member_id not in group.members
    ):
        desk = choose(desk, lambda: _crew(group, metadata), now_ms)
        computation = desk.computation
    if computation is None or computation.member_id != metadata.member_id:
        return desk, False, False
    first = is_news(desk, group_epoch)
    return told(desk, group_epoch), True, first


def _crew(group: Group, newcomer: MemberMetadata) -> Iterator[MemberMetadata]:
    others = (
        member.metadata
        for member_id, member in group.members.items()
        if member_id != newcomer.member_id
    )
    return chain(others, (newcomer,))


def _refusal(desk: Desk, request: Heartbeat, error: Error, message: str) -> Decision:
    reply = HeartbeatReply(
        error,
        request.member_id,
        request.member_epoch,
        request.incarnation,
        request.sequence,
        message,
        desk.settings.heartbeat_interval_ms,
    )
    return Decision(desk, reply=reply)
