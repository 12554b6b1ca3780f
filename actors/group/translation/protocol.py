"""The bytes that classic members send each other, as conversions and mixed groups use them.

The rules of translation are the same for every protocol type; the bytes are not. So each protocol
type that can be converted has a `Translation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ....events.group import Group, Member
from ....events.model import (
    NOTHING,
    ClassicMember,
    ClassicMetadata,
    ClassicProtocol,
    Grants,
    Resources,
)
from ....events.records import Record
from ...classic.bytes.primitives import UnreadableError
from ...messages.classic import SyncGroup
from ...messages.members import ReadConfigs
from ..state.soft_state import SoftState


@dataclass(frozen=True, slots=True)
class OfferedMetadata:
    """A member's metadata for one protocol."""

    owned: Resources | None = NOTHING
    """All that it owns; None: it does not say."""
    url: str = ""
    """The URL of a worker."""
    offset: int = 0
    """How far a worker has read the configs."""
    version: int = 0
    """The version of the metadata."""
    rack: str | None = None
    """The rack of a consumer."""


@dataclass(frozen=True, slots=True)
class AssignmentContent:
    """The content of a member's assignment, whatever its protocol."""

    granted: Resources
    """All that it may run."""
    owned: Resources
    """What it owned when it joined."""
    leader: str
    """The id of the member that stands as leader; it does not assign."""
    leader_url: str
    offset: int
    """How far a worker has to have read the configs before it starts anything."""
    version: int = 0
    """The version of the member's own metadata."""


class HeldResources(NamedTuple):
    """The resources of a classic member, each with its grant epoch."""

    assigned: Grants
    pending: Grants
    """What it was told to revoke, and may still run."""


class NotYetError(UnreadableError):
    """A conversion needs a fact that is not known yet, but will be soon."""


class Translation(Protocol):
    """Reads and writes the bytes of one protocol type; raises UnreadableError."""

    protocol_type: str
    is_of_clients: bool
    """Whether the members are clients of Kafka, whose broker is less strict with ids, and stricter
    with protocols."""

    def read(self, offered: ClassicProtocol) -> OfferedMetadata:
        """Decode a member's metadata."""
        ...

    def stops_first(self, protocol: str) -> bool:
        """Return whether members stop everything before they join by this protocol."""
        ...

    def held_resources(
        self, protocol: str, member: ClassicMember, generation: int
    ) -> HeldResources:
        """Return the resources that a member of this generation holds."""
        ...

    def resources_while_waiting(self, member: ClassicMember, generation: int) -> HeldResources:
        """Return the resources of a member that waits for its assignment of this generation."""
        ...

    def assignment(self, protocol: str, content: AssignmentContent) -> bytes:
        """Return the bytes of an assignment, in the member's version; raises UnwritableError."""
        ...

    def config_offset(self, group: Group) -> int:
        """Return how far workers have to have read the configs; for other members it is unused."""
        return group.configured_offset

    def metadata_to_lead(self, group: Group, member: Member) -> bytes | None:
        """Return the metadata with which a member has to lead a round of its own; None: it has not.

        What it assigns to itself then is all that is to run (see `outside`). Raises
        UnreadableError.
        """
        del group, member
        return None

    def read_led(self, group: Group, member: Member, call: SyncGroup) -> ReadConfigs | None:
        """Return what a member has assigned in such a round; None: nothing to go by.

        Raises UnreadableError.
        """
        del group, member, call
        return None

    def follow(
        self,
        group: Group,
        soft: SoftState,
        offers: Sequence[tuple[str, ClassicProtocol]],
        gone: str = "",
    ) -> Sequence[Record]:
        """Return further records that follow from members' metadata, or from a member's end."""
        del group, soft, offers, gone
        return ()

    def bury(self, group: Group) -> Sequence[Record]:
        """Return further records for the end of a group that becomes classic."""
        del group
        return ()


def offered_metadata(classic: ClassicMetadata, translation: Translation) -> OfferedMetadata:
    """Return a classic member's metadata for its first protocol; raises UnreadableError."""
    return translation.read(classic.protocols[0])


def owned_resources(classic: ClassicMetadata, translation: Translation) -> Resources | None:
    """Return the resources that a member owned when it joined; None: it did not report them.

    One that stops everything before it joins owns nothing, whatever its metadata still name. Raises
    UnreadableError.
    """
    if classic.spoke and translation.stops_first(classic.spoke):
        return NOTHING
    return offered_metadata(classic, translation).owned


def assignment_content(group: Group, member: Member, translation: Translation) -> AssignmentContent:
    """Return the content of a classic member's assignment, as of now.

    The config offset is that of the record which says what is configured, or the furthest that any
    classic member has read if that is higher: one that all can reach. Raises UnreadableError.
    """
    leader = min(group.translated, default=member.member_id)
    # A client of Kafka is told nothing of the others, who may be many, and name many topics each.
    read = {member.member_id} if translation.is_of_clients else group.translated
    offers = {
        each: offered_metadata(classic, translation)
        for each in read
        if (classic := group.members[each].metadata.classic) is not None
    }
    classic = member.metadata.classic
    owned = None if classic is None else owned_resources(classic, translation)
    return AssignmentContent(
        frozenset(member.current.assigned),
        owned or NOTHING,
        leader,
        offers[leader].url if leader in offers else member.metadata.url,
        max([translation.config_offset(group), *(each.offset for each in offers.values())]),
        offers[member.member_id].version if member.member_id in offers else 0,
    )
