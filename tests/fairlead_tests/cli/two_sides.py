"""Two sides of an import in memory: a connector that reads numbers, and may run on either.

What it reads is noted in one list, so a number that is lost or read twice shows. The import is
killed before or after any call. A side that is started while the other one may run is a failure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.runtime.interfaces.cli.importing.connect_rest import ConnectRest, RefusedByConnect
from fairlead.runtime.interfaces.cli.importing.old_connect import KeptConfigs, OldConnectSide
from fairlead.runtime.interfaces.cli.importing.sides import ImportSide, NodeSide
from fairlead.runtime.interfaces.cli.importing.steps import SideStatus
from fairlead.runtime.interfaces.cli.output.printing import Failed
from fairlead.runtime.interfaces.replies.connectors import ConfigChange, ConfigDiff
from fairlead.runtime.interfaces.replies.progress import ConnectorOffset

PARTITION = {"file": "a"}
CONFIG = {"connector.class": "Numbers", "password": "hush"}
STATES = {"resume": "RUNNING", "pause": "PAUSED", "stop": "STOPPED"}


class Killed(BaseException):
    """The end of the import, at some call."""


@dataclass
class World:
    """What both sides have in common."""

    kill_at: int = -1
    """At which call the import is killed: an even number before, an odd one after it."""
    fails_here: bool = False
    """Whether the connector fails on the node."""
    is_idle: bool = False
    """Whether there is nothing to read."""
    read: list[int] = field(default_factory=list[int])
    calls: int = 0

    def call(self) -> None:
        """Note half a call, or be killed there."""
        self.calls += 1
        if self.calls - 1 == self.kill_at:
            raise Killed


class FakeSide(ImportSide):
    """A side on which the connector may be; each status is a moment in which it works."""

    def __init__(self, world: World, offsets: dict[str, int]) -> None:
        self.world, self.positions = world, offsets
        self.state, self.tasks = "", 0
        self.other: FakeSide | None = None
        self.ignores_orders = False
        self._ends_in = 0
        """After how many more looks tasks have ended that were stopped; they still read."""
        self.late_reads = 0
        """How often it reads although its status has no tasks any more."""

    def status(self, name: str) -> SideStatus:
        del name
        self.world.call()
        found = SideStatus(self.state, (self.state,) * self.tasks)
        self._work()
        self.world.call()
        return found

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        del name
        self.world.call()
        found = [ConnectorOffset(PARTITION, {"at": each}) for each in self.positions.values()]
        if self.late_reads and self.state == "STOPPED":
            self.late_reads -= 1
            self._read()
        return found

    def order(self, name: str, verb: str) -> None:
        del name
        self.world.call()
        if self.ignores_orders:
            return
        if verb != "stop":
            assert self.other is not None
            assert self.other.status_is_at_rest(), f"both sides run after {verb}"
            self.tasks = 1
        elif self.state != "STOPPED":
            self._ends_in = 2 if self.state == "RUNNING" else 1
        self.state = STATES[verb]
        self.world.call()

    def set_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None:
        del name
        self.world.call()
        assert (self.state, self.tasks) == ("STOPPED", 0)
        for each in offsets:
            assert each.offset is not None
            self.positions["a"] = int(each.offset["at"] or 0)
        self.world.call()

    def status_is_at_rest(self) -> bool:
        return not self.state or (self.state == "STOPPED" and not self.tasks)

    def _work(self) -> None:
        if self.state == "RUNNING" or (self.state == "STOPPED" and self.tasks):
            self._read()
        if self.state == "STOPPED" and self.tasks:
            self._ends_in -= 1
            self.tasks = 1 if self._ends_in else 0

    def _read(self) -> None:
        if not self.world.is_idle:
            self.world.read.append(self.positions.get("a", 0))
            self.positions["a"] = self.positions.get("a", 0) + 1


class FakeNode(FakeSide, NodeSide):
    """The side of the node."""

    refuses: Failed | None = None
    """What it answers to a creation."""
    changes: Sequence[ConfigChange] = ()
    """How the config that it has differs."""

    def compare(self, name: str, config: Mapping[str, str]) -> ConfigDiff:
        del config
        self.world.call()
        return ConfigDiff(name, is_new=False, changes=[*self.changes], warnings=())

    def create(self, name: str, config: Mapping[str, str]) -> None:
        del name, config
        self.world.call()
        assert not self.state
        if self.refuses:
            raise self.refuses
        self.state, self.tasks = "STOPPED", 0
        self.world.call()

    def delete(self, name: str) -> None:
        del name
        self.world.call()
        assert self.status_is_at_rest()
        self.state = ""
        self.world.call()

    def _work(self) -> None:
        if self.world.fails_here and self.state == "RUNNING":
            self.state = "FAILED"
        super()._work()


def two_sides(world: World, was: str, *, share_offsets: bool) -> tuple[FakeSide, FakeNode]:
    """Return a Connect that has the connector in a state, and a node that has it not."""
    offsets = {"a": 0}
    there = FakeSide(world, offsets)
    here = FakeNode(world, offsets if share_offsets else {})
    there.state, there.tasks = was, 0 if was == "STOPPED" else 1
    there.other, here.other = here, there
    there.late_reads = 1 if was == "RUNNING" else 0
    return there, here


class OldConnect(ConnectRest):
    """A Connect that stops nothing; what it runs is a `FakeSide` with the offsets of the node."""

    def __init__(self, world: World, runs: FakeSide) -> None:
        self._world, self._runs = world, runs

    def ask(self, method: str, *path: str, query: str = "", body: object = None) -> object:
        del query
        self._world.call()
        answer = self._answer(method, path[2:], body)
        self._world.call()
        return answer

    def _answer(self, method: str, path: tuple[str, ...], body: object) -> object:
        runs = self._runs
        if method == "POST":
            assert body == {"name": "numbers", "config": CONFIG}
            assert not runs.state
            runs.order("numbers", "resume")
        elif not runs.state:
            raise RefusedByConnect("Connector numbers not found", 404)
        elif method == "DELETE":
            runs.state, runs.tasks = "", 0
        elif path == ("config",):
            return CONFIG
        elif path == ("pause",):
            runs.order("numbers", "pause")
        elif path == ("status",):
            found = runs.status("numbers")
            tasks = [{"state": each} for each in found.tasks]
            return {"connector": {"state": found.state}, "tasks": tasks}
        return None


def two_sides_of_old(
    world: World, was: str, kept: KeptConfigs
) -> tuple[OldConnectSide, FakeSide, FakeNode]:
    """Return a Connect that stops nothing, what runs in it, and a node with the same offsets."""
    runs, here = two_sides(world, was, share_offsets=True)
    runs.late_reads = 0
    return OldConnectSide(OldConnect(world, runs), here, kept), runs, here
