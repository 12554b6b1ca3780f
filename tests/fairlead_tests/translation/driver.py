"""A driver of a group of either type, with real logs; checks invariants at each write."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar

from fairlead.actors.assignors.classic.protocol import VERSIONS
from fairlead.actors.classic.bytes.connect import decode_assignment
from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.kind import WORKERS, GroupKind
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    ClassicReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.commands import AddressedReply, GroupRequest
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.timing import Now
from fairlead.events.entries.codec import decode, encode, restore
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.model import TaskConfig
from fairlead.events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    Record,
    TargetAssignment,
    TaskConfigs,
)
from fairlead.runtime.simulation.invariants.group import (
    GroupInvariants,
    consistent,
    same,
    see_covered,
)
from fairlead_tests.classic.workers import as_worker, told
from fairlead_tests.coordination.driver import REBALANCE_MS, SETTINGS, CoordinatorDriver
from fairlead_tests.decider import resources

R = TypeVar("R", bound=ClassicReply)
CLASSIC_SESSION_MS, CLASSIC_REBALANCE_MS = 6_000, 20_000
AT_ONCE = GroupSettings(
    session_timeout_ms=SETTINGS.session_timeout_ms,
    heartbeat_interval_ms=SETTINGS.heartbeat_interval_ms,
    initial_delay_ms=0,
    max_delay_ms=0,
)


@dataclass
class MixedDriver(CoordinatorDriver):
    """The process of one group, with members of either protocol."""

    settings: GroupSettings = AT_ONCE
    kind: GroupKind = WORKERS
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    ids: Iterator[int] = field(default_factory=lambda: count(1))
    said: dict[int, ClassicReply] = field(default_factory=dict[int, ClassicReply])
    """The replies to classic calls, by number."""
    beaten: dict[str, HeartbeatReply] = field(default_factory=dict[str, HeartbeatReply])
    """The last heartbeat reply of each member, by member id."""
    records: list[Record] = field(default_factory=list[Record])
    """All appended records."""
    folded: Group = field(default_factory=lambda: Group("connect"))
    invariants: GroupInvariants = field(default_factory=GroupInvariants)

    def open(self) -> None:
        """Restart from the log, as a new process."""
        super().open()
        group: Group = restore("connect", *self.control.load())
        ledger, number = OffsetLedger(self.offsets), self.coordinator.coordinator_epoch
        self.shard = GroupShard(
            group,
            self.kind,
            self.settings,
            ledger,
            self.now_ms,
            CoordinatorProcess(number, lambda: f"u{next(self.ids)}"),
        )
        self.coordinator = self.shard

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log, and check all invariants."""
        for each in entries:
            entry = Entry(self.control.end, *each[:3], now.wall_ms, each.value)
            super().append([each], now)
            record = decode(entry)
            assert record is not None
            evolve(self.folded, record, entry.offset)
            if not isinstance(record, TargetAssignment) or not record.computed_by:
                self.invariants.see(record, self.folded)
            self.records.append(record)
        if entries:
            self.invariants.check(self.group, self.folded)
            see_covered(self.group)

    def flush(self) -> list[AddressedReply]:
        """Append the records, and return the replies; no call may get two."""
        found = list(drain(self.shard, self, self.now))
        for each in found:
            if isinstance(each.reply, ClassicReply):
                assert each.reply.number not in self.said
                self.said[each.reply.number] = each.reply
            elif isinstance(each.reply, HeartbeatReply):
                self.beaten[str(each.to)] = each.reply
        return found

    def asks(self, *requests: Heartbeat) -> list[AddressedReply]:
        """Send heartbeats in one batch, each from its member."""
        for each in requests:
            self.shard.submit(each, each.member_id, self.now)
        return self.flush()

    def send(self, command: GroupRequest) -> list[AddressedReply]:
        """Send any request; return all replies."""
        self.shard.submit(command, "someone", self.now)
        return self.flush()

    def passes(self, milliseconds: int) -> list[AddressedReply]:
        """Advance the clock, second by second."""
        found: list[AddressedReply] = []
        end_ms = self.now_ms + milliseconds
        while self.now_ms < end_ms:
            self.now_ms = min(end_ms, self.now_ms + 500)
            self.shard.run_timers(self.now)
            found += self.flush()
        return found

    def write(self, *records: Record) -> None:
        """Append records directly."""
        for record in records:
            evolve(self.group, record, self.group.end)
        self.append([encode(each) for each in records], self.now)

    def configure(self, text: str) -> None:
        """Write configs as if the connectors had reported these tasks."""
        configured = resources(text)
        for name in sorted({each.connector for each in configured}):
            numbers = [each.task for each in configured if each.connector == name and each.is_task]
            tasks = tuple(TaskConfig({}, 1) for _ in range(max(numbers, default=-1) + 1))
            self.write(ConnectorConfig(name, {"name": name}, 1, 0), TaskConfigs(name, 1, tasks))
        self.write(ConnectorsTasksMetadata(configured))

    # -- classic members

    def pair(self, first: str, second: str, mode: str = "sessioned") -> tuple[str, str]:
        """Create a stable group of generation 2 with two classic workers that run this."""
        one = self.joins(mode=mode).member_id
        self.syncs(one, 1)
        waiting = self.call(self.join_call(mode=mode, url="http://d/"))
        assert self.joins(one, mode=mode).generation == 2
        reply = self.said[waiting]
        assert isinstance(reply, JoinGroupReply)
        two = reply.member_id
        given = {one: told(first.split(), mode=mode), two: told(second.split(), mode=mode)}
        assert self.syncs(one, 2, assignments=given).error is Error.NONE
        assert self.syncs(two, 2).error is Error.NONE
        return one, two

    def call(self, call: JoinGroup | SyncGroup | ClassicHeartbeat | LeaveGroup) -> int:
        """Send a classic call; return its number."""
        number = next(self.numbers)
        self.send(replace(call, number=number))
        return number

    def answer(self, call: JoinGroup | SyncGroup | ClassicHeartbeat | LeaveGroup) -> ClassicReply:
        """Send a call that is answered at once; return the reply."""
        return self.said[self.call(call)]

    def join_call(
        self,
        member_id: str = "",
        runs: str = "",
        mode: str = "sessioned",
        instance_id: str | None = None,
        **more: object,
    ) -> JoinGroup:
        """Return the JoinGroup request of a worker that runs this."""
        url = str(more.pop("url", "http://c/"))
        said: dict[str, object] = {
            "session_timeout_ms": CLASSIC_SESSION_MS,
            "rebalance_timeout_ms": CLASSIC_REBALANCE_MS,
            "instance_id": instance_id,
            "client_id": "c",
            "asks_for_id": False,
            **as_worker(url, *runs.split(), mode=mode),
            **more,
        }
        return JoinGroup("connect", member_id, **said)  # type: ignore[arg-type]

    def joins(self, *said: str, **more: object) -> JoinGroupReply:
        """Send a worker's JoinGroup, which is answered at once."""
        reply = self.answer(self.join_call(*said, **more))  # type: ignore[arg-type]
        assert isinstance(reply, JoinGroupReply)
        return reply

    def syncs(self, member_id: str, generation: int, **more: object) -> SyncGroupReply:
        """Send a member's SyncGroup, which is answered at once."""
        reply = self.answer(SyncGroup("connect", member_id, generation, **more))  # type: ignore[arg-type]
        assert isinstance(reply, SyncGroupReply)
        return reply

    def classic_beat(
        self, member_id: str, generation: int | None = None, instance_id: str | None = None
    ) -> Error:
        """Send a classic heartbeat, by default with the member's epoch."""
        if generation is None:
            generation = self.group.members[member_id].current.member_epoch
        reply = self.answer(ClassicHeartbeat("connect", member_id, generation, instance_id))
        assert isinstance(reply, ClassicHeartbeatReply)
        return reply.error

    def leaves(self, *leavers: Leaver) -> LeaveGroupReply:
        """Let members leave."""
        reply = self.answer(LeaveGroup("connect", leavers))
        assert isinstance(reply, LeaveGroupReply)
        return reply

    def newcomer(self, number: int) -> str:
        """Return the member id in a JoinGroup reply."""
        reply = self.said[number]
        assert isinstance(reply, JoinGroupReply)
        return reply.member_id

    # -- members of the connect protocol

    def joining(self, member: str, **fields: object) -> Heartbeat:
        """The join of a member with a server assignor."""
        told: dict[str, object] = {
            "url": f"http://{member}",
            "rebalance_timeout_ms": REBALANCE_MS,
            "server_assignor": "uniform",
            "owned": (),
            **fields,
        }
        return self.request(member, 0, **told)

    def modern_joins(self, member: str, **fields: object) -> HeartbeatReply:
        """Let a member join with the connect protocol."""
        return self.heartbeat_reply(self.joining(member, **fields))

    def heartbeat_reply(self, request: Heartbeat) -> HeartbeatReply:
        """Send a heartbeat; wait for the reply if it is held."""
        found = self.asks(request)
        while True:
            for each in found:
                if isinstance(each.reply, HeartbeatReply) and each.to == request.member_id:
                    return each.reply
            found = self.passes(self.settings.heartbeat_interval_ms)

    def beats(self, member: str) -> None:
        """Send a heartbeat of a member that runs its assignment; the reply may be held."""
        owned = tuple(sorted(self.group.members[member].current.assigned))
        self.asks(self.request(member, owned=owned))

    def modern_goes_on(self, member: str) -> HeartbeatReply:
        """Send a heartbeat of a member that runs its assignment."""
        owned = tuple(sorted(self.group.members[member].current.assigned))
        return self.heartbeat_reply(self.request(member, owned=owned))

    def lives(self, member: str, milliseconds: int) -> None:
        """Advance the clock, with heartbeats of one connect member."""
        end_ms = self.now_ms + milliseconds
        while self.now_ms < end_ms:
            self.asks(
                self.request(member, owned=tuple(self.group.members[member].current.assigned))
            )
            self.passes(min(2_000, end_ms - self.now_ms))

    def reopen_from_log(self) -> None:
        """Replace the process; unwritten decisions are lost."""
        self.open()
        same(self.group, self.folded)
        consistent(self.group)

    def reopen(self) -> None:
        """Replace the process, and check that the log gives the same group."""
        told = self.group
        self.open()
        same(self.group, told)
        consistent(self.group)


def given(reply: SyncGroupReply) -> tuple[str, str]:
    """Return the assigned and the revoked resources of an assignment."""
    assert reply.error is Error.NONE, reply
    read = decode_assignment(reply.assignment, VERSIONS[reply.protocol or ""])
    return " ".join(map(str, sorted(read.assigned))), " ".join(map(str, sorted(read.revoked or ())))


def held(driver: MixedDriver, member_id: str) -> str:
    """Return the assignment of a member."""
    return " ".join(map(str, sorted(driver.group.members[member_id].current.assigned)))


def refused(reply: HeartbeatReply | ClassicReply) -> tuple[str, str]:
    """Return the error and the message of a reply."""
    return reply.error.name, reply.message
