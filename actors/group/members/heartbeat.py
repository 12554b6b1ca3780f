"""One ConnectGroupHeartbeat: admission, merge, epoch bump, reconciliation, answer (PROTOCOL §3).

The step at the end (`next_step`) is the same for classic members in a group of the connect type.
Members of a group whose configs are in another log say what is to run (see `outside_configs`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ....events.group import Group, Member
from ....events.model import (
    NO_DATA,
    NOTHING,
    AssignorData,
    ClientAssignor,
    Resource,
    Resources,
    Why,
)
from ....events.records import (
    ClassicGroup,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from ...messages.errors import Error
from ...messages.members import JOIN_EPOCH, Heartbeat, HeartbeatReply, ReadConfigs
from ..computing.compute import ask, schedule_target
from ..computing.snapshot import needs_placing_anew
from ..state.soft_state import Decision, SoftState, bump
from ..state.workers import welcome
from .admission import REMEDY, ended_by, refuse, refuse_heartbeat, seat_of
from .depart import bury, leave, tombstones
from .outside_configs import change_of, configured_by, newer_configs
from .reconcile import Goal, UnknownStateError, reconcile
from .seats import needs_target, take_seat

SCHEDULED_REBALANCE_DUE = 2
"""The reason code of an assignor that asks for a scheduled rebalance."""


OWN_CONFIGS: Final = (
    "Configured is for groups whose configs are in another log: what this one is to run, people say"
    " by its REST interface; nothing was changed"
)


def heartbeat(group: Group, soft: SoftState, request: Heartbeat, now_ms: int) -> Decision:
    """Decide a heartbeat in a group that has its configs in its own log."""
    if request.configs is not None:
        return refuse_heartbeat(soft, request, Error.INVALID_REQUEST, OWN_CONFIGS)
    return heartbeat_outside(group, soft, request, now_ms)


def heartbeat_outside(group: Group, soft: SoftState, request: Heartbeat, now_ms: int) -> Decision:
    """Decide a heartbeat in a group whose members say what is to run."""
    seat = seat_of(group, request)
    if refused := refuse(group, soft, seat, request):
        return refuse_heartbeat(soft, request, *refused)
    if request.member_epoch < JOIN_EPOCH:
        return leave(group, soft, request, now_ms)
    member, records = apply_request(group, soft, seat, request)
    if read := _newer_configs(group, request):
        records.append(configured_by(read))
    bumped = _bump(group, seat, request, member.metadata, now_ms)
    if bumped is not None:
        records.append(bumped)
    return take_step(group, soft, request, MemberUpdate(seat, member, records), now_ms)


class MemberUpdate(NamedTuple):
    """The change of a member by its heartbeat, before the member is reconciled."""

    seat: Member | None
    """The member that had the seat before; None: it is a new seat."""
    member: Member
    records: Sequence[Record]
    """Those of the change, and of the epoch bump that it calls for."""


def take_step(
    group: Group, soft: SoftState, request: Heartbeat, update: MemberUpdate, now_ms: int
) -> Decision:
    """Reconcile the member with its target, and answer it."""
    seat, member, records = update.seat, update.member, [*update.records]
    group_epoch = max(
        (each.group_epoch for each in records if isinstance(each, GroupMetadata)),
        default=group.group_epoch,
    )
    owned = _owned(seat, request)
    requester = Requester(seat, member, owned)
    try:
        soft, records, after = next_step(group, soft, requester, records, now_ms)
    except UnknownStateError:
        message = f"this version does not know the stored state of {request.member_id}: {REMEDY}"
        return refuse_heartbeat(soft, request, Error.FENCED_MEMBER_EPOCH, message)
    computes, asked_first = False, False
    if soft.computation is not None:
        soft, computes, asked_first = ask(soft, request.member_id, group_epoch)
    end = group.end + len(records)
    reply = _answer(soft, request, member.current, after, end)
    if (config_offset := _config_offset(group, request)) >= 0:
        reply = replace(reply, config_offset=config_offset)
    if reply.assignment is not None and not member.metadata.node:  # a node's worker reads the log
        reply = _with_data(reply, _target_after(group, records), member.metadata, after)
    if computes:
        reply = replace(reply, error=Error.COMPUTE_ASSIGNMENT)
    news = bool(records) or asked_first or _may_have_missed(request, after, owned)
    return Decision(soft, tuple(records), reply, news)


def apply_request(
    group: Group, soft: SoftState, seat: Member | None, request: Heartbeat
) -> tuple[Member, list[Record]]:
    """Return the member after a request, and the records of the change."""
    session_ms = soft.settings.session_timeout_ms
    if seat is None or _takes_over(seat, request):
        member = take_seat(group, seat, request)
        metadata = _merge(member.metadata, request, session_ms)
        records = bury(group, ended_by(group, request))
        if group.classic is not None:  # it has no members
            records.insert(0, Tombstone(ClassicGroup, ()))
        records += [*_sit_down(seat, member, metadata), *welcome(group, metadata, seat)]
        return replace(member, metadata=metadata), records
    metadata = _merge(seat.metadata, request, session_ms)
    if metadata is seat.metadata:
        return seat, []
    return replace(seat, metadata=metadata), [metadata]


def _takes_over(seat: Member, request: Heartbeat) -> bool:
    """Return whether a request takes a seat for a new process, or for a member that was away."""
    is_another = seat.metadata.member_id != request.member_id
    return request.member_epoch == JOIN_EPOCH and (is_another or seat.is_away)


def _sit_down(seat: Member | None, member: Member, metadata: MemberMetadata) -> list[Record]:
    """Return the records of a member that takes a new seat, or one that was kept for it."""
    if seat is None:
        return [metadata]
    if seat.member_id == member.member_id:
        return [metadata, member.current]
    return [*tombstones(seat), metadata, member.current]


def _answer(
    soft: SoftState,
    request: Heartbeat,
    before: CurrentAssignment,
    after: CurrentAssignment,
    end: int,
) -> HeartbeatReply:
    return HeartbeatReply(
        Error.NONE,
        request.member_id,
        after.member_epoch,
        request.incarnation,
        request.sequence,
        heartbeat_interval_ms=soft.settings.heartbeat_interval_ms,
        session_timeout_ms=soft.settings.session_timeout_ms,
        log_offset=end,
        assignment=_assignment(request, before, after),
        coordinator_epoch=soft.coordinator_epoch,
    )


def _target_after(group: Group, records: Sequence[Record]) -> TargetAssignment:
    """Return the target after these records."""
    made = (each for each in records if isinstance(each, TargetAssignment))
    return next(made, group.target)


def _with_data(
    reply: HeartbeatReply,
    target: TargetAssignment,
    metadata: MemberMetadata,
    after: CurrentAssignment,
) -> HeartbeatReply:
    """Return an answer with what the assignor says to the member, for the epoch that it is at."""
    own = AssignorData(target.assignor_version, target.assignor_metadata)
    is_there = after.member_epoch == target.assignment_epoch
    said = target.data.get(metadata.member_id, own) if is_there else after.data
    return replace(reply, data=said, error_code=target.error_code)


def _config_offset(group: Group, request: Heartbeat) -> int:
    """Return how far the configs were read by which the group works from this request on."""
    read = _newer_configs(group, request)
    return read.offset if read else group.config_offset


def _owned(seat: Member | None, request: Heartbeat) -> Resources | None:
    """Return the owned resources in the request; None if it does not report them.

    A join owns nothing. But of a client without an incarnation a late copy of a join cannot be told
    from a new one, and would acknowledge the revocation of what the member still runs. So a
    repeated join of such a client counts as not saying what it owns; its next request says it.
    """
    repeats = request.member_epoch == JOIN_EPOCH and seat is not None and not seat.is_away
    if request.owned is None or (repeats and not request.incarnation):
        return None
    return frozenset(request.owned) if request.owned else NOTHING


def _assignment(
    request: Heartbeat, before: CurrentAssignment, after: CurrentAssignment
) -> Resources | None:
    """Return the assignment in the answer: if the request was full, or if it changed; else None."""
    if request.is_full or after.assigned.keys() != before.assigned.keys():
        return frozenset(after.assigned)
    return None


def _may_have_missed(request: Heartbeat, after: CurrentAssignment, owned: Resources | None) -> bool:
    """Return whether a full request shows that the member may have missed an answer."""
    if not request.is_full:
        return False
    return frozenset(after.assigned) != owned or request.member_epoch != after.member_epoch


def _merge(old: MemberMetadata, request: Heartbeat, session_timeout_ms: int) -> MemberMetadata:
    """Return the member's metadata with the request's changes; the same object without any."""
    told_longer = 0 < old.session_timeout_ms < session_timeout_ms
    if request.is_bare and not told_longer and old.classic is None:
        return old
    changes: dict[str, object] = {}
    if old.classic is not None:  # it speaks the connect protocol from now on
        changes = {"classic": None, "incarnation": request.incarnation}
    for name in ("rack", "url", "client_id", "client_host", "instance_id", "node"):
        said = getattr(request, name)
        if said is not None and said != getattr(old, name):
            changes[name] = said
    if request.rebalance_timeout_ms not in {-1, old.rebalance_timeout_ms}:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    session_ms = _session_ms(old, request, session_timeout_ms)
    if session_ms != old.session_timeout_ms:
        changes["session_timeout_ms"] = session_ms
    changes.update(_change_of_mode(old, request))
    return replace(old, **changes) if changes else old  # type: ignore[arg-type]


def _session_ms(old: MemberMetadata, request: Heartbeat, told_ms: int) -> int:
    """Return the longest session by which the member may fence itself after this answer.

    That is its own, or the longer one in the answer; see `session_timeout_of`. 0 for a member that
    never names one: it uses the group's.
    """
    said = request.session_timeout_ms
    session_ms = old.session_timeout_ms if said == -1 else said
    return max(session_ms, told_ms) if session_ms else 0


def _bump(
    group: Group, seat: Member | None, request: Heartbeat, metadata: MemberMetadata, now_ms: int
) -> GroupMetadata | None:
    """Return the epoch bump for a join, or for a change that assignors depend on; else None."""
    if seat is None or (_takes_over(seat, request) and needs_target(group, seat, request)):
        why: Why | None = Why.MEMBER_JOINED
    else:
        why = _change_in_assignors(group, seat.metadata, metadata)
        # A new zone or name alone is no reason (PROTOCOL §2). If work demands one, assignors depend
        # on it as on metadata, and nothing else would move the work.
        is_changed = metadata is not seat.metadata
        if why is None and is_changed and needs_placing_anew(group, seat.metadata, metadata):
            why = Why.METADATA_CHANGED
    if why is None:
        return _bump_for_configs(group, request, now_ms)
    return bump(group, why, metadata.worker_url, now_ms)


def _newer_configs(group: Group, request: Heartbeat) -> ReadConfigs | None:
    return None if request.configs is None else newer_configs(group, request.configs)


def _bump_for_configs(group: Group, request: Heartbeat, now_ms: int) -> GroupMetadata | None:
    """Return the epoch bump if the member has read of other work than the group knows."""
    read = _newer_configs(group, request)
    cause = change_of(group, read.configured) if read else None
    return None if cause is None else bump(group, *cause, now_ms)


def _change_of_mode(old: MemberMetadata, request: Heartbeat) -> Mapping[str, object]:
    """Return the change of the member's assignors by the request.

    A member that lists assignors names no server assignor any more, and the other way round.
    """
    named, listed = request.server_assignor, request.assignors
    if named is not None and (named != old.server_assignor or old.assignors):
        return {"server_assignor": named, "assignors": ()}
    if listed is not None and (listed != old.assignors or old.server_assignor is not None):
        return {"server_assignor": None, "assignors": listed}
    return {}


def _change_in_assignors(group: Group, old: MemberMetadata, new: MemberMetadata) -> Why | None:
    """Return why a change of a member's assignors calls for a new target, None if it does not.

    A server assignor is a preference: the next computation uses it, but the current target is as
    good as before.
    """
    if old.assignors is new.assignors or new.server_assignor is not None:
        return None
    if old.classic is not None:  # it could not compute before: the target is as good as it was
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


def _ranges(assignors: tuple[ClientAssignor, ...]) -> list[tuple[str, int, int]]:
    return [(each.name, each.minimum_version, each.maximum_version) for each in assignors]


def _is_premature(group: Group, assignor: ClientAssignor) -> bool:
    """Return whether a member requests a scheduled rebalance before its recorded deadline."""
    return assignor.reason == SCHEDULED_REBALANCE_DUE and group.next_deadline_ms is not None


# -- the step of a member, whichever protocol it speaks


class Requester(NamedTuple):
    """The member that sent the request, and its context."""

    seat: Member | None
    """The member that had its seat before; None: it is a new seat."""
    member: Member
    """The member that has the seat now, before its step."""
    owned: Resources | None
    """What it says that it runs, None if it did not say."""


class StepResult(NamedTuple):
    """The soft state, all records of the request, and the member's current assignment then."""

    soft: SoftState
    records: list[Record]
    after: CurrentAssignment


def next_step(
    group: Group, soft: SoftState, requester: Requester, records: Sequence[Record], now_ms: int
) -> StepResult:
    """Add the member's step to the records of its request.

    A target that these make due, and that the coordinator computes itself, comes before the step.
    Raises `UnknownStateError`.
    """
    seat, member, owned = requester
    soft, scheduled, ahead = schedule_target(group, soft, records, now_ms)
    sitter = seat if seat is not None and not scheduled else member
    target = ahead.share_of(sitter.metadata.member_id)
    said = ahead.target.data.get(sitter.metadata.member_id, NO_DATA)
    goal = Goal(ahead.assignment_epoch, target, _others(ahead, seat, member, target), said)
    after = reconcile(member.current, goal, owned)
    stepped = [] if after is member.current else [after]
    return StepResult(soft, [*records, *scheduled, *stepped], after)


def _others(
    group: Group, seat: Member | None, member: Member, target: Resources
) -> Mapping[Resource, str]:
    """Return which members hold what; one that is replaced in its seat holds nothing any more."""
    seated = None if seat is None else seat.metadata.member_id
    if seated in {None, member.metadata.member_id}:
        return group.owner
    held = ((each, group.owner.get(each)) for each in target)
    return {each: by for each, by in held if by is not None and by != seated}
