"""A driver of the classic members of a group, with a log and a virtual clock."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from fairlead.actors.classic.coordinator import ClassicCommand, ClassicCoordinator, MemberCall
from fairlead.actors.classic.refusals import refusal_of
from fairlead.actors.classic.state import ClassicSettings, PendingCall
from fairlead.actors.group.state.legality import Legality
from fairlead.actors.messages.classic import (
    ClassicCall,
    ClassicHeartbeat,
    ClassicReply,
    JoinGroup,
    LeaveGroup,
    Leaver,
    SyncGroup,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.timing import Now
from fairlead.events.entries.codec import encode, restore
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry
from fairlead.events.log.space import NoSpaceError
from fairlead.events.model import ClassicProtocol
from fairlead.events.records import ClassicGroup

SESSION_MS, REBALANCE_MS = 6_000, 20_000
AT_ONCE = ClassicSettings(initial_delay_ms=0, least_session_ms=1_000)
BY_GRANTS = replace(AT_ONCE, grants_from_log=True)
WALL_MS = 1_700_000_000_000


@dataclass
class ClassicDriver:
    """One group's classic members, as its host drives them."""

    group_id: str = "g"
    settings: ClassicSettings = AT_ONCE
    now_ms: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])
    """The control log."""
    said: dict[int, ClassicReply] = field(default_factory=dict[int, ClassicReply])
    """The replies, by the number of the call."""
    has_room: bool = True
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Restart from the log, as a new process; pending calls get no reply."""
        self.group: Group = restore(self.group_id, self.entries, len(self.entries))
        self.legality = Legality()
        self.coordinator = ClassicCoordinator(self.group, self.now_ms)

    def decide(self, command: ClassicCommand) -> None:
        """Decide a command, write its record at once, and keep the replies; no call gets two."""
        decision = self.coordinator.decide(command, self.settings, self.now)
        if decision.record is not None:
            self.write(decision.record)
        self.coordinator.apply(decision, self.now_ms)
        for answer in decision.answers:
            reply = answer.reply
            assert isinstance(reply, ClassicReply)
            assert reply.number not in self.said
            self.said[reply.number] = reply

    def write(self, record: ClassicGroup) -> None:
        """Append a record at once."""
        if not self.has_room:
            raise NoSpaceError("the disk is full")
        entry = Entry(len(self.entries), *encode(record)[:3], WALL_MS, encode(record).value)
        self.legality.check(self.group, record)
        self.entries.append(entry)
        evolve(self.group, record, entry.offset)

    @property
    def now(self) -> Now:
        """The current time."""
        return Now(WALL_MS + self.now_ms, self.now_ms)

    def ask(self, call: ClassicCall) -> int:
        """Send a call; return its number."""
        number = next(self.numbers)
        caller = PendingCall("somebody", number)
        try:
            self.decide(MemberCall(call, caller, f"u{next(self.ids)}"))
        except NoSpaceError as error:
            refused = refusal_of(call, Error.COORDINATOR_NOT_AVAILABLE, str(error))
            self.said[number] = replace(refused, number=number)
        return number

    def asks(self, call: ClassicCall) -> ClassicReply | None:
        """Send a call; return its reply, None if that is held."""
        return self.said.get(self.ask(call))

    def run_timers(self) -> None:
        """Do what is due."""
        for command in self.coordinator.due(self.now_ms):
            self.decide(command)

    def passes(self, milliseconds: int) -> None:
        """Advance the clock, running all timers meanwhile."""
        end_ms = self.now_ms + milliseconds
        while (due_ms := self.coordinator.next_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.run_timers()
            if self.coordinator.next_ms() == due_ms:
                self.now_ms += 1
        self.now_ms = max(self.now_ms, end_ms)
        self.run_timers()

    @property
    def generation(self) -> int:
        """The last generation; 0 before the first."""
        return self.group.classic.generation if self.group.classic else 0

    def joining(
        self, member_id: str = "", instance_id: str | None = None, /, **told: object
    ) -> JoinGroup:
        """Return a JoinGroup request; by default with one opaque protocol."""
        said: dict[str, object] = {
            "protocol_type": "game",
            "protocols": offers("chess"),
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "instance_id": instance_id,
            "client_id": "c",
            **told,
        }
        return JoinGroup(self.group_id, member_id, **said)  # type: ignore[arg-type]

    def syncing(
        self, member_id: str, assignments: dict[str, bytes] | None = None, at: int | None = None
    ) -> SyncGroup:
        """Return a SyncGroup request, by default for the last generation."""
        at = self.generation if at is None else at
        return SyncGroup(self.group_id, member_id, at, assignments=assignments or {})

    def beat(self, member_id: str, at: int | None = None) -> str:
        """Send a member's heartbeat; return the error of the reply."""
        at = self.generation if at is None else at
        reply = self.asks(ClassicHeartbeat(self.group_id, member_id, at))
        assert reply is not None
        return reply.error.value

    def leaves(self, member_id: str, instance_id: str | None = None) -> ClassicReply | None:
        """Let a member leave."""
        return self.asks(LeaveGroup(self.group_id, (Leaver(member_id, instance_id),)))


def offers(*names: str, metadata: bytes = b"") -> tuple[ClassicProtocol, ...]:
    """The protocols of a member, in order of preference."""
    return tuple(ClassicProtocol(name, metadata) for name in names)
