"""What a conversion has to know of the bytes that classic members tell each other.

The rules of translation are the same for every type of group; what resources are called in the
bytes, and what a member must be told beside them, is not. So each protocol type that can be
converted brings one `Translation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ....events.group import Group
from ....events.model import NOTHING, ClassicMember, ClassicProtocol, Grants, Resources
from ....events.records import Record
from ...classic.bytes.primitives import UnreadableError
from ..state.soft_state import SoftState


@dataclass(frozen=True, slots=True)
class Said:
    """What a member tells with one of its protocols."""

    owned: Resources | None = NOTHING
    """All that it runs; None: it does not say."""
    url: str = ""
    """Where its worker is reached, where members have such a place."""
    offset: int = 0
    """How far it has read what all of them go by, where there is such a log."""
    version: int = 0
    """The version in which it tells that."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a member is told when it asks for its assignment."""

    granted: Resources
    """All that it may run."""
    owned: Resources
    """What it runs, as it said when it joined."""
    leader: str
    """The member id of who is named as leader: nobody leads, but some ask their leader things."""
    leader_url: str
    offset: int
    """How far all of them are to have read."""
    version: int = 0
    """The version in which the member told what it told."""


class Held(NamedTuple):
    """What a classic member has, each resource with its grant epoch."""

    assigned: Grants
    pending: Grants
    """What it was told to give up, and may still run."""


class NotYetError(UnreadableError):
    """What a conversion goes by is not known yet, and will be in a moment."""


class Translation(Protocol):
    """The bytes of one protocol type; what cannot be read raises UnreadableError."""

    protocol_type: str

    def read(self, offered: ClassicProtocol) -> Said:
        """Return what a member tells."""
        ...

    def stops_first(self, protocol: str) -> bool:
        """Tell whether who speaks this protocol stops everything before it joins."""
        ...

    def held(self, protocol: str, member: ClassicMember, generation: int) -> Held:
        """Return what a member of this generation may run."""
        ...

    def waiting(self, member: ClassicMember, generation: int) -> Held:
        """Return what a member may run that waits for its assignment of this generation."""
        ...

    def assignment(self, protocol: str, given: Given) -> bytes:
        """Return what the member is told, in its own version; raises UnwritableError."""
        ...

    def follow(
        self,
        group: Group,
        soft: SoftState,
        offers: Sequence[tuple[str, ClassicProtocol]],
        gone: str = "",
    ) -> Sequence[Record]:
        """Return what else follows for the group from what members offer, and from one's end."""
        ...

    def bury(self, group: Group) -> Sequence[Record]:
        """Return what else ends with a group that becomes classic."""
        ...
