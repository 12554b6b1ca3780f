"""What a worker and a create cost as a node grows: workers that run nothing, ten tasks each.

    python tests/benchmarks/bench_growth.py [--workers 10,50,100,200] [--connectors 1000]

With N workers N connectors are created one by one. Told is how long it takes until all of their
tasks run, the CPU that it costs, how many members the group has lost meanwhile, and what a worker
costs that has nothing to do. Then connectors are created one by one on two workers, and told is
how long the first hundred and the last hundred took.
"""

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

import psutil

from fairlead.actors.door.ports import free_port
from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.model import RunState, Why
from fairlead.projections.follow import Follower, Rebalances
from fairlead_tests.benchmarks.figures import tell

GROUP = "connect"
TASKS_EACH = 10
PATIENCE_SECONDS = 180.0
QUIET_SECONDS = 8.0
"""How long a group is left alone before it is measured what it costs to do nothing."""
IDLE_SECONDS = 20.0
SAID_CHARACTERS = 8_000
"""How much is told of what a node that failed has said."""
LOST = (Why.SESSION_EXPIRED, Why.REBALANCE_EXPIRED, Why.PROCESS_ENDED)


class Node:
    """A node with no-op workers, its REST interface and its control log."""

    def __init__(self, process: psutil.Process, port: int, log: LogReader) -> None:
        self.log = log
        self.follower = Follower(GROUP, log)
        self._process = process
        self._rest = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def create(self, name: str, tasks: int) -> float:
        """Create a connector, and return the milliseconds that it took."""
        body = json.dumps({"name": name, "config": {**CONFIG, "tasks.max": str(tasks)}})
        begun = time.perf_counter()
        self._rest.request("POST", "/connectors", body, {"content-type": "application/json"})
        answer = self._rest.getresponse()
        said = answer.read()
        assert answer.status == http.client.CREATED, said
        return (time.perf_counter() - begun) * 1000

    def cpu_s(self) -> float:
        """Return the CPU seconds of all of the node's processes that still run."""
        spent = 0.0
        for each in (self._process, *self._process.children(recursive=True)):
            try:
                times = each.cpu_times()
            except psutil.NoSuchProcess:
                continue
            spent += times.user + times.system
        return spent

    def lost(self) -> int:
        """Return how many members a timer, or the end of a process, has removed."""
        rebalances = Rebalances()
        rebalances.catch_up(self.log)
        return sum(rebalances.by_cause[why] for why in LOST)


CONFIG = {
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "source.path": "/nowhere",
    "source.schema": "a bigint",
    "sink.format": "parquet",
    "sink.path": "/nowhere-else",
}


@contextmanager
def node(folder: Path, workers: int) -> Generator[Node]:
    """Run a node until all of its workers are members, and then for as long as it is needed."""
    port, data = free_port(), folder / "data"
    settings = {"engine": "noop", "workers": str(workers), "data.dir": str(data)}
    settings["listeners"] = f"http://127.0.0.1:{port}"
    options = [part for each in settings.items() for part in ("--set", "=".join(each))]
    command = [sys.executable, "-m", "fairlead.runtime", "up", *options]
    control = data / f"groups/{GROUP}/control"
    begun = time.monotonic()
    with (
        (folder / "said").open("w+b") as said,
        subprocess.Popen(command, stderr=said, stdout=said) as process,
    ):

        def holds(condition: Callable[[], bool]) -> bool:
            if process.poll() is not None:
                raise ChildProcessError(f"the node ended with {process.returncode}")
            return condition()

        def is_up() -> bool:
            return (control / "data.mdb").exists() and listens(port)

        try:
            until(lambda: holds(is_up), "the node is up")
            with LogReader.open(control, GROUP) as log:
                found = Node(psutil.Process(process.pid), port, log)
                joined = found.follower.catch_up
                until(lambda: holds(lambda: len(joined().members) == workers), "all have joined")
                tell(f"growth_{workers}_up", time.monotonic() - begun, "s")
                yield found
        except (ChildProcessError, TimeoutError) as error:
            error.add_note(f"the node said:\n{what_was_said(folder)}")
            raise
        finally:
            process.terminate()
            process.wait()


def what_was_said(folder: Path) -> str:
    """Return what a node has printed, and the end of its actors' log."""
    files = (folder / "said", folder / "data/logs/actors.log")
    return "\n".join(each.read_text()[-SAID_CHARACTERS:] for each in files if each.exists())


def listens(port: int) -> bool:
    """Whether anybody answers at a port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return bool(connection.getresponse().read())
    except OSError:
        return False
    finally:
        connection.close()


def grow(workers: int) -> None:
    """Create as many connectors as there are workers, and then leave them alone."""
    with tempfile.TemporaryDirectory() as folder, node(Path(folder), workers) as found:
        tasks = workers * TASKS_EACH
        conditions = f"{workers} creates one by one, {tasks} tasks in all"
        before_s, begun = found.cpu_s(), time.monotonic()
        for number in range(workers):
            found.create(f"c{number}", TASKS_EACH)
        tell(f"growth_{workers}_created", time.monotonic() - begun, "s", conditions=conditions)
        until(lambda: count_running(found.follower.catch_up()) >= tasks, "all run")
        tell(f"growth_{workers}_running", time.monotonic() - begun, "s", conditions=conditions)
        tell(f"growth_{workers}_cpu", found.cpu_s() - before_s, "cpu-s", conditions=conditions)
        tell(f"growth_{workers}_lost", found.lost(), "members", conditions=conditions)
        time.sleep(QUIET_SECONDS)
        before_s, begun = found.cpu_s(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        spent_s, minutes = found.cpu_s() - before_s, (time.monotonic() - begun) / 60
        each_s = spent_s / minutes / workers
        tell(f"growth_{workers}_idle", each_s, "cpu-s/min", conditions="a worker, its share of all")


def create_many(connectors: int) -> None:
    """Create connectors of one task each, one by one."""
    with tempfile.TemporaryDirectory() as folder, node(Path(folder), 2) as found:
        begun, before_s = time.monotonic(), found.cpu_s()
        taken_ms = [found.create(f"c{number}", 1) for number in range(connectors)]
        conditions = f"{connectors} connectors one by one, 2 workers"
        tell("create_all", time.monotonic() - begun, "s", conditions=conditions)
        tell("create_cpu", (found.cpu_s() - before_s) * 1000 / connectors, "cpu-ms")
        tell("create_first_100", mean(taken_ms[:100]), "ms", conditions=conditions)
        tell("create_last_100", mean(taken_ms[-100:]), "ms", conditions=conditions)


def count_running(group: Group) -> int:
    """Return how many tasks are said to run."""
    said = group.statuses.items()
    return sum(each.is_task and status.state is RunState.RUNNING for each, status in said)


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds; raises `TimeoutError`."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"not in {PATIENCE_SECONDS:g} s: {what}")
        time.sleep(0.05)


def main() -> None:
    """Grow step by step, then create many."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--workers", default="10,50,100")
    asked.add_argument("--connectors", type=int, default=1_000)
    given = asked.parse_args()
    for workers in filter(None, given.workers.split(",")):
        grow(int(workers))
    if given.connectors:
        create_many(given.connectors)


if __name__ == "__main__":
    main()
