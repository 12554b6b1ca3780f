"""Downgrade: a connect group becomes classic once its last member of the connect protocol is gone.

That member has left or was removed, or a classic process took over its seat; classic members that
leave never cause a downgrade. The classic group begins at the group epoch, with what the target
gives each member, and with the same fencing tokens. A round follows at once, in which one of the
members leads and assigns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....events.evolve import evolve_copy
from ....events.group import NO_SCHEDULE, Group, Member
from ....events.model import NOTHING, Cause, ClassicMember, GroupState, Why
from ....events.records import (
    ClassicGroup,
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Operator,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    Tombstone,
)
from ...classic.bytes.primitives import UnreadableError, UnwritableError
from ...classic.rules import elect_protocol
from ...messages.classic import JoinGroupReply
from ..members.depart import bury
from ..state.soft_state import Decision
from .protocol import Translation, assignment_content


@dataclass(frozen=True, slots=True)
class Downgrade:
    """A decision that makes the group classic."""

    decision: Decision
    cause: Cause
    """Why the last member of the connect protocol is gone."""
    needs_round: bool
    """Whether the members have to rebalance: not if all hold their targets already."""


def downgrade(
    group: Group, decision: Decision, translation: Translation, now_ms: int
) -> Downgrade | None:
    """Return the decision with the conversion that follows from it; None if none does."""
    settings = decision.soft.settings
    gone = _last_to_go(group, decision.records)
    if not gone or not settings.migration_policy.downgrades:
        return None
    kept = [each for each in decision.records if _is_kept(each, group.assignment_epoch)]
    ahead = evolve_copy(group, kept)
    if not 0 < len(ahead.members) <= settings.max_size:
        return None
    bumps = [each for each in decision.records if isinstance(each, GroupMetadata)]
    subject = group.members[gone].metadata.worker_url
    try:
        generation = _generation(ahead, Cause(Why.GROUP_DOWNGRADED, subject), translation, now_ms)
    except (UnreadableError, UnwritableError):  # written by a version that knew more
        return None
    records = (*kept, *_end_of(ahead), *translation.bury(ahead), generation)
    cause = bumps[0].cause if bumps else Cause(Why.MEMBER_JOINED, subject)
    needs_round = bool(bumps) or ahead.state is not GroupState.STABLE
    reply = decision.reply
    if isinstance(reply, JoinGroupReply):
        reply = replace(reply, generation=generation.generation, protocol=generation.protocol)
    soft = replace(decision.soft.without_computation(), initial_delay=None)
    decided = replace(decision, soft=soft, records=records, reply=reply, news=True)
    return Downgrade(decided, cause, needs_round)


def is_converted(group: Group) -> bool:
    """Return whether the last generation is that of a downgrade whose round has not ended.

    A round that an earlier process began is lost.
    """
    last = group.classic
    return last is not None and last.cause.why is Why.GROUP_DOWNGRADED and bool(last.members)


_OF_MEMBERS = (MemberMetadata, CurrentAssignment)


def _is_kept(record: Record, assignment_epoch: int) -> bool:
    """Return whether a record of the decision is kept: those of members, and orders.

    A target of the same decision is left out, and so are the steps towards it.
    """
    if isinstance(record, Tombstone):
        return record.kind in {*_OF_MEMBERS, Operator}
    if isinstance(record, CurrentAssignment):
        return record.member_epoch <= assignment_epoch
    return isinstance(record, MemberMetadata | Operator)


def _last_to_go(group: Group, records: Sequence[Record]) -> str:
    """Return the id of the last member of the connect protocol if these records remove it."""
    others = len(group.members) - len(group.translated)
    gone = [
        str(each.key[0])
        for each in records
        if isinstance(each, Tombstone) and each.kind is MemberMetadata
    ]
    gone = [each for each in gone if each in group.members and each not in group.translated]
    if not gone or len(gone) < others:
        return ""
    came = (each for each in records if isinstance(each, MemberMetadata))
    return "" if any(each.classic is None for each in came) else gone[-1]


def _generation(group: Group, cause: Cause, translation: Translation, now_ms: int) -> ClassicGroup:
    """Return the first generation. Raises UnreadableError, UnwritableError."""
    seats = [_seat(each, translation) for each in group.members.values()]
    protocol = elect_protocol(seats)
    members = tuple(
        replace(seat, assignment=_assignment(group, seat.member_id, protocol, translation))
        for seat in seats
    )
    return ClassicGroup(
        group.group_epoch,
        cause,
        now_ms,
        translation.protocol_type,
        protocol,
        min(group.members),
        members,
        is_synced=True,
    )


def _assignment(
    group: Group, member_id: str, protocol: str | None, translation: Translation
) -> bytes:
    """Return all that the target gives a member: a new process of it may ask for it."""
    content = assignment_content(group, group.members[member_id], translation)
    whole = replace(content, granted=group.share_of(member_id), owned=NOTHING)
    return translation.assignment(protocol or "", whole)


def _seat(member: Member, translation: Translation) -> ClassicMember:
    metadata, current = member.metadata, member.current
    if metadata.classic is None:
        raise UnreadableError(f"{member.member_id} does not speak the classic protocol")
    succession = metadata.succession
    return ClassicMember(
        metadata.member_id,
        metadata.session_timeout_ms,
        metadata.rebalance_timeout_ms,
        metadata.classic.protocols,
        metadata.instance_id,
        metadata.client_id,
        metadata.client_host,
        url=translation.read(metadata.classic.protocols[0]).url,
        assigned=current.assigned,
        pending=current.pending,
        returns=succession.returns if succession else 0,
    )


def _end_of(group: Group) -> list[Record]:
    """Return the end of the connect group: of members, orders to remove them, losses and target."""
    records = bury(group, group.members.values())
    records += [Tombstone(Loss, (each,)) for each in sorted(group.losses)]
    if group.schedule != NO_SCHEDULE:
        records.append(ScheduledRebalance())
    return [*records, Tombstone(TargetAssignment, ())]
