"""The calls of Kafka's classic protocol, and their answers.

They are Kafka's JoinGroup, SyncGroup, Heartbeat and LeaveGroup, of any version; fields that a
version does not have are at their defaults. An answer has the `number` of its call. Metadata and
assignments are bytes that only the members understand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...events.model import ClassicProtocol
from .errors import Error
from .members import HeartbeatReply
from .pickling import pickled_by_values

NO_GENERATION = -1
"""The generation of a call or answer that has none."""


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """A member joins or rejoins, and offers its protocols, the preferred one first.

    An empty `member_id` asks for one.
    """

    group_id: str
    member_id: str
    protocol_type: str
    protocols: tuple[ClassicProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    reason: str = ""
    """Why the member joins, for logs (KIP-800)."""
    asks_for_id: bool = True
    """Whether it joins again with the id that it is given (version 4 and later, KIP-394)."""
    may_skip_assignment: bool = True
    """Whether it can lead without assigning (version 9, KIP-814)."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """One member of a generation, in the answer to its leader."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupReply:
    """The group answers a join: once all have joined, or at once where it is refused."""

    error: Error
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    """The member id of the leader."""
    members: tuple[JoinedMember, ...] = ()
    """All members, for which the leader assigns; empty for others."""
    skips_assignment: bool = False
    """Whether the leader must not assign (KIP-814)."""
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """A member asks for its assignment; the leader brings those of all, by member id."""

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """By member id; empty unless the leader sends it."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class SyncGroupReply:
    """The group answers with the member's assignment, once the leader has brought it."""

    error: Error
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""
    message: str = ""
    log_offset: int = -1
    """How far the log has to be read for all that was granted; -1: it was not said."""
    number: int = 0


@pickled_by_values
@dataclass(frozen=True, slots=True)
class ClassicHeartbeat:
    """A member's heartbeat."""

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    number: int = 0


@pickled_by_values
@dataclass(frozen=True, slots=True)
class ClassicHeartbeatReply:
    """The group answers; REBALANCE_IN_PROGRESS asks the member to join again."""

    error: Error
    message: str = ""
    has_joined: bool = False
    """Whether the round that it tells of has the member's JoinGroup already; not Kafka's."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Leaver:
    """A member that leaves: by its id, by its instance id, or by both."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""
    """Why the member leaves, for logs (KIP-800)."""


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Members leave for good, or an operator has them leave."""

    group_id: str
    leavers: tuple[Leaver, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class LeaverReply:
    """The result of the leave of one member."""

    member_id: str
    instance_id: str | None
    error: Error


@dataclass(frozen=True, slots=True)
class LeaveGroupReply:
    """The group answers, for each that was to leave and in their order."""

    error: Error
    leavers: tuple[LeaverReply, ...] = ()
    message: str = ""
    number: int = 0


ClassicCall = JoinGroup | SyncGroup | ClassicHeartbeat | LeaveGroup
"""What may be asked of a classic group."""

ClassicReply = JoinGroupReply | SyncGroupReply | ClassicHeartbeatReply | LeaveGroupReply

MemberReply = HeartbeatReply | ClassicReply
"""What a member of either protocol is answered."""
