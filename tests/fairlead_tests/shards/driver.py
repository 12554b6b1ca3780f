"""A driver of a shard with many groups, with a log and a virtual clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from fairlead.actors.assignors.built_in.catalogue import Computes
from fairlead.actors.group.group_shard import CoordinatorProcess
from fairlead.actors.group.host import drain
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    Leaver,
    SyncGroup,
)
from fairlead.actors.messages.commands import Reply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import HostCall
from fairlead.actors.shards.hosting import HostedGroups
from fairlead.actors.timing import Now
from fairlead.events.entries.group_keys import SHARED_CONTROL, SHARED_OFFSETS, name_shard
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.space import DiskSpace
from fairlead.events.log.writer import GroupLog
from fairlead_tests.classic.driver import offers

AT_ONCE = GroupSettings(
    session_timeout_ms=6_000,
    heartbeat_interval_ms=1_000,
    initial_delay_ms=0,
    least_classic_session_ms=1_000,
)
WALL_MS = 1_700_000_000_000


def joining(
    group_id: str, member_id: str = "", *, asks_for_id: bool = False, number: int = 0
) -> JoinGroup:
    """Return a JoinGroup request; by default of a version without the id exchange."""
    said = group_id, member_id, "game", offers("chess"), 6_000, 20_000
    return JoinGroup(*said, asks_for_id=asks_for_id, number=number)


class AnsweringAtOnce(HostedGroups):
    """Groups that hold no heartbeats."""

    holds_heartbeats = False


@dataclass
class ShardDriver:
    """Drives the groups of one shard, as its process does."""

    folder: Path
    settings: GroupSettings = AT_ONCE
    kind: type[HostedGroups] = AnsweringAtOnce
    now_ms: int = 0
    space: DiskSpace | None = None
    """The space for log records; None: enough."""
    appends: list[int] = field(default_factory=list[int])
    """The number of entries of each append."""
    assignors: Mapping[str, Computes] = field(default_factory=dict[str, Computes])
    """The server assignors of users, by name."""
    shards: int = 1
    """The total number of shards, of which it is the first."""

    def __post_init__(self) -> None:
        self.numbers, self._ids = count(1), map(str, count(1))
        self.open()

    def open(self) -> None:
        """Restart from the log, as a new process."""
        name = name_shard(0, self.shards)
        self.log = GroupLog.open_writer(self.folder / "control", name, SHARED_CONTROL)
        self.offsets = GroupLog.open_writer(self.folder / "offsets", name, SHARED_OFFSETS)
        entries, _ = self.log.load()
        self.groups = self.kind(
            entries,
            self.offsets,
            self.settings,
            CoordinatorProcess(self.log.epoch, lambda: next(self._ids), self.assignors),
            self.now,
        )

    def close(self) -> None:
        """Close the logs."""
        self.log.close()
        self.offsets.close()

    @property
    def now(self) -> Now:
        """The current time."""
        return Now(WALL_MS + self.now_ms, self.now_ms)

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the offset log."""
        self.offsets.append(self.offsets.end, entries, now.wall_ms)

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log."""
        self.appends.append(len(entries))
        self.log.append(self.log.end, entries, now.wall_ms)

    def asks(self, *calls: HostCall) -> list[Reply]:
        """Send calls in one batch; return all replies."""
        if self.space is not None:
            self.groups.set_disk_space(self.space, self.now)
        for call in calls:
            self.groups.submit(replace(call, number=next(self.numbers)), 1, self.now)
        return [each.reply for each in drain(self.groups, self, self.now)]

    def passes(self, milliseconds: int) -> list[Reply]:
        """Advance the clock, running all timers meanwhile; return all replies."""
        end_ms, said = self.now_ms + milliseconds, list[Reply]()
        while (tick_ms := self.groups.next_tick_ms(self.now)) <= end_ms:
            self.now_ms = max(self.now_ms, tick_ms)
            self.groups.run_timers(self.now)
            said += [each.reply for each in drain(self.groups, self, self.now)]
        self.now_ms = end_ms
        return said

    def member_of(self, group_id: str) -> str:
        """Create a group with one synced member; return its id."""
        (joined,) = self.asks(joining(group_id))
        assert isinstance(joined, JoinGroupReply)
        assert joined.error is Error.NONE
        given = {joined.member_id: b"all"}
        self.asks(SyncGroup(group_id, joined.member_id, joined.generation, assignments=given))
        return joined.member_id

    def beat(self, group_id: str, member_id: str, generation: int = 1) -> Error:
        """Send a member's heartbeat; return the error of the reply."""
        (reply,) = self.asks(ClassicHeartbeat(group_id, member_id, generation))
        assert isinstance(reply, ClassicHeartbeatReply)
        return reply.error

    def leaves(self, group_id: str, member_id: str) -> None:
        """Let a member leave."""
        self.asks(LeaveGroup(group_id, (Leaver(member_id),)))
