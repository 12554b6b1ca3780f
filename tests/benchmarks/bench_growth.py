"""What a worker and a create cost as a node grows: workers that run nothing, ten tasks each.

    python tests/benchmarks/bench_growth.py [--workers 10,50,100,200] [--connectors 1000]

With N workers N connectors are created one by one. Told is how long it takes until all of their
tasks run, the CPU that it costs, how many members the group has lost meanwhile, and what a worker
costs that has nothing to do. Then connectors are created one by one on two workers, and told is
how long the first hundred and the last hundred took.
"""

import argparse
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.model import RunState, Why
from fairlead.projections.follow.group import Follower
from fairlead.projections.follow.rebalances import Rebalances
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.benchmarks.spark_node import BenchNode, started, wait_until

GROUP = "connect"
TASKS_EACH = 10
QUIET_SECONDS = 8.0
"""How long a group is left alone before it is measured what it costs to do nothing."""
IDLE_SECONDS = 20.0
LOST = (Why.SESSION_EXPIRED, Why.REBALANCE_EXPIRED, Why.PROCESS_ENDED)


class Node:
    """A node with no-op workers, and its control log."""

    def __init__(self, node: BenchNode, log: LogReader) -> None:
        self.log = log
        self.follower = Follower(GROUP, log)
        self._node = node

    def create(self, name: str, tasks: int) -> float:
        """Create a connector, and return the milliseconds that it took."""
        return self._node.create(name, {**CONFIG, "tasks.max": str(tasks)})

    def cpu_s(self) -> float:
        """Return the CPU seconds of all of the node's processes that still run."""
        return self._node.cost().cpu_s

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
    begun = time.monotonic()
    with (
        started(folder, {"engine": "noop", "workers": str(workers)}) as running,
        LogReader.open(folder / f"data/groups/{GROUP}/control", GROUP) as log,
    ):
        found = Node(running, log)
        joined = found.follower.catch_up
        wait_until(lambda: len(joined().members) == workers, "all have joined")
        tell(f"growth_{workers}_up", time.monotonic() - begun, "s")
        yield found


def grow(workers: int) -> None:
    """Create as many connectors as there are workers, and then leave them alone."""
    with tempfile.TemporaryDirectory() as folder, node(Path(folder), workers) as found:
        tasks = workers * TASKS_EACH
        conditions = f"{workers} creates one by one, {tasks} tasks in all"
        before_s, begun = found.cpu_s(), time.monotonic()
        for number in range(workers):
            found.create(f"c{number}", TASKS_EACH)
        tell(f"growth_{workers}_created", time.monotonic() - begun, "s", conditions=conditions)
        wait_until(lambda: count_running(found.follower.catch_up()) >= tasks, "all run")
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
