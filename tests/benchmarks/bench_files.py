"""How fast csv files become parquet: a gigabyte, and backlogs of small and of smaller files.

`python tests/benchmarks/bench_files.py` prints JSON lines; `--gigabytes 0` leaves the gigabyte out.
Measured is from the request that creates a connector, on a node that is warm, to the moment at
which all rows are published; each batch is flushed to disk and committed. The peers, plain Spark,
DuckDB and Polars, do the same job in the same run, promise nothing about a crash, and are not timed
while they start.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fairlead_tests import TESTS
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.benchmarks.landing import FLIGHTS, Published, land
from fairlead_tests.benchmarks.spark_node import BenchNode, started, wait_until

COPIES_OF_A_GIGABYTE = 33
PEERS = ("spark", "duckdb", "polars")


def main() -> None:
    """Measure all."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--gigabytes", type=int, default=1)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        backlog(root, "84 KB", copies=4, files=365)
        backlog(root, "1.9 MB", copies=8, files=16)
        if given.gigabytes:
            gigabytes(root, given.gigabytes)


def backlog(root: Path, size: str, copies: int, files: int) -> None:
    """Have one task read files of one size, beside plain Spark."""
    landing = root / "landing"
    rows = land(landing, copies, files)
    peer_s = by_peer(root, "spark")
    seconds, _ = by_fairlead(root, rows, workers=1, tasks=1)
    name = f"backlog_of_{size.lower().replace(' ', '_')}"
    conditions = f"{copies * files} csv files of {size}, {rows} rows, 1 task"
    peer = rows / peer_s if peer_s else None
    tell(name, rows / seconds, "rows/s", peer="plain Spark", peer_value=peer, conditions=conditions)
    shutil.rmtree(landing)


def gigabytes(root: Path, count: int) -> None:
    """Have one task, two tasks and two workers do what the peers do."""
    landing = root / "landing"
    rows = land(landing, count * COPIES_OF_A_GIGABYTE, 1)
    peers = {each: by_peer(root, each) for each in PEERS}
    for workers, tasks in ((1, 1), (1, 2), (2, 2)):
        seconds, cpu_s = by_fairlead(root, rows, workers, tasks)
        name = f"csv_to_parquet_{workers}_workers_{tasks}_tasks"
        conditions = f"{count} GB, {rows} rows, files of 31 MB"
        for peer, peer_s in peers.items():
            if peer_s:
                tell(name, seconds, "s", peer=peer, peer_value=peer_s, conditions=conditions)
        tell(f"{name}_cpu", cpu_s, "cpu-s", conditions=conditions)


def by_fairlead(root: Path, rows: int, workers: int, tasks: int) -> tuple[float, float]:
    """Return the seconds, and the CPU seconds, until all rows are published."""
    with (
        tempfile.TemporaryDirectory(dir=root) as folder,
        started(Path(folder), {"workers": str(workers)}) as node,
    ):
        warm(node, Path(folder), workers)
        sink = Path(folder) / "out"
        published, before_s = Published(sink), node.cost().cpu_s
        begun = time.perf_counter()
        paths = {"source.path": str(root / "landing"), "sink.path": str(sink)}
        node.create("flights", {**FLIGHTS, **paths, **common(tasks)})
        wait_until(lambda: published.rows() >= rows, "all rows are published", 0.01)
        seconds, cpu_s = time.perf_counter() - begun, node.cost().cpu_s - before_s
        assert published.rows() == rows
        return seconds, cpu_s


def warm(node: BenchNode, folder: Path, workers: int) -> None:
    """Have some small files go through the Spark of each worker."""
    source, sink = folder / "warm-in", folder / "warm-out"
    source.mkdir()
    for number in range(8 * workers):
        (source / f"{number}.csv").write_text("id,name\n1,a\n2,b\n")
    paths = {"source.path": str(source), "sink.path": str(sink)}
    schema = {"source.format": "csv", "source.schema": "id INT, name STRING"}
    node.create("warm", {**schema, **paths, **common(4 * workers)})
    published = Published(sink)
    wait_until(lambda: published.rows() >= 16 * workers, "the workers are warm")
    node.delete("warm")
    time.sleep(2)


def common(tasks: int) -> dict[str, str]:
    """Return what all connectors here have."""
    return {
        "connector.class": "SparkPipeline",
        "tasks.max": str(tasks),
        "source.min.age.ms": "0",
        "sink.format": "parquet",
    }


def by_peer(root: Path, engine: str) -> float | None:
    """Return the seconds of a peer; None, and a word about it, if it cannot be had."""
    with tempfile.TemporaryDirectory(dir=root) as folder:
        order = [sys.executable, "-m", "fairlead_tests.benchmarks.csv_peers", engine]
        environ = {**os.environ, "PYTHONPATH": str(TESTS), "POLARS_MAX_THREADS": "2"}
        ran = subprocess.run(
            [*order, str(root / "landing"), f"{folder}/out"],
            capture_output=True,
            text=True,
            env=environ,
            check=False,
        )
    if ran.returncode:
        print(f"{engine} cannot be had: {ran.stderr.splitlines()[-1]}", file=sys.stderr)
        return None
    return float(ran.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
