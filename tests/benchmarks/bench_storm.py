"""Ten thousand members join one group at once: the coordinator's CPU until all is at rest.

The coordinator is the real one on a real log, the members are real memberships; only the
coordinator's own work is counted: deciding, changing the group, writing down.
"""

import tempfile
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlead.actors.assignors.built_in import balanced
from fairlead.actors.group.group_shard import GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.assignors import ComputeAssignmentReply
from fairlead.actors.messages.commands import GroupCommand, Reply
from fairlead.actors.messages.computing import InstallReply, PrepareReply
from fairlead.actors.messages.members import HeartbeatReply
from fairlead.actors.timing import Now
from fairlead.actors.worker.instructions import (
    Compute,
    Identity,
    Instruction,
    Send,
    Stop,
    Timing,
)
from fairlead.actors.worker.membership import Membership
from fairlead.events.entries.codec import encode, restore
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import NOTHING, ClientAssignor, GroupState
from fairlead.events.placement import WARM
from fairlead.events.records import ConnectorsTasksMetadata
from fairlead.runtime.node.worker.core.computing import Computing
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.benchmarks.groups import TASKS, member_id, share

MEMBERS = 10_000
FLUSH = 500
"""Requests that share one append, as they pile up while the one before is written."""

TIMING = Timing(rebalance_timeout_ms=60_000, session_timeout_ms=60_000)
WALL_MS = 1_700_000_000_000


class MeasuredCoordinator:
    """The coordinator with its log, and the CPU that it took."""

    def __init__(self, folder: Path) -> None:
        self.cpu_s = 0.0
        self.now_ms = 0
        self._control = GroupLog.open_writer(folder / "control", "storm")
        offsets = GroupLog.open_writer(folder / "offsets", "storm")
        everything = NOTHING.union(*map(share, range(MEMBERS)))
        self._control.append(0, [encode(ConnectorsTasksMetadata(everything))], WALL_MS)
        group = restore("storm", *self._control.load())
        settings = GroupSettings(session_timeout_ms=TIMING.session_timeout_ms)
        self.coordinator = GroupShard(group, WORKERS, settings, OffsetLedger(offsets), 0)

    @property
    def end(self) -> int:
        """The log's end."""
        return self._control.end

    def serve(self, commands: list[tuple[GroupCommand, str]]) -> list[tuple[str, Reply]]:
        """Decide what arrived together, write it down, and return the answers."""
        with self._counted():
            now = Now(WALL_MS + self.now_ms, self.now_ms)
            for command, sender in commands:
                self.coordinator.submit(command, sender, now)
            self.coordinator.run_timers(now)
            answers = drain(self.coordinator, self, now)
        return [(answer.to, answer.reply) for answer in answers]

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the offset log: there is nothing."""

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log."""
        if entries:
            self._control.append(self._control.end, entries, now.wall_ms)

    @contextmanager
    def _counted(self) -> Generator[None]:
        begun = time.process_time()
        yield
        self.cpu_s += time.process_time() - begun


class Crowd:
    """All the members, each a real membership; what they say waits in one queue."""

    def __init__(self, coordinator: MeasuredCoordinator, *, is_swift: bool) -> None:
        """Have all join; a swift assignor has its say before the requests that wait."""
        self.coordinator = coordinator
        self.is_swift = is_swift
        self.said: deque[tuple[GroupCommand, str]] = deque()
        self.heartbeats = 0
        self.targets = 0
        self._members: dict[str, Membership] = {}
        self._computing: dict[str, Computing] = {}
        assignors = (ClientAssignor(balanced.NAME, metadata=WARM),)
        for number in range(MEMBERS):
            name = member_id(number)
            identity = Identity("storm", name, name, f"h{number}:8083/w1")
            self._members[name] = Membership(identity, TIMING, assignors)
            self._obey(name, self._members[name].join(0))

    def run(self, until_ms: int) -> None:
        """Carry messages until nobody has anything to say, then let time pass."""
        while self.coordinator.now_ms < until_ms:
            while self.said:
                batch = [self.said.popleft() for _ in range(min(FLUSH, len(self.said)))]
                for name, reply in self.coordinator.serve(batch):
                    self._hear(name, reply)
            self.coordinator.now_ms += 100
            for name, reply in self.coordinator.serve([]):
                self._hear(name, reply)

    def _hear(self, name: str, reply: Reply) -> None:
        now_ms = self.coordinator.now_ms
        match reply:
            case HeartbeatReply():
                self._obey(name, self._members[name].handle_reply(reply, now_ms))
            case PrepareReply():
                self._compute(name, reply)
            case InstallReply():
                self._computing.pop(name).take_install_reply(reply, now_ms)
                self._members[name].computing = False
            case _:
                raise TypeError(reply)

    def _compute(self, name: str, reply: PrepareReply) -> None:
        computing, now_ms = self._computing[name], self.coordinator.now_ms
        asked = computing.take_snapshot(reply, now_ms)
        assert asked is not None
        snapshot = asked.snapshot
        assignment = balanced.assign(snapshot)
        made = ComputeAssignmentReply(
            snapshot.group_epoch, assignment, snapshot_id=snapshot.snapshot_id
        )
        self.targets += 1
        install = computing.take_result(made, self._members[name].member_epoch, now_ms)
        assert install is not None
        self._say_of_target(install, name)

    def _say_of_target(self, command: GroupCommand, name: str) -> None:
        if self.is_swift:
            self.said.appendleft((command, name))
        else:
            self.said.append((command, name))

    def _obey(self, name: str, instructions: list[Instruction]) -> None:
        now_ms = self.coordinator.now_ms
        for instruction in instructions:
            match instruction:
                case Send(request):
                    self.heartbeats += 1
                    self.said.append((request, name))
                case Stop(resources):
                    self._obey(name, self._members[name].release(resources, now_ms))
                case Compute(epoch):
                    computing = Computing("storm", name, TIMING.rebalance_timeout_ms)
                    self._computing[name] = computing
                    self._say_of_target(computing.begin(epoch, now_ms), name)
                case _:
                    pass


def storm(*, is_swift: bool) -> None:
    """Let them all in, then leave the group alone."""
    with tempfile.TemporaryDirectory() as folder:
        coordinator = MeasuredCoordinator(Path(folder))
        crowd = Crowd(coordinator, is_swift=is_swift)
        crowd.run(2_000)
        group = coordinator.coordinator.group
        assert group.state is GroupState.STABLE
        assert len(group.members) == MEMBERS
        shape = f"{MEMBERS} members, {MEMBERS * TASKS} tasks, {FLUSH} requests per append"
        cost = f"{crowd.heartbeats} heartbeats, {crowd.targets} targets, {coordinator.end} records"
        name = "storm.join_all_swift" if is_swift else "storm.join_all"
        tell(f"{name}.cpu", coordinator.cpu_s, "s", conditions=f"{shape}; {cost}")
        if not is_swift:
            rest(coordinator, crowd, shape)


def rest(coordinator: MeasuredCoordinator, crowd: Crowd, shape: str) -> None:
    """Let half a minute pass in which nothing happens, and see what it costs."""
    end, cpu_s, beaten = coordinator.end, coordinator.cpu_s, crowd.heartbeats
    crowd.run(coordinator.now_ms + 30_000)
    tell("storm.at_rest.records", coordinator.end - end, "records", conditions=shape)
    per_beat = (coordinator.cpu_s - cpu_s) / (crowd.heartbeats - beaten) * 1e6
    tell("storm.at_rest.cpu_per_heartbeat", per_beat, "us", conditions=shape)


if __name__ == "__main__":
    storm(is_swift=False)
    storm(is_swift=True)
