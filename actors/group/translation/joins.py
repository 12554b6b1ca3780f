"""JoinGroup in a group of the connect type: it is decided like a heartbeat of that one member.

There is no round: the answer leaves as soon as its records are durable. The generation is the
member's epoch, and there is no leader, unless one has to say what is to run (see `outside`). The
member owns what its metadata name; it is told to rejoin (see `mixed`) when it has to revoke
something, or may take more.

A static member takes over its seat at once, also from a process that is still there, and from one
of the connect protocol: it is granted the seat's share under new tokens, which fence the other
process (KIP-345).
"""

from dataclasses import dataclass, replace

from ....events.group import Group, Member
from ....events.model import NOTHING, ClassicMetadata, Resources, Why
from ....events.records import MemberMetadata, Record
from ...classic.refusals import Refusal, refuse_metadata, refuse_terms
from ...classic.state import ClassicSettings
from ...messages.classic import JoinedMember, JoinGroup, JoinGroupReply
from ...messages.errors import Error
from ...messages.members import JOIN_EPOCH, Heartbeat
from ..members.admission import ended_by
from ..members.depart import bury, tombstones
from ..members.heartbeat import Requester, next_step
from ..members.reconcile import UnknownStateError
from ..members.seats import needs_target, take_seat
from ..state.soft_state import Decision, SoftState, bump
from ..state.workers import welcome
from .protocol import Translation, owned_resources


@dataclass(frozen=True, slots=True)
class Joining:
    """A JoinGroup, and the coordinator's knowledge of its sender."""

    call: JoinGroup
    fresh: str
    """A member id that was never used."""
    is_expected: bool
    """Whether its id was given out, and it joins with that for the first time."""


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """The settings for classic members, and the translation of their bytes."""

    settings: ClassicSettings
    translation: Translation


@dataclass(frozen=True, slots=True)
class _Seating:
    """The id of a joining member, and the member whose seat it takes; None: a new seat."""

    member_id: str
    seat: Member | None = None


def join(
    group: Group, soft: SoftState, joining: Joining, terms: JoinSettings, now_ms: int
) -> Decision:
    """Decide a JoinGroup of a classic member."""
    call = joining.call
    seat = _seat_of(group, call)
    refused = refuse_terms(terms.settings, call) or _refuse_size(group, terms.settings, seat)
    refused = refused or _refuse_protocols(group, call, seat, terms.translation)
    refused = refused or refuse_metadata(call)
    if refused:
        return _refuse(soft, call, *refused)
    is_expected = joining.is_expected or terms.translation.is_of_clients
    seating = _identify(joining, seat, is_expected=is_expected)
    if isinstance(seating, Error):
        return _refuse(soft, call, seating)
    if not call.member_id and call.instance_id is None and call.asks_for_id:
        reply = JoinGroupReply(Error.MEMBER_ID_REQUIRED, seating.member_id)
        return Decision(soft, reply=reply)
    try:
        return _advance(group, soft, call, seating, terms.translation, now_ms)
    except UnknownStateError:  # a later version wrote it: its process begins anew
        return _refuse(soft, call, Error.UNKNOWN_MEMBER_ID)


def _refuse(soft: SoftState, call: JoinGroup, error: Error, message: str = "") -> Decision:
    # Kafka's groups of consumers name the refused member for its session alone.
    member_id = call.member_id if error is Error.INVALID_SESSION_TIMEOUT else ""
    return Decision(soft, reply=JoinGroupReply(error, member_id, message=message))


def _seat_of(group: Group, call: JoinGroup) -> Member | None:
    """Return the seat that the call concerns: by its instance id, or else by its member id."""
    owner = call.member_id
    if call.instance_id is not None:
        owner = group.instances.get(call.instance_id, "")
    return group.members.get(owner)


def _refuse_size(group: Group, settings: ClassicSettings, seat: Member | None) -> Refusal | None:
    if seat is not None or len(group.members) < settings.max_size:
        return None
    full = f"the group has as many members as group.max.size = {settings.max_size} allows"
    return Error.GROUP_MAX_SIZE_REACHED, f"{full}: raise it, or ask again once one has left"


def _refuse_protocols(
    group: Group, call: JoinGroup, seat: Member | None, translation: Translation
) -> Refusal | None:
    """Refuse another protocol type, and a member without a protocol that all others offer.

    A client of Kafka has to keep one of its own as well.
    """
    common = {each.name for each in call.protocols}
    if call.protocol_type != translation.protocol_type or not common:
        message = f"the group takes in classic members of the type {translation.protocol_type!a}"
        refusal = f"{message}, with a protocol of theirs, and not {call.protocol_type!a}"
        return Error.INCONSISTENT_GROUP_PROTOCOL, refusal
    for member_id in group.translated:
        classic = group.members[member_id].metadata.classic
        is_another = seat is None or seat.member_id != member_id
        if classic is not None and (is_another or translation.is_of_clients):
            common &= {each.name for each in classic.protocols}
    if common:
        return None
    message = "it has no protocol in common with all other classic members"
    return Error.INCONSISTENT_GROUP_PROTOCOL, message


def _identify(joining: Joining, seat: Member | None, *, is_expected: bool) -> _Seating | Error:
    call, fresh = joining.call, joining.fresh
    if not call.member_id:
        return _Seating(f"{call.instance_id or call.client_id}-{fresh}", seat)
    if is_expected and call.instance_id is None and seat is None:
        return _Seating(call.member_id)
    if seat is not None and seat.member_id != call.member_id:
        return Error.FENCED_INSTANCE_ID
    if seat is None or seat.metadata.classic is None:
        return Error.UNKNOWN_MEMBER_ID
    return _Seating(call.member_id, seat)


def _advance(
    group: Group,
    soft: SoftState,
    call: JoinGroup,
    seating: _Seating,
    translation: Translation,
    now_ms: int,
) -> Decision:
    """Add the member, or record its new metadata, and reconcile it."""
    seat, offered = seating.seat, call.protocols[0]
    owned: Resources | None = NOTHING
    if seat is None or seat.member_id != seating.member_id:
        member, records = _seat_newcomer(group, soft, call, seating, translation, now_ms)
    else:
        metadata = _update_metadata(seat.metadata, call, translation)
        records = [] if metadata == seat.metadata else [metadata]
        followed = translation.follow(group, soft, [(seat.member_id, offered)])
        if followed:
            why = Why.SUBSCRIPTION_CHANGED
            records += [*followed, bump(group, why, seat.member_id, now_ms)]
        member, owned = replace(seat, metadata=metadata), _owned(metadata, translation)
    soft, records, after = next_step(group, soft, Requester(seat, member, owned), records, now_ms)
    reply = JoinGroupReply(
        Error.NONE,
        member.member_id,
        after.member_epoch,
        translation.protocol_type,
        offered.name,
    )
    has_stepped = after is not member.current
    to_lead = None if has_stepped else translation.metadata_to_lead(group, member)
    if to_lead is not None:
        leads = JoinedMember(member.member_id, call.instance_id, to_lead)
        reply = replace(reply, leader=leads.member_id, members=(leads,))
    return Decision(soft, tuple(records), reply)


def _seat_newcomer(
    group: Group,
    soft: SoftState,
    call: JoinGroup,
    seating: _Seating,
    translation: Translation,
    now_ms: int,
) -> tuple[Member, list[Record]]:
    """Return the member that takes a seat, and the records of that and of what follows from it."""
    seat, offered = seating.seat, call.protocols[0]
    url = translation.read(offered).url
    request = Heartbeat(
        call.group_id, seating.member_id, JOIN_EPOCH, instance_id=call.instance_id, url=url
    )
    member = take_seat(group, seat, request)
    blank = replace(member.metadata, assignors=(), server_assignor=None, node="", classic=None)
    metadata = _update_metadata(replace(blank, instance_id=call.instance_id), call, translation)
    records = bury(group, ended_by(group, request))
    if seat is None:
        records.append(metadata)
    else:
        records += [*tombstones(seat), metadata, member.current]
    records += welcome(group, metadata, seat)
    gone = seat.member_id if seat else ""
    records += translation.follow(group, soft, [(member.member_id, offered)], gone)
    if seat is None or needs_target(group, seat, request):
        records.append(bump(group, Why.MEMBER_JOINED, metadata.worker_url, now_ms))
    elif translation.follow(group, soft, [(seat.member_id, offered)]):
        records.append(bump(group, Why.SUBSCRIPTION_CHANGED, member.member_id, now_ms))
    return replace(member, metadata=metadata), records


def _update_metadata(
    old: MemberMetadata, call: JoinGroup, translation: Translation
) -> MemberMetadata:
    """Return a member's metadata after its JoinGroup."""
    spoke = old.classic.protocol if old.classic else ""
    offered = translation.read(call.protocols[0])
    return replace(
        old,
        rack=offered.rack,
        url=offered.url,
        rebalance_timeout_ms=call.rebalance_timeout_ms,
        session_timeout_ms=call.session_timeout_ms,
        client_id=call.client_id,
        client_host=call.client_host,
        classic=ClassicMetadata(call.protocols, call.protocols[0].name, spoke),
    )


def _owned(metadata: MemberMetadata, translation: Translation) -> Resources | None:
    return None if metadata.classic is None else owned_resources(metadata.classic, translation)
