"""A whole group on real processes: heartbeats, durable changes, a start and a join."""

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.computing import Assignment, Install, Prepare
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.shards.host_actor import GroupActor, GroupOpened, OpenGroup
from fairlead.actors.transport.ports import SystemAddress, free_port
from fairlead.actors.transport.system import System, start_system
from fairlead.actors.worker.instructions import Timing
from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.model import RunState
from fairlead.projections.follow.group import Follower
from fairlead.runtime.cluster.messages import AddWorker, Begin, ShutDown, WhereIs
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.cluster.spec import EngineSpec, NodeSpec
from fairlead.runtime.node.supervisor.supervisor import Supervisor
from fairlead_tests.benchmarks.beaters import ASSIGNORS, Beat, Beaten, Beater
from fairlead_tests.benchmarks.figures import median, tell

SECONDS = 4.0
WORKERS, TASKS, CONNECTORS = 10, 900, 10
CHANGES = 300


def beats(system: System, group: Any, clients: int) -> float:
    """Return the heartbeats a second that so many clients got answered together."""

    def one(number: int) -> Beaten:
        with system.private() as line:
            beater = system.create(Beater, f"beater-{number}")
            order = Beat(group, f"m-{number}", SECONDS)
            answer = line.ask(beater, order, SECONDS + 20)
        assert isinstance(answer, Beaten)
        return answer

    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(one, range(clients)))
    return sum(each.heartbeats for each in answers) / max(each.seconds for each in answers)


def settle(system: System, group: Any, coordinator_epoch: int) -> None:
    """Give the group a member and a target, so that whoever joins has an epoch above 0."""
    join = Heartbeat(
        "bench", "m0", 0, "i", 1, rebalance_timeout_ms=60_000, assignors=ASSIGNORS, owned=()
    )
    join = replace(join, coordinator_epoch=coordinator_epoch)
    system.ask(group, join, 5)
    prepared: Any = system.ask(group, Prepare("bench", "m0", 0), 5)
    snapshot = prepared.snapshot
    target = Assignment({"m0": snapshot.configured})
    system.ask(group, Install("bench", "m0", 0, snapshot.group_epoch, target), 5)


def changes(system: System, group: Any) -> float:
    """Return how long a command waits for its durable answer, in ms at the median."""
    taken: list[float] = []
    for number in range(CHANGES):
        begun = time.perf_counter()
        reply = system.ask(group, PutConnector("bench", f"c{number}", {"tasks.max": "1"}), 5)
        taken.append((time.perf_counter() - begun) * 1000)
        assert reply is not None
    return median(taken)


def one_group(folder: Path) -> None:
    """Measure one group actor."""
    system = start_system(
        SystemAddress("127.0.0.1", free_port(), os.urandom(32)),
        log_file=folder / "log",
        name="bench",
    )
    try:
        group = system.create(GroupActor, "bench")
        opened = system.ask(group, OpenGroup("bench", folder / "group", GroupSettings()), 10)
        assert isinstance(opened, GroupOpened)
        tell("group.durable_change.p50", changes(system, group), "ms", conditions="one outstanding")
        settle(system, group, opened.coordinator_epoch)
        tell(
            "group.heartbeats.single",
            beats(system, group, 4),
            "1/s",
            conditions="4 clients, full requests, one outstanding each",
        )
    finally:
        system.shutdown()


def crew(folder: Path) -> None:
    """Measure a crew of workers with no-op tasks: from nothing, and one more joining."""
    run = RunFolder(folder)
    run.path.mkdir()
    system = start_system(
        SystemAddress("127.0.0.1", free_port(), run.key()), log_file=folder / "log", name="crew"
    )
    names = tuple(f"w{number}" for number in range(WORKERS))
    node = NodeSpec(
        folder, "crew", "127.0.0.1:1", names, GroupSettings(), Timing(), EngineSpec("noop")
    )
    try:
        supervisor = system.create(Supervisor, "supervisor")
        begun = time.monotonic()
        system.ask(supervisor, Begin(node), 20)
        where: Any = system.ask(supervisor, WhereIs("crew"), 5)
        for number in range(CONNECTORS):
            config = {"tasks.max": str(TASKS // CONNECTORS)}
            system.ask(where.address, PutConnector("crew", f"c{number}", config), 5)
        control = node.group_folder("crew") / "control"
        follower = Follower("crew", LogReader.open(control, "crew"))
        wait(follower, all_running)
        shape = f"{WORKERS} workers, {TASKS} no-op tasks of {CONNECTORS} connectors"
        tell("crew.start_to_running", time.monotonic() - begun, "s", conditions=shape)
        begun = time.monotonic()
        system.ask(supervisor, AddWorker(os.getpid()), 5)
        wait(follower, lambda group: len(group.members) > WORKERS and is_level(group))
        tell(
            "crew.join_to_balanced",
            time.monotonic() - begun,
            "s",
            conditions=f"one more to {shape}",
        )
        follower.close()
        system.ask(supervisor, ShutDown(), 20)
    finally:
        system.shutdown()


def all_running(group: Group) -> bool:
    """Tell whether every task and connector is reported as running."""
    states = [status.state for status in group.statuses.values()]
    return states.count(RunState.RUNNING) == TASKS + CONNECTORS and is_level(group)


def is_level(group: Group) -> bool:
    """Tell whether the group is at rest, and everybody holds his share."""
    held = [len(member.current.assigned) for member in group.members.values()]
    return group.state.value == "Stable" and max(held) - min(held) <= 2


def wait(follower: Follower, until: Callable[[Group], bool]) -> None:
    """Wait until the log says so."""
    deadline = time.monotonic() + 60
    while not until(follower.catch_up()):
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.005)


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        one_group(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        crew(Path(folder))


if __name__ == "__main__":
    main()
