"""Upgrade: a classic group becomes a connect group, whose members keep their work and tokens.

The first join by the connect protocol converts the group. The conversion and the join are one
batch: either both are written, or the group stays classic. Converted members are at the epoch of
their generation. The join raises the epoch, so that they are told to rejoin by their next
heartbeat, and from then on they are reconciled one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ....events.evolve import evolve_copy
from ....events.group import Group, Member
from ....events.model import (
    Cause,
    ClassicMember,
    ClassicMetadata,
    Grants,
    MemberState,
    Resource,
    Succession,
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
from ...classic.bytes.primitives import UnreadableError
from ...messages.errors import Error
from ...messages.members import Heartbeat
from ..computing.compute import with_target
from ..members.admission import refuse_heartbeat
from ..state.settings import GroupSettings
from ..state.soft_state import Decision, SoftState, bump
from .protocol import HeldResources, NotYetError, Translation

CLASSIC_ASSIGNOR = "classic"
"""The assignor of the first target: the leader of the classic group."""

LEFT_OUT = "the leader of the classic group has given it to nobody yet"
"""Why a resource is unplaceable in the first target."""


@dataclass(frozen=True, slots=True)
class ConvertingMembers:
    """The members of a classic group that is converted."""

    members: Sequence[ClassicMember]
    """The members of the last generation that have not left since."""
    informed: AbstractSet[str]
    """The ids of those that were sent their assignment of that generation; others speak what they
    spoke before."""
    newcomers: int
    """How many new members wait for the next generation: they have to rejoin."""
    protocol_type: str
    translation: Translation
    """How their bytes are read."""


def upgrade(
    group: Group,
    soft: SoftState,
    request: Heartbeat,
    converting: ConvertingMembers,
    now_ms: int,
    decide: Callable[[Group, SoftState, Heartbeat, int], Decision],
) -> Decision:
    """Decide a join by the connect protocol in a group with classic members.

    `decide` has the rules of the connect type, which see the group as converted. The answer is
    GROUP_ID_NOT_FOUND, with the reason, if the group stays classic.
    """
    flaw = refuse_upgrade(converting, soft.settings)
    records: list[Record] = []
    try:
        records = [] if flaw else _upgrade(group, soft, converting, now_ms)
    except NotYetError as error:  # clients retry on this error, and give up on the other
        return refuse_heartbeat(soft, request, Error.COORDINATOR_LOAD_IN_PROGRESS, str(error))
    except UnreadableError as error:
        flaw = str(error)
    if flaw:
        message = f"the group has members of the classic protocol, and stays so: {flaw}"
        return refuse_heartbeat(soft, request, Error.GROUP_ID_NOT_FOUND, message)
    begun = evolve_copy(group, records)
    decision = decide(begun, soft, request, now_ms)
    if not decision.records:  # the rules of the connect type refuse it
        return decision
    decision = _bump_with_cause(begun, decision, request, now_ms)
    return replace(decision, records=(*records, *decision.records), news=True)


def _bump_with_cause(begun: Group, decision: Decision, request: Heartbeat, now_ms: int) -> Decision:
    """Set the epoch bump's cause to the conversion, and add a bump if there is none.

    A static member that returns does not raise the epoch. But the generation is buried, and with it
    the record of how far the group has counted.
    """
    records = tuple(map(_with_upgrade_cause, decision.records))
    if not any(isinstance(each, GroupMetadata) for each in records):
        subject = request.url or request.member_id
        records = (*records, bump(begun, Why.GROUP_UPGRADED, subject, now_ms))
        return with_target(begun, replace(decision, records=records), now_ms)
    return replace(decision, records=records)


def _upgrade(
    group: Group, soft: SoftState, converting: ConvertingMembers, now_ms: int
) -> list[Record]:
    """Return the records of the conversion, after what follows from what its members offer."""
    offers = [(each.member_id, each.protocols[0]) for each in converting.members]
    followed = converting.translation.follow(group, soft, offers)
    ahead = evolve_copy(group, followed) if followed else group
    return [*followed, *upgrade_records(ahead, converting, now_ms)]


def _with_upgrade_cause(record: Record) -> Record:
    if not isinstance(record, GroupMetadata):
        return record
    return replace(record, cause=Cause(Why.GROUP_UPGRADED, record.cause.subject))


def refuse_upgrade(converting: ConvertingMembers, settings: GroupSettings) -> str:
    """Return why a join may not convert a classic group whatever its members say; "" if none."""
    if not settings.migration_policy.upgrades:
        policy = settings.migration_policy.value
        return f"group.migration.policy = {policy} does not let it become a connect group"
    if converting.protocol_type != converting.translation.protocol_type:
        return (
            f"its members are of the type {converting.protocol_type[:60]!a}, which is not converted"
        )
    if len(converting.members) + converting.newcomers > settings.max_size:
        return f"it has more members than group.max.size = {settings.max_size} allows"
    return ""


def upgrade_records(group: Group, converting: ConvertingMembers, now_ms: int) -> list[Record]:
    """Return the records of the conversion, which those of the join follow.

    Raises UnreadableError, with the member's id.
    """
    last = group.classic
    if last is None:
        return []
    records: list[Record] = [Tombstone(ClassicGroup, ())]
    if not converting.members:
        return records
    seats = [*_seats(group, last, converting)]
    shares = {seat.member_id: frozenset(seat.current.assigned) for seat in seats}
    idle = group.configured.difference(*shares.values())
    target = TargetAssignment(
        last.generation,
        shares,
        CLASSIC_ASSIGNOR,
        unplaceable=dict.fromkeys(idle, LEFT_OUT),
        computed_by=last.leader,
        time_ms=now_ms,
    )
    records += [seat.metadata for seat in seats]
    return [*records, target, *(seat.current for seat in seats)]


def _seats(group: Group, last: ClassicGroup, converting: ConvertingMembers) -> Iterator[Member]:
    """Yield the converted members; no two of them hold the same resource."""
    taken: set[Resource] = set()
    tells_grants = _tells_grants(last)
    for each in converting.members:
        try:
            held = converting.translation.held_resources(last.protocol or "", each, last.generation)
            if not last.is_synced:
                held = converting.translation.resources_while_waiting(each, last.generation)
            elif tells_grants:
                held = HeldResources(each.assigned, each.pending)
            metadata = _metadata(last, each, converting)
        except UnreadableError as error:
            message = f"what {each.member_id} and its leader tell each other cannot be read"
            raise UnreadableError(f"{message}: {error}") from error
        own = {**held.pending, **held.assigned}
        own = {resource: since for resource, since in own.items() if resource not in taken}
        taken |= own.keys()
        wanted = held.assigned.keys() & group.configured
        yield Member(metadata, _current(last, each.member_id, own, wanted))


def _tells_grants(last: ClassicGroup) -> bool:
    """Return whether members hold exactly their grants, whatever their bytes say.

    The bytes may be of an earlier generation, or not be handed out yet. Only in logs from before
    there were grants do the bytes alone say what a leader has assigned.
    """
    is_assigned = last.is_synced and last.cause.why is not Why.GROUP_DOWNGRADED
    return not is_assigned or any(each.assigned or each.pending for each in last.members)


def _current(
    last: ClassicGroup, member_id: str, own: Grants, wanted: AbstractSet[Resource]
) -> CurrentAssignment:
    """Return a member's first current assignment: what it is not assigned any more is pending."""
    assigned = {each: since for each, since in own.items() if each in wanted}
    pending = {each: since for each, since in own.items() if each not in wanted}
    state = MemberState.UNREVOKED if pending else MemberState.STABLE
    epoch = last.generation
    return CurrentAssignment(member_id, epoch, epoch, state, assigned, pending)


def _metadata(
    last: ClassicGroup, member: ClassicMember, converting: ConvertingMembers
) -> MemberMetadata:
    generation = last.generation
    protocol = last.protocol if member.member_id in converting.informed else None
    protocol = protocol or member.protocols[0].name
    returns = Succession(member.returns, member.member_id, generation) if member.returns else None
    offered = converting.translation.read(member.protocols[0])
    return MemberMetadata(
        member.member_id,
        joined_epoch=generation,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        instance_id=member.instance_id,
        rack=offered.rack,
        url=offered.url,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        succession=returns,
        classic=ClassicMetadata(member.protocols, protocol, protocol),
    )
