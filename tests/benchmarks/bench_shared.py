"""What a worker's Spark takes of memory: with a JVM of its own, and with one that all share.

`python tests/benchmarks/bench_shared.py` prints JSON lines. Measured is the proportional set size
of all processes that Spark needs, warm and after some jobs, for four workers, and how long it takes
until all of them are warm.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from fairlead.runtime.processes.java import find_java

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
from fairlead_tests.spark_engine.sharing import SharedNode  # noqa: E402

WORKERS = 4
JOBS = 5
OWNER = TESTS / "fairlead_tests" / "spark_engine" / "owner.py"


def main() -> None:
    """Measure both and tell them side by side."""
    conditions = f"{WORKERS} workers, heap 512m, Java {find_java().version}, {os.cpu_count()} cores"
    with tempfile.TemporaryDirectory() as folder:
        alone_mb, alone_s = embedded(Path(folder) / "embedded")
        shared_mb, shared_s = shared(Path(folder) / "shared")
    for name, value, peer, unit in (
        ("memory_per_worker", shared_mb / WORKERS, alone_mb / WORKERS, "MB"),
        ("memory_of_all", shared_mb, alone_mb, "MB"),
        ("all_warm", shared_s, alone_s, "s"),
    ):
        told = {
            "name": f"shared_engine_{name}",
            "value": round(value, 1),
            "unit": unit,
            "peer": "a JVM in each worker",
            "peer_value": round(peer, 1),
            "ratio": round(value / peer, 3),
            "conditions": conditions,
        }
        print(json.dumps(told), flush=True)


def embedded(folder: Path) -> tuple[float, float]:
    """Return MB and seconds of workers with a JVM each."""
    began = time.perf_counter()
    workers: list[subprocess.Popen[bytes]] = []
    for number in range(WORKERS):  # one after the other: four at once starve each other
        command = [sys.executable, str(OWNER), str(folder / str(number)), "512m", "{}"]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        workers.append(worker)
        if worker.stdout is None or json.loads(worker.stdout.readline())["state"] != "warm":
            raise SystemExit("a worker did not become warm")
    seconds = time.perf_counter() - began
    memory = megabytes(psutil.Process(each.pid) for each in workers)
    for each in workers:
        each.communicate()
    return memory, seconds


def shared(folder: Path) -> tuple[float, float]:
    """Return MB and seconds of workers that share one, its owner included."""
    began = time.perf_counter()
    node = SharedNode(folder, folder, {})
    try:
        sharers = [node.sharer(f"w{number}") for number in range(WORKERS)]
        seconds = time.perf_counter() - began
        for each in sharers * JOBS:
            each.ask("count")
        roots = [node.owner, *(psutil.Process(each.process.pid) for each in sharers)]
        return megabytes(roots), seconds
    finally:
        node.close()


def megabytes(roots: Iterable[psutil.Process]) -> float:
    """Return what processes and all below them take; what several map is shared out."""
    family = {each for root in roots for each in (root, *root.children(recursive=True))}
    return sum(each.memory_full_info().pss for each in family) / 1e6


if __name__ == "__main__":
    main()
