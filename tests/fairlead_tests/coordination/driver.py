"""A driver of a coordinator, with real logs and a virtual clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.members.request_filter import first_epoch
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import AddressedReply, ConnectRequest
from fairlead.actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply, PutTaskConfigs
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.timing import Now
from fairlead.events.entries.codec import restore
from fairlead.events.group import Group, token_of
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import ClientAssignor
from fairlead_tests.decider import COOPERATIVE, resources

HEARTBEAT_MS, SESSION_MS, REBALANCE_MS = 3_000, 10_000, 60_000
SETTINGS = GroupSettings(session_timeout_ms=SESSION_MS, heartbeat_interval_ms=HEARTBEAT_MS)
WALL_MS = 1_700_000_000_000


@dataclass
class CoordinatorDriver:
    """Drives the coordinator of one group, as its actor does."""

    control: GroupLog
    offsets: GroupLog
    settings: GroupSettings = SETTINGS
    opened: int = 0
    """The number of processes of the group so far."""
    now_ms: int = 0
    wall_jump_ms: int = 0
    """By how much the wall clock was changed meanwhile."""
    sequences: dict[str, int] = field(default_factory=dict[str, int])
    assignors: tuple[ClientAssignor, ...] = COOPERATIVE
    """The assignors of its members."""
    assign: Callable[[Snapshot], Assignment] = assign

    def __post_init__(self) -> None:
        self.open()

    @classmethod
    def at(cls, folder: Path) -> "CoordinatorDriver":
        """Open a driver with logs in a folder."""
        control = GroupLog.open_writer(folder / "control", "connect")
        return cls(control, GroupLog.open_writer(folder / "offsets", "connect"))

    def open(self) -> None:
        """Restart from the log, as a new process without any other state."""
        group: Group = restore("connect", *self.control.load())
        ledger, self.opened = OffsetLedger(self.offsets), self.opened + 1
        number = first_epoch(self.opened)
        self.coordinator = GroupShard(
            group, WORKERS, self.settings, ledger, self.now_ms, CoordinatorProcess(number)
        )

    def close(self) -> None:
        """Close the logs."""
        self.control.close()
        self.offsets.close()

    @property
    def group(self) -> Group:
        """The current group."""
        return self.coordinator.group

    @property
    def now(self) -> Now:
        """The current time."""
        return Now(WALL_MS + self.wall_jump_ms + self.now_ms, self.now_ms)

    def flush(self) -> list[AddressedReply]:
        """Append the records, and return the replies."""
        return list(drain(self.coordinator, self, self.now))

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the offset log."""
        if entries:
            self.offsets.append(self.offsets.end, entries, now.wall_ms)

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log."""
        if entries:
            self.control.append(self.control.end, entries, now.wall_ms)

    def passes(self, milliseconds: int) -> list[AddressedReply]:
        """Advance the clock, and run the coordinator's timers."""
        self.now_ms += milliseconds
        self.coordinator.run_timers(self.now)
        return self.flush()

    def send(self, command: ConnectRequest) -> list[AddressedReply]:
        """Send a command of the principal "someone"; return all replies."""
        self.coordinator.submit(command, "someone", self.now)
        return self.flush()

    def request(self, member: str, epoch: int | None = None, **fields: Any) -> Heartbeat:
        """The next heartbeat of a member, by default with its logged epoch."""
        self.sequences[member] = self.sequences.get(member, 0) + 1
        if epoch is None:
            epoch = self.group.members[member].current.member_epoch
        fields.setdefault("coordinator_epoch", self.coordinator.coordinator_epoch)
        return Heartbeat("connect", member, epoch, f"i-{member}", self.sequences[member], **fields)

    def asks(self, *requests: Heartbeat) -> list[AddressedReply]:
        """Send heartbeats in one batch, each from its member."""
        for each in requests:
            self.coordinator.submit(each, each.member_id, self.now)
        return self.flush()

    def beat(self, member: str, **fields: Any) -> list[AddressedReply]:
        """Send a member's heartbeat; a join if it has no epoch yet."""
        if self.group.members[member].current.member_epoch == 0:
            return self.asks(self.joining(member))
        return self.asks(self.request(member, **fields))

    def joining(self, member: str) -> Heartbeat:
        """The request that joins a member."""
        return self.request(
            member,
            0,
            url=f"http://{member}",
            rebalance_timeout_ms=REBALANCE_MS,
            assignors=self.assignors,
            owned=(),
        )

    def full(self, member: str, text: str = "") -> Heartbeat:
        """A full heartbeat."""
        return self.request(
            member,
            rebalance_timeout_ms=REBALANCE_MS,
            assignors=self.assignors,
            owned=tuple(sorted(resources(text))),
        )

    def compute(self, member: str) -> list[AddressedReply]:
        """Let a member compute the target; return the replies to Install."""
        epoch = self.group.members[member].current.member_epoch
        return self.end(member, epoch, self.begin(member, epoch))

    def begin(self, member: str, epoch: int) -> Snapshot:
        """Send a member's Prepare; return the snapshot."""
        (prepared,) = self.send(Prepare("connect", member, epoch))
        assert isinstance(prepared.reply, PrepareReply)
        assert prepared.reply.snapshot is not None, prepared
        return prepared.reply.snapshot

    def end(self, member: str, epoch: int, snapshot: Snapshot) -> list[AddressedReply]:
        """Send a member's Install; return the other replies."""
        install = Install("connect", member, epoch, snapshot.group_epoch, self.assign(snapshot))
        done, *said = self.send(install)
        assert done.reply == InstallReply(Error.NONE)
        return said

    def put(self, name: str) -> list[AddressedReply]:
        """Create a connector."""
        return self.send(PutConnector("connect", name, {"name": name}))

    def split(self, member: str, name: str, tasks: int) -> list[AddressedReply]:
        """Report the task configs of a connector from its owner."""
        (connector,) = resources(name)
        token = token_of(self.group, member, connector)
        assert token is not None
        configs = tuple({"task": str(number)} for number in range(tasks))
        return self.send(PutTaskConfigs("connect", member, name, token, configs))


def told(said: list[AddressedReply]) -> dict[str, tuple[str, str | None]]:
    """The replies to heartbeats by member: the error, and the assignment if any."""
    found = dict[str, tuple[str, str | None]]()
    for answer in said:
        if isinstance(answer.reply, HeartbeatReply):
            share = answer.reply.assignment
            text = None if share is None else " ".join(map(str, sorted(share)))
            found[str(answer.to)] = answer.reply.error.value, text
    return found


def sequences(said: list[AddressedReply]) -> list[tuple[str, int]]:
    """The answered requests, in order."""
    replies = [each.reply for each in said]
    return [(each.member_id, each.sequence) for each in replies if isinstance(each, HeartbeatReply)]
