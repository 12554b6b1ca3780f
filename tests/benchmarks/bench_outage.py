"""How long the work of a worker that is killed stands still, with nothing parked.

    python tests/benchmarks/bench_outage.py [noop] [spark]

A node of two workers loses one of them by kill -9; told is how long it takes until the last of its
resources runs elsewhere, by the group's log. With `PEER_BENCH` (a folder with control_plane.py),
`PEER_LIBS` (Kafka's jars) and `PEER_PLUGIN` (the no-op connector's jar) the same is done to
Kafka Connect in the same run, whose figures are printed as that script tells them.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.model import Resource, RunState
from fairlead.projections.follow.group import Follower
from fairlead.runtime.cluster.run_folder import NoNodeError, RunFolder
from fairlead_tests.benchmarks.figures import tell

TASKS = 4
KILLS = 3
UP_SECONDS = 300.0
GROUP = "connect"
SETTINGS = {
    "workers": "2",
    "listeners": "http://127.0.0.1:0",
    "scheduled.rebalance.max.delay.ms": "0",
    "spark.heap": "512m",
}


def main(engines: list[str]) -> None:
    """Measure with each engine, and then the peer if it is there."""
    for engine in engines or ["noop", "spark"]:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), engine)
    if os.environ.get("PEER_BENCH"):
        measure_peer(Path(os.environ["PEER_BENCH"]))


def measure(folder: Path, engine: str) -> None:
    """Kill a worker some times, and tell the outages."""
    with node(folder, engine) as (rest, follower):
        (folder / "in").mkdir()
        (folder / "in" / "a.csv").write_text("a\n1\n")
        put(rest, {**CONFIG, "source.path": f"{folder}/in", "sink.path": f"{folder}/out"})
        for _ in range(KILLS):
            until(lambda: is_level(follower.catch_up()), "all tasks run on two workers")
            outage_ms = lose_one(rest, follower)
            conditions = f"kill -9 of one of 2 workers, {TASKS} tasks, delay 0"
            tell(f"outage_{engine}", outage_ms / 1000, "s", conditions=conditions)


CONFIG = {
    "connector.class": "SparkPipeline",
    "tasks.max": str(TASKS),
    "source.format": "csv",
    "source.schema": "a bigint",
    "sink.format": "parquet",
}


@contextmanager
def node(folder: Path, engine: str) -> Generator[tuple[str, Follower]]:
    """Run a node, and give its REST interface and its log."""
    settings = {**SETTINGS, "engine": engine, "data.dir": str(folder / "data")}
    options = [part for each in settings.items() for part in ("--set", "=".join(each))]
    command = [sys.executable, "-m", "fairlead.runtime", "up", *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        run_folder, control = RunFolder(folder / "data"), folder / f"data/groups/{GROUP}/control"
        until(lambda: is_up(run_folder), "the node is up")
        with LogReader.open(control, GROUP) as log:
            yield run_folder.node().rest, Follower(GROUP, log)
    finally:
        process.terminate()
        process.wait()


def is_up(folder: RunFolder) -> bool:
    """Whether requests are answered."""
    try:
        return bool(get(f"{folder.node().rest}/health"))
    except (NoNodeError, OSError):
        return False


def lose_one(rest: str, follower: Follower) -> int:
    """Kill a worker with work, and return how long in ms until all of that runs elsewhere."""
    group = follower.catch_up()
    member_id = max(group.members, key=lambda each: len(group.members[each].current.assigned))
    lost = set(group.members[member_id].current.assigned)
    listed = get(f"{rest}/workers")["workers"]
    (pid,) = (each["process"]["pid"] for each in listed if each["member"]["member_id"] == member_id)
    began_ms = time.time_ns() // 1_000_000
    os.kill(int(str(pid)), signal.SIGKILL)
    until(lambda: run_elsewhere(follower.catch_up(), lost, member_id), "its work runs elsewhere")
    return max(follower.group.statuses[each].time_ms for each in lost) - began_ms


def run_elsewhere(group: Group, lost: set[Resource], member_id: str) -> bool:
    """Whether all that was lost runs under tokens that its former worker never had."""
    if member_id in group.members:
        return False
    return all(is_running(group, each) for each in lost)


def is_running(group: Group, resource: Resource) -> bool:
    """Whether a resource runs where it is held."""
    status, owner = group.statuses.get(resource), group.owner.get(resource)
    if status is None or owner is None or status.state is not RunState.RUNNING:
        return False
    return status.token.grant_epoch == group.members[owner].current.assigned[resource]


def is_level(group: Group) -> bool:
    """Whether two workers share all tasks, and all of them run."""
    busy = [each for each in group.members.values() if each.current.assigned]
    tasks = [each for each in group.configured if each.is_task]
    return len(busy) == 2 and len(tasks) == TASKS and all(is_running(group, each) for each in tasks)


def get(url: str) -> dict[str, list[dict[str, dict[str, object]]]]:
    """Return what lies at a URL."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: dict[str, list[dict[str, dict[str, object]]]] = json.load(answer)
    return found


def put(rest: str, config: dict[str, str]) -> None:
    """Create the connector."""
    request = urllib.request.Request(
        f"{rest}/connectors/c/config",
        json.dumps(config).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    urllib.request.urlopen(request, timeout=60).close()


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + UP_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"not in {UP_SECONDS:g} s: {what}")
        time.sleep(0.005)


def measure_peer(folder: Path) -> None:
    """Have Connect lose a worker; what its script tells of that is printed as it is."""
    with tempfile.TemporaryDirectory() as work:
        options = ["--libs", os.environ["PEER_LIBS"], "--plugin", os.environ["PEER_PLUGIN"]]
        crew = ["--workers", "2", "--connectors", "1", "--steps", "join,kill", "--folder", work]
        command = [sys.executable, str(folder / "control_plane.py"), "connect", *options, *crew]
        told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    for line in told.stdout.splitlines():
        if '"kill.' in line:
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
