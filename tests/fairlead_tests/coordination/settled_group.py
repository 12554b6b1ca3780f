"""A stable group with many connectors on two workers, and the size of the records of changes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fairlead.actors.messages.commands import AddressedReply, CommandReply
from fairlead.actors.messages.members import ReportStatus, StatusUpdate
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.events.entries.codec import encode
from fairlead.events.group import token_of
from fairlead.events.log.frame import OFFSET, NewEntry, seal
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Resource, RunState, TaskConfig
from fairlead.events.record_parts import RecordParts, lay_out
from fairlead.events.records import ConnectorConfig, ConnectorsTasksMetadata, Record, TaskConfigs
from fairlead_tests.coordination.driver import WALL_MS, CoordinatorDriver

MEMBERS = tuple(f"00000000-0000-4000-8000-{number:012}" for number in range(2))


def config_of(name: str) -> dict[str, str]:
    """Return a config of the usual size."""
    return {
        "name": name,
        "connector.class": "fairlead.FileStream",
        "tasks.max": "1",
        "source.path": f"/var/data/landing/{name}",
        "source.format": "csv",
        "sink.path": f"/var/data/lake/{name}",
        "sink.format": "parquet",
        "sql": "SELECT carrier, count(*) AS flights FROM input GROUP BY carrier",
    }


class SettledGroup(CoordinatorDriver):
    """The coordinator of such a group, which measures the log records of each change."""

    @classmethod
    def with_connectors(cls, folder: Path, count: int, tasks: int = 1) -> "SettledGroup":
        """Open a stable group of two workers with so many connectors and their tasks."""
        names = [f"connector.{number}" for number in range(count)]
        configured = {Resource(name, task) for name in names for task in range(-1, tasks)}
        records: list[Record] = [ConnectorsTasksMetadata(frozenset(configured))]
        for name in names:
            records.append(ConnectorConfig(name, config_of(name), 1, 0))
            split = tuple(TaskConfig({"task": str(task)}, 1) for task in range(tasks))
            records.append(TaskConfigs(name, 1, split))
        control = GroupLog.open_writer(folder / "control", "connect")
        entries = [encode(part) for _, parts in lay_out(RecordParts(), records) for part in parts]
        control.append(0, entries, WALL_MS)
        driver = cls(control, GroupLog.open_writer(folder / "offsets", "connect"))
        for member in MEMBERS:
            driver.asks(driver.joining(member))
            driver.settle()
        return driver

    def settle(self) -> None:
        """Let the members send heartbeats and compute until nothing more is written."""
        end = -1
        while end != self.group.end:
            end = self.group.end
            for member in MEMBERS:
                if member in self.group.members:
                    self._turn(member)

    def leave(self, member: str) -> None:
        """Let a member leave permanently."""
        self.asks(self.request(member, -1))

    def _turn(self, member: str) -> None:
        current = self.group.members[member].current
        if current.member_epoch == 0:
            self.asks(self.joining(member))
        else:
            owned = tuple(sorted(current.assigned))
            self.asks(replace(self.full(member), owned=owned))
        computation = self.coordinator.state.soft.computation
        if computation is not None and computation.member_id == member:
            self.compute(member)

    def create(self, name: str) -> None:
        """Create a connector, report its tasks, and let all run."""
        self.command(self.send(PutConnector("connect", name, config_of(name))))
        self.settle()
        self.runs(Resource(name))
        self.split(self.group.owner[Resource(name)], name, 1)
        self.settle()
        self.runs(Resource(name, 0))
        self.runs(Resource(name, 0), "batches run")

    def delete(self, name: str) -> None:
        """Delete a connector, and finish its deletion."""
        self.command(self.send(DeleteConnector("connect", name)))
        self.settle()
        self.passes(100)
        assert name not in self.group.connectors

    def command(self, said: list[AddressedReply]) -> None:
        """Check that a command succeeded."""
        assert any(isinstance(each.reply, CommandReply) for each in said)

    def runs(self, resource: Resource, reason: str = "") -> None:
        """Report a resource as running from its owner."""
        holder = self.group.owner[resource]
        token = token_of(self.group, holder, resource)
        assert token is not None
        update = StatusUpdate(resource, token, RunState.RUNNING, self.now.wall_ms, reason)
        self.send(ReportStatus("connect", holder, (update,)))

    def cost(self, change: Callable[[], None]) -> int:
        """Return the size of the log records of a change and its consequences, in bytes."""
        begin = self.control.end
        change()
        return sum(
            len(seal(OFFSET.pack(each.offset), NewEntry(*each[1:4], each.value), 0))
            for each in self.control.read(begin).entries
        )
