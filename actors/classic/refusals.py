"""Which calls of its members a classic group refuses, and with which errors.

They are those of Kafka's broker. Calls that would cost a group too much are refused as well, and
bytes that its other members could not read.
"""

from collections.abc import Iterator
from typing import Final

from ...events.group import Group
from ...events.model import Why
from ...events.records import ClassicGroup
from ..messages.classic import (
    ClassicCall,
    ClassicHeartbeatReply,
    ClassicReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    SyncGroup,
    SyncGroupReply,
)
from ..messages.errors import Error
from .bytes.primitives import LONGEST_ASSIGNMENT, LONGEST_METADATA
from .embedded import flaw_in_assignment, flaw_in_metadata
from .state import ClassicDraft, ClassicSettings, ClassicState, RoundPhase

MOST_PROTOCOLS: Final = 16
"""How many protocols a member may offer."""
LARGEST_GROUP: Final = 16 << 20
"""How many bytes of metadata all members may have: the leader gets them in one answer."""
LONGEST_ID: Final = 256
"""How long the id of a member, an instance or a client may be, and other names, in bytes."""
LONGEST_TIMEOUT_MS: Final = (1 << 31) - 1

Refusal = tuple[Error, str]


def refusal_of(call: ClassicCall, error: Error, message: str) -> ClassicReply:
    """Return the answer to a call that changes nothing."""
    if isinstance(call, JoinGroup):
        return JoinGroupReply(error, call.member_id, message=message)
    if isinstance(call, SyncGroup):
        return SyncGroupReply(error, message=message)
    if isinstance(call, LeaveGroup):
        return LeaveGroupReply(error, message=message)
    return ClassicHeartbeatReply(error, message)


def refuse_group(group: Group, call: ClassicCall) -> Refusal | None:
    """Return why a call is not for this group; None if it is."""
    if not call.group_id:
        return Error.INVALID_GROUP_ID, "the group id is empty"
    if call.group_id != group.group_id:
        return Error.NOT_COORDINATOR, f"group {call.group_id[:LONGEST_ID]!a} is not served here"
    return None


def refuse_join(draft: ClassicDraft, call: JoinGroup) -> Refusal | None:
    """Return the error of a JoinGroup that no sender may send now; None: it may continue."""
    refused = refuse_terms(draft.settings, call) or _refuse_size(draft, call)
    return refused or _refuse_protocols(draft, call) or refuse_metadata(call)


def refuse_terms(settings: ClassicSettings, call: JoinGroup) -> Refusal | None:
    """Return the error of a JoinGroup with invalid fields; None: it may continue."""
    least_ms, longest_ms = settings.least_session_ms, settings.longest_session_ms
    if not least_ms <= call.session_timeout_ms <= longest_ms:
        allowed = f"allowed is {least_ms} to {longest_ms} ms"
        message = f"the session timeout is {call.session_timeout_ms} ms: {allowed}"
        return Error.INVALID_SESSION_TIMEOUT, message
    if flaw := next(_flaws_in(call), ""):
        return Error.INVALID_REQUEST, f"{flaw}; nothing was changed"
    return None


def _flaws_in(call: JoinGroup) -> Iterator[str]:
    names = [each.name for each in call.protocols]
    texts = call.member_id, call.instance_id or "", call.client_id, call.client_host
    for text in (*texts, call.protocol_type, *names):
        if not _is_short(text):
            longest = f"{LONGEST_ID} bytes of UTF-8"
            yield f"{text[:40]!a}… is longer than {longest}, not encodable, or holds a NUL"
    if call.instance_id is not None and not call.instance_id:
        yield "the instance id is empty"
    if not 0 <= call.rebalance_timeout_ms <= LONGEST_TIMEOUT_MS:
        yield f"the rebalance timeout is {call.rebalance_timeout_ms} ms"
    if len(names) > MOST_PROTOCOLS or len(set(names)) < len(names):
        yield f"{len(names)} protocols: allowed are {MOST_PROTOCOLS}, each of another name"
    if sum(len(each.metadata) for each in call.protocols) > LONGEST_METADATA:
        yield f"the metadata is larger than {LONGEST_METADATA} bytes"


def _is_short(text: str) -> bool:
    try:
        # The parts of the log's keys are separated by NUL.
        return "\0" not in text and len(text.encode()) <= LONGEST_ID
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _refuse_size(draft: ClassicDraft, call: JoinGroup) -> Refusal | None:
    """Refuse a member that would make the group too large."""
    state, most = draft.state, draft.settings.max_size
    if state.metadata_bytes >= LARGEST_GROUP:
        message = f"the metadata of all members is larger than {LARGEST_GROUP} bytes"
        return Error.GROUP_MAX_SIZE_REACHED, f"{message}: ask again once one has left"
    if seat_of(draft, call) is not None or len(state.seats) < most:
        return None
    full = f"the group has as many members as group.max.size = {most} allows"
    return Error.GROUP_MAX_SIZE_REACHED, f"{full}: raise it, or ask again once one has left"


def seat_of(draft: ClassicDraft, call: JoinGroup) -> str | None:
    """Return the id of the member that rejoins: its own, or that of its static seat."""
    state = draft.state
    if not call.member_id and call.instance_id is not None:
        return state.instances.get(call.instance_id)
    return call.member_id if call.member_id in state.seats else None


def _refuse_protocols(draft: ClassicDraft, call: JoinGroup) -> Refusal | None:
    """Refuse a member without a protocol that all others offer.

    Those that it offered earlier count as well, as at a broker; but a worker of the node may change
    all of its protocols.
    """
    state = draft.state
    itself = seat_of(draft, call) if draft.settings.grants_from_log else None
    names = {each.name for each in call.protocols}
    if not call.protocol_type or not names:
        return Error.INCONSISTENT_GROUP_PROTOCOL, "no protocol, or no type of it, is named"
    others = len(state.seats) - (itself is not None)
    if state.seats and call.protocol_type != state.protocol_type:
        message = f"the group's protocol type is {state.protocol_type!a}"
        return Error.INCONSISTENT_GROUP_PROTOCOL, f"{message}, not {call.protocol_type!a}"
    if not others:
        return None
    own = {each.name for each in state.seats[itself].member.protocols} if itself else set[str]()
    if all(state.offers.get(name, 0) - (name in own) < others for name in names):
        common = [each for each, count in state.offers.items() if count - (each in own) == others]
        message = f"the members have {', '.join(sorted(common))} in common; this one has not"
        return Error.INCONSISTENT_GROUP_PROTOCOL, message
    return None


def refuse_metadata(call: JoinGroup) -> Refusal | None:
    """Refuse metadata that the leader could not read: it would never assign, and all would wait."""
    for each in call.protocols:
        if flaw := flaw_in_metadata(call.protocol_type, each.name, each.metadata):
            message = f"the metadata for {each.name!a} cannot be read ({flaw})"
            return Error.INCONSISTENT_GROUP_PROTOCOL, f"{message}; nothing was changed"
    return None


def refuse_member(draft: ClassicDraft, member_id: str, instance_id: str | None) -> Error | None:
    """Return why a caller may not use a member id: it is unknown, or the instance is fenced."""
    return refuse_seat(draft.state, member_id, instance_id)


def refuse_seat(state: ClassicState, member_id: str, instance_id: str | None) -> Error | None:
    """Return the error of `refuse_member` for a group between two decisions."""
    if instance_id is not None:
        holder = state.instances.get(instance_id)
        if holder is not None and holder != member_id:
            return Error.FENCED_INSTANCE_ID
        return Error.UNKNOWN_MEMBER_ID if holder is None else None
    return None if member_id in state.seats else Error.UNKNOWN_MEMBER_ID


def refuse_generation(
    draft: ClassicDraft, member_id: str, instance_id: str | None, generation: int
) -> Error | None:
    """Return why a call is refused: for its member id, or for its generation."""
    if refused := refuse_member(draft, member_id, instance_id):
        return refused
    last = draft.generation
    is_current = last is not None and last.generation == generation
    return None if is_current or _is_of_before(draft, generation) else Error.ILLEGAL_GENERATION


def _is_of_before(draft: ClassicDraft, generation: int) -> bool:
    """Return whether a generation is an epoch of the connect group before its conversion.

    Its member had not reached the last epoch: it stays, and is to rejoin in the first round.
    """
    last = draft.group.classic
    is_converted = last is not None and last.cause.why is Why.GROUP_DOWNGRADED
    is_over = draft.state.phase is not RoundPhase.PREPARING
    return is_converted and not is_over and generation < draft.group.group_epoch


def refuse_commit(
    state: ClassicState,
    last: ClassicGroup | None,
    member_id: str,
    instance_id: str | None,
    generation: int,
) -> Error | None:
    """Return why a caller may not commit offsets to a group that has classic members."""
    if not member_id and instance_id is None:
        return Error.UNKNOWN_MEMBER_ID
    if refused := refuse_seat(state, member_id, instance_id):
        return refused
    if last is None or last.generation != generation:
        return Error.ILLEGAL_GENERATION
    return Error.REBALANCE_IN_PROGRESS if state.phase is RoundPhase.COMPLETING else None


def refuse_sync(draft: ClassicDraft, call: SyncGroup) -> Refusal | None:
    """Return why a SyncGroup changes nothing; None if it may go on."""
    if refused := refuse_generation(draft, call.member_id, call.instance_id, call.generation):
        return refused, ""
    last = draft.generation
    if last is None or not last.protocol:
        return Error.UNKNOWN_MEMBER_ID, ""
    type_, name = call.protocol_type, call.protocol
    named = last.protocol_type if type_ is None else type_, last.protocol if name is None else name
    if named != (last.protocol_type, last.protocol):
        message = f"the generation speaks {last.protocol_type} {last.protocol}"
        return Error.INCONSISTENT_GROUP_PROTOCOL, message
    if sum(map(len, call.assignments.values())) > LONGEST_ASSIGNMENT:
        return Error.INVALID_REQUEST, f"the assignments are larger than {LONGEST_ASSIGNMENT} bytes"
    for member_id, assignment in call.assignments.items():
        if flaw := flaw_in_assignment(*named, assignment):
            message = f"the assignment of {member_id[:40]!a} cannot be read ({flaw})"
            return Error.INCONSISTENT_GROUP_PROTOCOL, message
    return None
