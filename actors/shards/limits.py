"""The limits of what a process of groups keeps: groups, members, and what members bring.

Whoever reaches the listener may join groups. A call that would go beyond a limit is refused, and
changes nothing; members that bring no more than before are never refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...events.group import Group
from ...events.model import ClassicProtocol
from ...events.records import ConsumerSubscription
from ..classic.coordinator import ClassicCoordinator
from ..classic.state import size_of_protocols
from ..group.state.settings import DEFAULT_LIMITS
from ..messages.classic import JoinGroup, SyncGroup
from ..messages.consumers import ConsumerGroupHeartbeat
from ..messages.errors import Error
from ..messages.groups import ConnectCall, SharedCall
from ..messages.members import JOIN_EPOCH, Heartbeat

LONGEST_IDS: Final = 440
"""The maximum total length of group id and member id in bytes: together they are log keys."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The members and bytes of metadata that a group keeps, or that a call adds to it."""

    members: int = 0
    metadata_bytes: int = 0

    def plus(self, other: "Footprint") -> "Footprint":
        """Return the sum of both."""
        return Footprint(self.members + other.members, self.metadata_bytes + other.metadata_bytes)

    def minus(self, other: "Footprint") -> "Footprint":
        """Return the difference."""
        return self.plus(Footprint(-other.members, -other.metadata_bytes))


NOTHING: Final = Footprint()
NO_SUBSCRIPTION: Final = ConsumerSubscription("")


def footprint_of(group: Group, classic: ClassicCoordinator) -> Footprint:
    """Return a group's footprint: its members, and the bytes of their metadata."""
    members = len(group.members) + classic.count
    return Footprint(members, group.metadata_bytes + classic.metadata_bytes)


def growth_by(call: SharedCall, group: Group, classic: ClassicCoordinator) -> Footprint:
    """Return by how much a call would make a group grow, at most."""
    if isinstance(call, JoinGroup):
        known = _protocols_of(call, group, classic)
        grows = size_of_protocols(call.protocols) - size_of_protocols(known or ())
        return Footprint(int(known is None), max(0, grows))
    if isinstance(call, SyncGroup):
        size = sum(map(len, call.assignments.values()))
        return Footprint(0, max(0, size - classic.assignment_bytes))
    if isinstance(call, ConsumerGroupHeartbeat):
        return _growth_of_consumers(call, group)
    if isinstance(call, ConnectCall) and isinstance(call.request, Heartbeat):
        return Footprint(int(_is_newcomer(call.request, group)))
    return NOTHING


def _is_newcomer(request: Heartbeat, group: Group) -> bool:
    """Return whether a member joins that has no seat in the group yet."""
    seat = group.instances.get(request.instance_id or "", request.member_id)
    return request.member_epoch == JOIN_EPOCH and seat not in group.members


def _growth_of_consumers(call: ConsumerGroupHeartbeat, group: Group) -> Footprint:
    """Return a group's growth by a heartbeat; a returning consumer counts as known."""
    names, pattern = call.subscribed_topic_names, call.subscribed_topic_regex
    is_known = call.member_id in group.members
    member_id = call.member_id if is_known else group.instances.get(call.instance_id or "", "")
    is_new = call.member_epoch == JOIN_EPOCH and member_id not in group.members
    had = group.subscriptions.get(member_id, NO_SUBSCRIPTION)
    grows = 0 if names is None else sum(map(len, names)) - sum(map(len, had.names))
    grows += 0 if pattern is None else len(pattern) - len(had.pattern)
    return Footprint(int(is_new), max(0, grows))


def _protocols_of(
    call: JoinGroup, group: Group, classic: ClassicCoordinator
) -> Sequence[ClassicProtocol] | None:
    """Return a member's present protocols, in a group of either type; None: it is new."""
    if (known := classic.member(call.member_id, call.instance_id)) is not None:
        return known.protocols
    member_id = call.member_id or group.instances.get(call.instance_id or "", "")
    member = group.members.get(member_id)
    if member is None:
        return None
    return member.metadata.classic.protocols if member.metadata.classic else ()


def flaw_in_ids(call: SharedCall) -> str:
    """Return an error if the ids of a joining member are too long for a log key; "" if not."""
    request = call.request if isinstance(call, ConnectCall) else call
    if not isinstance(request, JoinGroup | ConsumerGroupHeartbeat | Heartbeat):
        return ""
    if not isinstance(request, JoinGroup) and request.member_epoch != JOIN_EPOCH:
        return ""
    names = request.member_id, request.instance_id or "", request.client_id or ""
    longest = max(len(each.encode(errors="surrogatepass")) for each in names)
    if longest + len(call.group_id.encode(errors="surrogatepass")) <= LONGEST_IDS:
        return ""
    return f"the ids of the group and of the member have more than {LONGEST_IDS} bytes together"


class KeptByClients:
    """The footprints of all groups of a process, and the limits of their sum."""

    def __init__(self) -> None:
        self.limits = DEFAULT_LIMITS
        self.total = NOTHING
        """The sum of all footprints."""
        self._of_groups: dict[str, Footprint] = {}
        """The footprint of each group that has one, by id."""

    def set_footprint(self, group_id: str, footprint: Footprint) -> None:
        """Record the footprint of a group."""
        before = self._of_groups.pop(group_id, NOTHING)
        if footprint != NOTHING:
            self._of_groups[group_id] = footprint
        if footprint != before:
            self.total = self.total.plus(footprint.minus(before))

    def refuse(self, growth: Footprint) -> tuple[Error, str] | None:
        """Return why the process must not grow so much, None if it may."""
        after, limits = self.total.plus(growth), self.limits
        if growth.members and after.members > limits.members:
            full = f"its groups have as many members as kafka.max.members = {limits.members} allows"
        elif growth.metadata_bytes and after.metadata_bytes > limits.metadata_bytes:
            full = (
                "the metadata of its groups' members would be larger than "
                f"kafka.max.metadata.bytes = {limits.metadata_bytes} allows"
            )
        else:
            return None
        return Error.GROUP_MAX_SIZE_REACHED, f"{full}: raise it, or ask again once some have left"
