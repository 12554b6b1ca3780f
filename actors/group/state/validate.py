"""Validation of a heartbeat, without a look at the group (PROTOCOL §3, Validation)."""

from collections import Counter

from ....events.group import LARGEST_EPOCH
from ....events.model import CONNECTOR, ClientAssignor, Resource
from ....events.records import MemberMetadata
from ...messages.members import JOIN_EPOCH, TEMPORARY_LEAVE_EPOCH, Heartbeat

LONGEST_NAME = 200
"""Bytes of an id: they are part of the log's keys."""

LONGEST_CONNECTOR = 249
"""Bytes of a connector's name, as of a topic's in Kafka: a key has a source partition beside it."""

LARGEST_NUMBER = (1 << 31) - 1
"""The largest int32."""

LONGEST_INT = 63
"""Bits of a number that any log and any answer can encode, without its sign."""

LONGEST_TEXT = 1_024
"""Bytes of a text about a member, such as its url."""

LONGEST_SESSION_MS = 1_800_000
"""The longest session that a member may name, as Kafka's `group.max.session.timeout.ms`."""

LARGEST_METADATA = 64 * 1_024
"""Bytes of an assignor's metadata: each snapshot carries those of all members."""

UNCHANGED = -1
"""The value of an unchanged time in a request."""


def flaw(request: Heartbeat, known: MemberMetadata | None = None) -> str:
    """Return what makes the request invalid, or nothing; an INVALID_REQUEST's message.

    What is `known` of the member was validated before, and is not checked again.
    """
    found = _flaw_in_ids(request) or _flaw_in_owned(request)
    if found or (known is not None and request.is_bare):
        return found
    found = _flaw_in_values(request) or _flaw_in_assignors(request, known)
    return found or (_flaw_in_names(request) if known is None else "")


def _flaw_in_names(request: Heartbeat) -> str:
    """Return which id is unfit for the log's keys, or nothing; an empty member id is replaced."""
    member_id, instance_id = request.member_id, request.instance_id
    found = flaw_in_name(member_id, "MemberId") if member_id else ""
    if not found and instance_id is not None:
        found = flaw_in_name(instance_id, "InstanceId")
    return found


def flaw_in_name(name: str, what: str, longest: int = LONGEST_NAME) -> str:
    """Return what makes a name unfit for the log's keys, or nothing."""
    if not name or not name.strip():
        return f"{what} is empty"
    if found := flaw_in_text(name, what):
        return found
    if "\0" in name or len(name.encode()) > longest:
        return f"{what} is longer than {longest} bytes or holds a zero byte"
    return ""


def flaw_in_text(text: str, what: str) -> str:
    """Return what makes a text unfit for the log, or nothing."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{what} holds a lone surrogate, which is no Unicode"
    return ""


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
    """Return which field is not encodable, or nothing."""
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


def _flaw_in_owned(request: Heartbeat) -> str:
    owned = request.owned
    if request.member_epoch == JOIN_EPOCH and (owned is None or owned):
        return "a join (epoch 0) must say that it owns nothing: owned present and empty"
    if not owned:
        return ""
    return _flaw_in_leave(request) or _flaw_in_resources(owned)


def _flaw_in_leave(request: Heartbeat) -> str:
    """Return what is wrong with a leave of a member that still owns something, or nothing.

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


def _flaw_in_assignors(request: Heartbeat, known: MemberMetadata | None) -> str:
    assignors = request.assignors
    if assignors is None:
        return ""
    if request.server_assignor is not None:
        return "ServerAssignor and ClientAssignors exclude each other: send one of them"
    if known and assignors == known.assignors:
        return ""
    names = Counter(assignor.name for assignor in assignors)
    if twice := [name for name, count in names.items() if count > 1]:
        return f"assignor {twice[0]!r} is named twice: name each once"
    return next((found for each in assignors if (found := flaw_in_assignor(each))), "")


def flaw_in_assignor(assignor: ClientAssignor) -> str:
    """Return what is wrong with one listed assignor, or nothing."""
    low, high, version = assignor.minimum_version, assignor.maximum_version, assignor.version
    if found := flaw_in_name(assignor.name, "an assignor's name"):
        return found
    if max(high, assignor.reason) > LARGEST_NUMBER or assignor.reason < 0:
        return f"assignor {assignor.name!r} has a number outside 0 to {LARGEST_NUMBER}"
    if len(assignor.metadata) > LARGEST_METADATA:
        return f"assignor {assignor.name!r} has metadata of more than {LARGEST_METADATA} bytes"
    if low < -1 or high < 0 or high < low:
        allowed = "it must be -1 <= minimum <= maximum and 0 <= maximum"
        found = f"[{show_number(low)}, {show_number(high)}]"
        return f"assignor {assignor.name!r} has the range {found}: {allowed}"
    if not low <= version <= high:
        outside = f"writes version {show_number(version)} outside [{low}, {high}]"
        return f"assignor {assignor.name!r} {outside}: it must read what it writes"
    return ""


def show_number(number: int) -> str:
    """Return a number's digits; Python does not format numbers with too many."""
    return str(number) if number.bit_length() <= LONGEST_INT else "beyond 64 bit"


def flaw_in_first_join(request: Heartbeat) -> str:
    """Return what is missing in the join of a new member, or nothing."""
    if request.rebalance_timeout_ms <= 0:
        return "a join needs a RebalanceTimeoutMs above 0"
    names_assignor = request.assignors or request.server_assignor is not None
    if not names_assignor and request.subscription is None:
        return "a join needs an assignor: ClientAssignors or ServerAssignor"
    return ""
