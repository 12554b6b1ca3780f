"""A classic group becomes a connect group: each member keeps what it runs, and its tokens.

Who joins by the connect protocol brings it about. The conversion and the join are one batch: either
both are written or the group stays classic. Converted members go on with the epoch of their
generation; the join raises it, so that they hear at their next heartbeat that they are to join
anew, and from then on the group reconciles them one by one.
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
from .protocol import Held, NotYetError, Translation

CLASSIC_ASSIGNOR = "classic"
"""Who assigned what the members bring along: a leader of their own."""

LEFT_OUT = "the leader of the classic group has given it to nobody yet"
"""Why nobody has a resource, until the group has a target of its own."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a classic group brings into the connect type."""

    members: Sequence[ClassicMember]
    """Those of the last generation that have not left since."""
    heard: AbstractSet[str]
    """Who was told its assignment of that generation; others speak what they spoke before."""
    newcomers: int
    """How many wait for the next one: they are to join anew."""
    protocol_type: str
    translation: Translation
    """How their bytes are read."""


def upgrade(
    group: Group,
    soft: SoftState,
    request: Heartbeat,
    brought: Brought,
    now_ms: int,
    decide: Callable[[Group, SoftState, Heartbeat, int], Decision],
) -> Decision:
    """Return what a join by the connect protocol leads to in a group with classic members.

    `decide` has the rules of the connect type: they see the group as it will be. GROUP_ID_NOT_FOUND
    says why it stays classic.
    """
    flaw = refuse_upgrade(brought, soft.settings)
    records: list[Record] = []
    try:
        records = [] if flaw else _upgrade(group, soft, brought, now_ms)
    except NotYetError as error:  # clients ask again, where they would end over the other
        return refuse_heartbeat(soft, request, Error.COORDINATOR_LOAD_IN_PROGRESS, str(error))
    except UnreadableError as error:
        flaw = str(error)
    if flaw:
        message = f"the group has members of the classic protocol, and stays so: {flaw}"
        return refuse_heartbeat(soft, request, Error.GROUP_ID_NOT_FOUND, message)
    begun = evolve_copy(group, records)
    decision = decide(begun, soft, request, now_ms)
    if not decision.records:  # it is refused by what the connect type goes by
        return decision
    decision = _told(begun, decision, request, now_ms)
    return replace(decision, records=(*records, *decision.records), news=True)


def _told(begun: Group, decision: Decision, request: Heartbeat, now_ms: int) -> Decision:
    """Have a rise of the epoch tell of the conversion.

    A static member that returns raises nothing by itself. But the generation goes, and with it the
    record of how far the group has counted.
    """
    told = tuple(map(_caused, decision.records))
    if not any(isinstance(each, GroupMetadata) for each in told):
        subject = request.url or request.member_id
        told = (*told, bump(begun, Why.GROUP_UPGRADED, subject, now_ms))
        return with_target(begun, replace(decision, records=told), now_ms)
    return replace(decision, records=told)


def _upgrade(group: Group, soft: SoftState, brought: Brought, now_ms: int) -> list[Record]:
    """Return the records of the conversion, after what follows from what its members offer."""
    offers = [(each.member_id, each.protocols[0]) for each in brought.members]
    followed = brought.translation.follow(group, soft, offers)
    ahead = evolve_copy(group, followed) if followed else group
    return [*followed, *upgrade_records(ahead, brought, now_ms)]


def _caused(record: Record) -> Record:
    if not isinstance(record, GroupMetadata):
        return record
    return replace(record, cause=Cause(Why.GROUP_UPGRADED, record.cause.subject))


def refuse_upgrade(brought: Brought, settings: GroupSettings) -> str:
    """Return why a join may not convert a classic group whatever its members say, or nothing."""
    if not settings.migration_policy.upgrades:
        policy = settings.migration_policy.value
        return f"group.migration.policy = {policy} does not let it become a connect group"
    if brought.protocol_type != brought.translation.protocol_type:
        return f"its members are of the type {brought.protocol_type[:60]!a}, which is not converted"
    if len(brought.members) + brought.newcomers > settings.max_size:
        return f"it has more members than group.max.size = {settings.max_size} allows"
    return ""


def upgrade_records(group: Group, brought: Brought, now_ms: int) -> list[Record]:
    """Return what makes a classic group one of the connect type; whoever joins comes behind it.

    Raises UnreadableError, with the member's name.
    """
    last = group.classic
    if last is None:
        return []
    records: list[Record] = [Tombstone(ClassicGroup, ())]
    if not brought.members:
        return records
    seats = [*_seats(group, last, brought)]
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


def _seats(group: Group, last: ClassicGroup, brought: Brought) -> Iterator[Member]:
    """Yield the members as they begin; nothing belongs to two of them."""
    taken: set[Resource] = set()
    tells_grants = _tells_grants(last)
    for each in brought.members:
        try:
            held = brought.translation.held(last.protocol or "", each, last.generation)
            if not last.is_synced:
                held = brought.translation.waiting(each, last.generation)
            elif tells_grants:
                held = Held(each.assigned, each.pending)
            metadata = _metadata(last, each, brought)
        except UnreadableError as error:
            message = f"what {each.member_id} and its leader tell each other cannot be read"
            raise UnreadableError(f"{message}: {error}") from error
        own = {**held.pending, **held.assigned}
        own = {resource: since for resource, since in own.items() if resource not in taken}
        taken |= own.keys()
        wanted = held.assigned.keys() & group.configured
        yield Member(metadata, _current(last, each.member_id, own, wanted))


def _tells_grants(last: ClassicGroup) -> bool:
    """Tell whether who was granted nothing holds nothing, whatever its bytes say.

    They may be of an earlier generation, or tell what nobody gave it yet. Only in logs from before
    there were grants does all that a leader has assigned stand in the bytes alone.
    """
    is_assigned = last.is_synced and last.cause.why is not Why.GROUP_DOWNGRADED
    return not is_assigned or any(each.assigned or each.pending for each in last.members)


def _current(
    last: ClassicGroup, member_id: str, own: Grants, wanted: AbstractSet[Resource]
) -> CurrentAssignment:
    """Return where a member begins: what is not to run there any more it gives up."""
    assigned = {each: since for each, since in own.items() if each in wanted}
    pending = {each: since for each, since in own.items() if each not in wanted}
    state = MemberState.UNREVOKED if pending else MemberState.STABLE
    epoch = last.generation
    return CurrentAssignment(member_id, epoch, epoch, state, assigned, pending)


def _metadata(last: ClassicGroup, member: ClassicMember, brought: Brought) -> MemberMetadata:
    generation = last.generation
    told = last.protocol if member.member_id in brought.heard else None
    told = told or member.protocols[0].name
    returns = Succession(member.returns, member.member_id, generation) if member.returns else None
    return MemberMetadata(
        member.member_id,
        joined_epoch=generation,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        instance_id=member.instance_id,
        url=brought.translation.read(member.protocols[0]).url,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        succession=returns,
        classic=ClassicMetadata(member.protocols, told, told),
    )
