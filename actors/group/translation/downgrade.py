"""A connect group becomes classic, once nobody is left in it who speaks the connect protocol.

That is a matter of a departure, or of a classic member that takes over the last other one's seat;
classic members that leave never bring it about. The classic group begins at the group epoch, with
what the target gives each member, and with the tokens under which they work. A round follows at
once: then one of them leads, and assigns.
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
from ...classic.rounds import elect_protocol
from ...messages.classic import JoinGroupReply
from ..members.depart import tombstones
from ..state.soft_state import Decision
from .given import given_to
from .protocol import Translation


@dataclass(frozen=True, slots=True)
class Downgrade:
    """A decision that leaves a classic group behind."""

    decision: Decision
    cause: Cause
    """Why the last member of the connect protocol is gone."""
    needs_round: bool
    """Whether the members have to agree anew: not if all hold what they are to have."""


def downgrade(
    group: Group, decision: Decision, translation: Translation, now_ms: int
) -> Downgrade | None:
    """Return how a decision converts the group; None if it does not."""
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
    soft = replace(decision.soft.without_computation(), gathering=None)
    decided = replace(decision, soft=soft, records=records, reply=reply, news=True)
    return Downgrade(decided, cause, needs_round)


def is_converted(group: Group) -> bool:
    """Tell whether a classic group begins that has not agreed on anything yet, as far as is known.

    What an earlier process began of it is lost.
    """
    last = group.classic
    return last is not None and last.cause.why is Why.GROUP_DOWNGRADED and bool(last.members)


_OF_MEMBERS = (MemberMetadata, CurrentAssignment)


def _is_kept(record: Record, assignment_epoch: int) -> bool:
    """Tell whether a record is of members, or an order.

    A step by a target that the same decision would have brought goes with that target.
    """
    if isinstance(record, Tombstone):
        return record.kind in {*_OF_MEMBERS, Operator}
    if isinstance(record, CurrentAssignment):
        return record.member_epoch <= assignment_epoch
    return isinstance(record, MemberMetadata | Operator)


def _last_to_go(group: Group, records: Sequence[Record]) -> str:
    """Return the last member of the connect protocol, if these records end its seat; or nothing."""
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
    """Return how the members begin. Raises UnreadableError, UnwritableError."""
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
    """Return what the target gives a member, whole: its next process may ask for it."""
    given = given_to(group, group.members[member_id], translation)
    whole = replace(given, granted=group.share_of(member_id), owned=NOTHING)
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
    """Return what buries the connect group: seats, losses, what was left for later, the target."""
    records = [record for each in group.members.values() for record in tombstones(each)]
    records += [Tombstone(Loss, (each,)) for each in sorted(group.losses)]
    if group.schedule != NO_SCHEDULE:
        records.append(ScheduledRebalance())
    return [*records, Tombstone(TargetAssignment, ())]
