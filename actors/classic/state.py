"""The soft state of a classic group between two records, and one decision in the making.

A generation is made in a *round*, which is what Kafka calls a rebalance. Each phase of a round ends
when all members have done their part, or when its time is up:

    EMPTY ──join──▶ PREPARING ──all have joined──▶ COMPLETING ──the leader has assigned──▶ STABLE
                        ▲                               │ a member joins anew, leaves, or is lost │
                        └───────────────────────────────┴─────────────────────────────────────────┘

* PREPARING (PreparingRebalance): members wait for the answer to their JoinGroup. The phase ends
  with a new generation, a record of it, and an answer to each; dynamic members that have not joined
  are removed. The first round of an empty group waits for more members first (KIP-134).
* COMPLETING (CompletingRebalance): members wait for the answer to their SyncGroup. That of the
  leader brings the assignments.
* STABLE: members send heartbeats. Those that do not send SyncGroup in time are removed.

*Waiting answers are data*: a seat has who waits for which answer, and a decision has the answers.
What goes on within a round is soft state: a restart loses it, and members that get no answer ask
again. The last generation, its members and their assignments are in the log.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from ...events.group import Group
from ...events.model import Cause, ClassicMember, ClassicProtocol, Why
from ...events.records import ClassicGroup
from ..messages.classic import ClassicReply
from ..messages.commands import Address, AddressedReply
from ..timing import Now
from .grants import needs_another_round


class RoundPhase(Enum):
    """The phase of a rebalance round."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ClassicSettings:
    """The settings of a classic group; all times in milliseconds."""

    initial_delay_ms: int = 3_000
    """How long the first round of an empty group waits for more members, counted from the last."""
    least_session_ms: int = 6_000
    longest_session_ms: int = 1_800_000
    max_size: int = 1 << 31
    """How many members may be in the group."""
    grants_from_log: bool = False
    """Whether members start only what the log grants them; Connect's own workers do not."""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """The sender of a call that waits for its answer, and the number that the answer must carry."""

    sender: Address
    number: int

    def reply(self, reply: ClassicReply) -> AddressedReply:
        """Return an answer to this call."""
        return AddressedReply(self.sender, replace(reply, number=self.number))


@dataclass(frozen=True, slots=True)
class ClassicSeat:
    """A member, and the call that it waits for."""

    member: ClassicMember
    joining: PendingCall | None = None
    """Who waits for the answer to its JoinGroup."""
    syncing: PendingCall | None = None
    """Who waits for the answer to its SyncGroup."""
    is_new: bool = False
    """Whether it has not been in any generation yet."""
    is_pending_sync: bool = False
    """Whether it has not sent SyncGroup in this generation yet."""
    has_assignment: bool = False
    """Whether it was sent its assignment of the last generation, and speaks that protocol now."""
    has_stopped: bool = False
    """Whether it had stopped all that it ran when it joined."""

    @property
    def member_id(self) -> str:
        """The member id, which names the seat."""
        return self.member.member_id


@dataclass(slots=True)
class ClassicState:
    """The soft state of one group; a decision changes a copy, which then replaces it."""

    phase: RoundPhase = RoundPhase.EMPTY
    seats: dict[str, ClassicSeat] = field(default_factory=dict[str, ClassicSeat])
    """By member id, in the order in which they joined."""
    protocol_type: str = ""
    leader: str = ""
    pending_joins: dict[str, int] = field(default_factory=dict[str, int])
    """The member ids that were given out and have not joined yet, each with its session, in ms."""
    cause: Cause = Cause(Why.UNKNOWN)  # noqa: RUF009 - a named tuple
    """Why the current round began."""
    ends_ms: int | None = None
    """When the phase is over at the latest, steady clock; None: it waits for nobody."""
    delay_limit_ms: int | None = None
    """The latest end of a first round, however many members join; None: it is no first round."""

    # Indexes, derived from the seats.
    instances: dict[str, str] = field(default_factory=dict[str, str])
    """Which member id has an instance id."""
    offers: dict[str, int] = field(default_factory=dict[str, int])
    """How many members offer a protocol."""
    joined: int = 0
    """How many wait for the answer to their JoinGroup."""
    pending_syncs: int = 0
    """How many have not sent SyncGroup in this generation yet."""
    metadata_bytes: int = 0
    """How many bytes of metadata all members have."""
    assignment_bytes: int = 0
    """How many bytes the assignments of all members have."""

    def copy(self) -> "ClassicState":
        """Return a copy that can be changed without changing this one."""
        return replace(
            self,
            seats={**self.seats},
            pending_joins={**self.pending_joins},
            instances={**self.instances},
            offers={**self.offers},
        )

    def extend(self, late_ms: int) -> "ClassicState":
        """Return the state with all of its times later by so much."""
        if self.ends_ms is None:
            return self
        limit_ms = None if self.delay_limit_ms is None else self.delay_limit_ms + late_ms
        return replace(self, ends_ms=self.ends_ms + late_ms, delay_limit_ms=limit_ms)

    def put(self, seat: ClassicSeat) -> None:
        """Add a seat, or replace it; it keeps its place in the order."""
        self.drop(seat.member_id, is_kept=True)
        self.seats[seat.member_id] = seat
        if seat.member.instance_id is not None:
            self.instances[seat.member.instance_id] = seat.member_id
        self._count(seat, 1)

    def drop(self, member_id: str, *, is_kept: bool = False) -> None:
        """Remove a seat; with `is_kept`, only from the indexes."""
        seat = self.seats.get(member_id)
        if seat is None:
            return
        if not is_kept:
            del self.seats[member_id]
        if seat.member.instance_id is not None:
            self.instances.pop(seat.member.instance_id, None)
        self._count(seat, -1)

    def _count(self, seat: ClassicSeat, change: int) -> None:
        for each in seat.member.protocols:
            self.offers[each.name] = self.offers.get(each.name, 0) + change
            if not self.offers[each.name]:
                del self.offers[each.name]
        self.metadata_bytes += change * size_of(seat.member)
        self.assignment_bytes += change * len(seat.member.assignment)
        self.joined += change * (seat.joining is not None)
        self.pending_syncs += change * seat.is_pending_sync


def size_of(member: ClassicMember) -> int:
    """Return how many bytes of metadata a member has, the names of its protocols included."""
    return size_of_protocols(member.protocols)


def size_of_protocols(protocols: Iterable[ClassicProtocol]) -> int:
    """Return the size in bytes of protocols: their names, and the metadata of each."""
    return sum(each.size for each in protocols)


def state_of(group: Group, steady_ms: int) -> ClassicState:
    """Return the soft state of a group that was rebuilt from its log: no call waits for an answer.

    A generation whose leader had not assigned yet goes on, since its members know of it.
    """
    state, last = ClassicState(), group.classic
    if last is None:
        return state
    state.protocol_type, state.leader, state.cause = last.protocol_type, last.leader, last.cause
    for member in last.members:
        has_assignment = last.is_synced and last.cause.why is not Why.GROUP_DOWNGRADED
        state.put(
            ClassicSeat(member, is_pending_sync=not last.is_synced, has_assignment=has_assignment)
        )
    if last.members:
        state.phase = RoundPhase.STABLE if last.is_synced else RoundPhase.COMPLETING
    if state.pending_syncs:
        state.ends_ms = steady_ms + longest_rebalance_ms(state)
    elif needs_another_round(last):
        state.ends_ms = steady_ms
    return state


def longest_rebalance_ms(state: ClassicState) -> int:
    """Return the longest rebalance timeout of the members: the time limit of a phase."""
    return max((seat.member.rebalance_timeout_ms for seat in state.seats.values()), default=0)


@dataclass(slots=True)
class ClassicDraft:
    """A decision in the making: the inputs of the rules, and the records and answers so far."""

    group: Group
    """The group before the decision; no rule changes it."""
    state: ClassicState
    settings: ClassicSettings
    now: Now
    record: ClassicGroup | None = None
    """The record to write."""
    answers: list[AddressedReply] = field(default_factory=list[AddressedReply])
    """What may be answered once it is durable."""
    renewed: list[str] = field(default_factory=list[str])
    """The member ids whose session starts again."""

    @property
    def generation(self) -> ClassicGroup | None:
        """The last generation, which may be the one of this decision."""
        return self.record or self.group.classic

    def answer(self, to: PendingCall, reply: ClassicReply) -> None:
        """Answer a call once everything is durable."""
        self.answers.append(to.reply(reply))
