"""Real and simulated workers tell the ends of their tasks before they say goodbye."""

from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.members import LEAVE_EPOCH, Heartbeat, PutTaskConfigs, ReportStatus
from fairlead.actors.worker.instructions import Timing
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Resource, RunState
from fairlead.runtime.cluster.messages import Leave, StartWorker
from fairlead.runtime.cluster.spec import EngineSpec, NodeSpec
from fairlead.runtime.node.worker import actor as real
from fairlead.runtime.node.worker import assembly
from fairlead.runtime.simulation.environment.clock import Deed
from fairlead.runtime.simulation.environment.network import Line, Network
from fairlead.runtime.simulation.schedule import ClusterTraits, Schedule, Size
from fairlead.runtime.simulation.world import World
from fairlead_tests.coordination.driver import CoordinatorDriver


class Reader:
    """Reads in the open log: in this process its writer has it."""

    log: GroupLog

    @classmethod
    def open(cls, *_: object) -> GroupLog:
        """Return the log of the driver."""
        return cls.log


class Worker(real.WorkerActor):
    """A real worker that runs nothing, without a process of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.said: list[object] = []
        self.told: list[object] = []
        (folder / "run").mkdir(mode=0o700)
        spec = EngineSpec("noop")
        names, settings, timing = ("w",), GroupSettings(), Timing()
        node = NodeSpec(
            folder, "connect", "here", names, settings, timing, spec, server_assignor="uniform"
        )
        self.receive(StartWorker("w", node, "the group", None), "the supervisor")

    def send(self, to: object, message: object) -> None:
        """Keep what is said to the group."""
        if to == "the group":
            self.said.append(message)

    def post(self, message: object) -> None:
        """Hear at once what it has for itself."""
        self.receive(message, "itself")

    def wake_after(self, seconds: float, payload: object = None) -> None:
        """Let no time pass by itself."""

    def speaks_with(self, driver: CoordinatorDriver) -> None:
        """Have the group hear and answer until nobody has anything to say."""
        while self.said:
            message = self.said.pop(0)
            self.told.append(message)
            assert isinstance(message, Heartbeat | ReportStatus | PutTaskConfigs)
            for answer in driver.send(message):
                self.receive(answer.reply, "the group")


def order_of(told: list[object]) -> list[str]:
    """What a worker told of its ends, and its goodbye, in the order in which it did."""
    found: list[str] = []
    for message in told:
        if isinstance(message, Heartbeat) and message.member_epoch == LEAVE_EPOCH:
            found.append("goodbye")
        elif isinstance(message, ReportStatus):
            ended = [each for each in message.updates if each.state is RunState.UNASSIGNED]
            found += [str(each.resource) for each in ended]
    return found


@pytest.mark.parametrize("connectors", ["A", "A B C"])
def test_a_worker_tells_the_ends_of_its_tasks_before_it_says_goodbye(
    driver: CoordinatorDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connectors: str
) -> None:
    Reader.log = driver.control
    monkeypatch.setattr(assembly, "LogReader", Reader)
    for name in connectors.split():
        driver.put(name)
    worker = Worker(tmp_path)
    worker.speaks_with(driver)
    ran = sorted(map(str, driver.group.owner))
    assert len(ran) == 2 * len(connectors.split()), "connectors, and a task of each"
    worker.receive(Leave(), "the supervisor")
    worker.speaks_with(driver)
    *ended, last = order_of(worker.told)
    assert (sorted(ended), last) == (ran, "goodbye")
    assert {driver.group.statuses[each].state for each in driver.group.statuses} == {
        RunState.UNASSIGNED
    }
    assert not driver.group.members


def test_a_simulated_worker_does_so_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    send = Network.send

    def sending(self: Network, line: Line, deed: Deed, *args: object) -> None:
        told.append(args[-1])
        send(self, line, deed, *args)

    monkeypatch.setattr(Network, "send", sending)
    world = World(Schedule(0, Size(workers=1), ClusterTraits(jitter_ms=5), ()))
    world.clock.run(20_000)
    (worker,) = world.workers()
    ran = {str(each) for each in worker.engine.tasks}
    told.clear()
    worker.leave()
    world.clock.run(25_000)
    found = order_of(told)
    goodbye = found.index("goodbye")
    assert set(found[:goodbye]) == ran
    assert Resource("c0") in world.group.statuses
    world.durable_state.close()
