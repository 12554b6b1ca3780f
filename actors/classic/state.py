"""What a classic group is between two records: its soft state, and one decision in the making.

A generation is made in a *round*, and each phase of it ends when all have done their part or its
time is up:

    EMPTY ──join──▶ PREPARING ──all have joined──▶ COMPLETING ──the leader has assigned──▶ STABLE
                        ▲                               │ a member joins anew, leaves, or is lost │
                        └───────────────────────────────┴─────────────────────────────────────────┘

* PREPARING: members wait for the answer to their JoinGroup. It ends with a new generation, a
  record, and an answer to each; who is dynamic and has not joined is a member no more. The first
  round of an empty group waits for more members first (KIP-134).
* COMPLETING: members wait for the answer to their SyncGroup. The leader's brings the assignments.
* STABLE: members beat. Who has not asked for its assignment in time is a member no more.

*Waiting answers are data*: a seat knows who waits for which answer, and a decision says what they
are told. What goes on within a round is soft: a restart loses it, and the members, who get no
answer, ask again. The last generation, its members and what they were assigned are in the log.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from enum import Enum

from ...events.group import Group
from ...events.model import Cause, ClassicMember, Why
from ...events.records import ClassicGroup
from ..messages.classic import ClassicReply
from .grants import needs_another_round


class RoundPhase(Enum):
    """How far a round has come."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ClassicSettings:
    """What a classic group goes by; all times in milliseconds."""

    initial_delay_ms: int = 3_000
    """How long the first round of an empty group waits for more members, from the last newcomer."""
    least_session_ms: int = 6_000
    longest_session_ms: int = 1_800_000
    max_size: int = 1 << 31
    """How many members may be in the group."""
    goes_by_grants: bool = False
    """Whether members start only what the log grants them: Connect's own do not know of that."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Who waits for an answer, and the number by which they know it."""

    sender: Hashable
    number: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to whom."""

    to: Asked
    reply: ClassicReply


@dataclass(frozen=True, slots=True)
class ClassicSeat:
    """A member, and what it waits for."""

    member: ClassicMember
    joining: Asked | None = None
    """Who waits for the answer to its JoinGroup."""
    syncing: Asked | None = None
    """Who waits for the answer to its SyncGroup."""
    is_new: bool = False
    """Whether it has not been in any generation yet."""
    owes_sync: bool = False
    """Whether it has not asked for its assignment in this generation yet."""
    has_heard: bool = False
    """Whether it was told its assignment of the last generation: it speaks that protocol now."""
    has_stopped: bool = False
    """Whether it had stopped all that it ran when it joined."""

    @property
    def member_id(self) -> str:
        """The name of the seat."""
        return self.member.member_id


@dataclass(slots=True)
class ClassicState:
    """The soft state of one group. A decision works on a copy: until it is taken, nothing is."""

    phase: RoundPhase = RoundPhase.EMPTY
    seats: dict[str, ClassicSeat] = field(default_factory=dict[str, ClassicSeat])
    """By member id, in the order in which they came."""
    protocol_type: str = ""
    leader: str = ""
    expected: dict[str, int] = field(default_factory=dict[str, int])
    """The member ids that were given out and have not joined, each with its session, in ms."""
    cause: Cause = Cause(Why.UNKNOWN)  # noqa: RUF009 - a named tuple
    """Why the round that goes on began."""
    ends_ms: int | None = None
    """When the phase is over at the latest, steady clock; None: it is in nobody's debt."""
    delay_limit_ms: int | None = None
    """How far newcomers can put off the end of a first round; None: it is no first round."""

    # Indexes, derived from the seats.
    instances: dict[str, str] = field(default_factory=dict[str, str])
    """Which member id has an instance id."""
    offers: dict[str, int] = field(default_factory=dict[str, int])
    """How many members offer a protocol."""
    joined: int = 0
    """How many wait for the answer to their JoinGroup."""
    debtors: int = 0
    """How many owe a SyncGroup."""
    metadata_bytes: int = 0
    """How much all members say of themselves."""

    def copy(self) -> "ClassicState":
        """Return one that can be changed apart from this."""
        return replace(
            self,
            seats={**self.seats},
            expected={**self.expected},
            instances={**self.instances},
            offers={**self.offers},
        )

    def put(self, seat: ClassicSeat) -> None:
        """Take a seat, or what has become of one."""
        self.drop(seat.member_id, is_kept=True)
        self.seats[seat.member_id] = seat
        if seat.member.instance_id is not None:
            self.instances[seat.member.instance_id] = seat.member_id
        self._count(seat, 1)

    def drop(self, member_id: str, *, is_kept: bool = False) -> None:
        """Forget a seat; one that is kept stays in its place among the others."""
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
        self.joined += change * (seat.joining is not None)
        self.debtors += change * seat.owes_sync


def size_of(member: ClassicMember) -> int:
    """Return how much a member says of itself, in bytes."""
    return sum(len(each.name) + len(each.metadata) for each in member.protocols)


def state_of(group: Group, steady_ms: int) -> ClassicState:
    """Return the soft state of a group that was rebuilt from its log: nobody waits for anything.

    A generation whose leader had not assigned yet goes on: its members were told of it.
    """
    state, last = ClassicState(), group.classic
    if last is None:
        return state
    state.protocol_type, state.leader, state.cause = last.protocol_type, last.leader, last.cause
    for member in last.members:
        has_heard = last.is_synced and last.cause.why is not Why.GROUP_DOWNGRADED
        state.put(ClassicSeat(member, owes_sync=not last.is_synced, has_heard=has_heard))
    if last.members:
        state.phase = RoundPhase.STABLE if last.is_synced else RoundPhase.COMPLETING
    if state.debtors:
        state.ends_ms = steady_ms + longest_rebalance_ms(state)
    elif needs_another_round(last):
        state.ends_ms = steady_ms
    return state


def longest_rebalance_ms(state: ClassicState) -> int:
    """Return how long the slowest member may take for its part of a round."""
    return max((seat.member.rebalance_timeout_ms for seat in state.seats.values()), default=0)


@dataclass(slots=True)
class Turn:
    """One decision in the making: what the rules look at, and what they bring about."""

    group: Group
    """The group as it was; no rule changes it."""
    state: ClassicState
    settings: ClassicSettings
    wall_ms: int
    steady_ms: int
    record: ClassicGroup | None = None
    """What is to be written."""
    answers: list[Answer] = field(default_factory=list[Answer])
    """What may be said once it is."""
    heard: list[str] = field(default_factory=list[str])
    """The ids whose time begins anew."""

    @property
    def generation(self) -> ClassicGroup | None:
        """The last generation, the one that is being made included."""
        return self.record or self.group.classic

    def answer(self, to: Asked, reply: ClassicReply) -> None:
        """Say something to somebody, once all is durable."""
        self.answers.append(Answer(to, replace(reply, number=to.number)))
