"""What members say of their assignors: what is refused, and what calls for a new target.

A member either lists the assignors that it can run itself, or names one that the coordinator
is to run. As long as any member names one, the coordinator computes (PROTOCOL §5, §6).
"""

from collections.abc import Mapping

from ....events.group import AssignorRange, Group, Member
from ....events.model import ClientAssignor, Why
from ....events.records import MemberMetadata
from ...assignors.built_in.catalogue import SERVER_ASSIGNORS
from ...messages.errors import Error
from ...messages.heartbeat import JOIN_EPOCH, Heartbeat
from ..state.validate import LONGEST_NAME
from .elect import Electorate, range_of

SCHEDULED_REBALANCE_DUE = 2


def refuse_assignors(
    group: Group, request: Heartbeat, seat: Member | None
) -> tuple[Error, str] | None:
    """Refuse what would leave nobody able to compute, or the reason why it may go on: None.

    `seat` is that which the request is for. A list that was found good once is not weighed again
    while the member is there: a group that became unable without its doing runs on. Members that
    are away keep nobody out: they run nothing, and are weighed when they return.
    """
    old = None if seat is None else seat.metadata
    named, listed = request.server_assignor, request.assignors
    if named is not None:
        return None if named in SERVER_ASSIGNORS else _unknown(named)
    if listed is None or (seat is not None and _is_settled(seat, request, listed)):
        return None
    if not listed:
        message = "ClientAssignors is empty: list one that the member runs, or a ServerAssignor"
        return Error.UNSUPPORTED_ASSIGNOR, message
    new = MemberMetadata(request.member_id, assignors=listed)
    others = Electorate.of(group).turned(old, None)
    if _is_able(others.turned(None, new)):
        return None
    others = others.without(each.metadata for each in group.members_away() if each is not seat)
    return None if _is_able(others.turned(None, new)) else _incompatible(others, listed)


def _is_settled(seat: Member, request: Heartbeat, listed: tuple[ClientAssignor, ...]) -> bool:
    """Tell whether a member says what it said before, and was there all the time."""
    returns = seat.is_away and request.member_epoch == JOIN_EPOCH
    return not returns and _versions(seat.metadata.assignors) == _versions(listed)


def _is_able(electorate: Electorate) -> bool:
    return bool(electorate.server_assignor(SERVER_ASSIGNORS) or electorate.fit())


def _unknown(name: str) -> tuple[Error, str]:
    known = " or ".join(SERVER_ASSIGNORS)
    unknown = f"there is no server assignor {name[:LONGEST_NAME]!r}"
    return Error.UNSUPPORTED_ASSIGNOR, f"{unknown}: name {known}, or list ClientAssignors"


def _incompatible(others: Electorate, listed: tuple[ClientAssignor, ...]) -> tuple[Error, str]:
    """Say what the member would have to list in order to fit to the others."""
    theirs = sorted(others.fit())
    shared = [name for name in theirs if any(each.name == name for each in listed)]
    if not theirs:
        message = (
            "the others have no assignor that one of them can run for all: name a ServerAssignor"
        )
        return Error.UNSUPPORTED_ASSIGNOR, message
    if not shared:
        known = ", ".join(theirs)
        message = f"no assignor in common: the group runs {known}; list one of those as well"
        return Error.UNSUPPORTED_ASSIGNOR, message
    name = shared[0]
    low = min(each[1] for each in others.ranges if each[0] == name)
    high = max(each[2] for each in others.ranges if each[0] == name)
    message = (
        f"nobody could compute for all with {name}: the others read versions {low} to {high};"
        " join with a range that covers those, or write a version that the others read"
    )
    return Error.UNSUPPORTED_ASSIGNOR, message


def change_of_mode(old: MemberMetadata, request: Heartbeat) -> Mapping[str, object]:
    """Return what the request changes of how the member wants targets computed.

    To list assignors ends naming a server assignor, and the other way round.
    """
    named, listed = request.server_assignor, request.assignors
    if named is not None and (named != old.server_assignor or old.assignors):
        return {"server_assignor": named, "assignors": ()}
    if listed is not None and (listed != old.assignors or old.server_assignor is not None):
        return {"server_assignor": None, "assignors": listed}
    return {}


def change_in(group: Group, old: MemberMetadata, new: MemberMetadata) -> Why | None:
    """Return what changed of a member's assignors that a new target must answer to.

    To name a server assignor is a preference: the next computation goes by it, but the
    target that stands is as good as it was.
    """
    if old.assignors is new.assignors or new.server_assignor is not None:
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


def _versions(assignors: tuple[ClientAssignor, ...]) -> list[AssignorRange]:
    return [range_of(each) for each in assignors]


def _ranges(assignors: tuple[ClientAssignor, ...]) -> list[tuple[str, int, int]]:
    return [(each.name, each.minimum_version, each.maximum_version) for each in assignors]


def _is_premature(group: Group, assignor: ClientAssignor) -> bool:
    """Tell whether a member calls for what a recorded deadline will bring by itself."""
    return assignor.reason == SCHEDULED_REBALANCE_DUE and group.next_deadline_ms is not None
