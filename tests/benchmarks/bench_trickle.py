"""How soon a file of 1,000 rows is published after it has landed, and what waiting for files costs.

`python tests/benchmarks/bench_trickle.py` prints JSON lines: the time from a file's rename into its
folder to the rename of what came of it, at default settings, with one connector and with eight at
once, beside Spark's structured streaming and a node with `engine.lane=spark` in the same run, and
the CPU time that a file took; the share of a core that a connector takes over a folder of files
that are all read; and the memory of a node with fifty connectors.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from fairlead_tests import TESTS
from fairlead_tests.benchmarks.figures import median, tell
from fairlead_tests.benchmarks.landing import Published
from fairlead_tests.benchmarks.spark_node import BenchNode, started, wait_until
from fairlead_tests.benchmarks.streams import SCHEMA

ROWS = "id,name,amount\n" + "".join(f"{n},name-{n % 7},{n * 3}\n" for n in range(1000))
FILES = 120
"""That are timed, of all connectors together."""

FIRST = 5
"""Files that each connector has before any is timed."""

LONGEST_PAUSE_S = 0.6
PER_FOLDER = 10_000
IDLE_SECONDS = 20.0


def main() -> None:
    """Measure all."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--read-files", type=int, default=100_000)
    given = asked.parse_args()
    for connectors in (1, 8):
        trickle(connectors)
    idle(given.read_files)
    crowd(connectors=50, tasks=2)


def trickle(connectors: int) -> None:
    """Land files in all folders at once, by the peer first."""
    with tempfile.TemporaryDirectory() as folder:
        theirs = Path(folder) / "streams"
        with streams(theirs, connectors):
            peer = landed(theirs, connectors, lambda sink: count_in(sink / "_spark_metadata"))
        taken, cpu_ms = by_fairlead(Path(folder) / "auto", connectors, "auto")
        by_spark, cpu_by_spark_ms = by_fairlead(Path(folder) / "spark", connectors, "spark")
    name = f"file_to_published_p50_{connectors}"
    conditions = f"{len(taken)} files of 1,000 rows, {connectors} connectors"
    peers = {"structured streaming": median(peer), "engine.lane=spark": median(by_spark)}
    for of, value in peers.items():
        tell(name, median(taken), "ms", peer=of, peer_value=value, conditions=conditions)
    tell(
        f"cpu_of_a_small_file_{connectors}",
        cpu_ms,
        "ms",
        peer="engine.lane=spark",
        peer_value=cpu_by_spark_ms,
        conditions=f"all processes of the node, {connectors} connectors, from their first file on",
    )


def by_fairlead(root: Path, connectors: int, lane: str) -> tuple[list[float], float]:
    """Return how many ms each file took, and the CPU time of one in ms."""
    lay_out(root, connectors)
    with started(root, {"workers": "1", "engine.lane": lane}) as node:
        for number in range(connectors):
            create(node, f"c{number}", root, number, tasks=1)
        before_s = node.cost().cpu_s
        taken = landed(root, connectors, lambda sink: Published(sink).files())
        cpu_s = node.cost().cpu_s - before_s
    return taken, 1000 * cpu_s / (len(taken) + FIRST * connectors)


def idle(files: int) -> None:
    """Have a connector of four tasks read many small files, and then leave it alone."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root, 1)
        for number in range(files):
            below = root / "in/0" / f"{number // PER_FOLDER}"
            below.mkdir(exist_ok=True)
            (below / f"{number}.csv").write_text("id,name,amount\n1,a,2\n")
        with started(root, {"workers": "1"}) as node:
            create(node, "c0", root, 0, tasks=4)
            published = Published(root / "out/0")
            wait_until(lambda: published.rows() >= files, "all files are read", 1.0, 1800.0)
            time.sleep(IDLE_SECONDS)
            before_s, begun = node.cost().cpu_s, time.monotonic()
            time.sleep(IDLE_SECONDS)
            share = (node.cost().cpu_s - before_s) / (time.monotonic() - begun)
    conditions = f"{files} read files in folders of {PER_FOLDER}, 4 tasks; the whole node"
    tell("idle_over_read_files", 100 * share, "% of a core", conditions=conditions)


def crowd(connectors: int, tasks: int) -> None:
    """Have many connectors do some work on one node."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root, connectors)
        with started(root, {}) as node:
            for number in range(connectors):
                create(node, f"c{number}", root, number, tasks)
                for file in range(2 * tasks):
                    (root / "in" / str(number) / f"{file}.csv").write_text(ROWS)
            sinks = [Published(root / "out" / str(number)) for number in range(connectors)]
            wanted = connectors * tasks * 2 * 1000
            wait_until(lambda: sum(map(Published.rows, sinks)) >= wanted, "all is read", 0.5)
            conditions = (
                f"{connectors} connectors of {tasks} tasks each, 2 workers, shared pages once"
            )
            tell("memory_of_a_node", node.cost().pss_mib, "MiB", conditions=conditions)


@contextmanager
def streams(root: Path, connectors: int) -> Generator[None]:
    """Run the peer over folders of its own."""
    lay_out(root, connectors)
    order = [sys.executable, "-m", "fairlead_tests.benchmarks.streams", str(root), str(connectors)]
    environ = {**os.environ, "PYTHONPATH": str(TESTS)}
    with (
        (root / "said").open("wb") as said,
        subprocess.Popen(order, stdin=subprocess.PIPE, stderr=said, env=environ) as process,
    ):
        yield
        process.kill()


def landed(root: Path, connectors: int, published: Callable[[Path], int]) -> list[float]:
    """Land files in each folder, one after the other; return how many ms each took."""

    def each(number: int) -> list[float]:
        pauses, sink = random.Random(number), root / "out" / str(number)
        taken: list[float] = []
        for file in range(FIRST + -(-FILES // connectors)):
            time.sleep(pauses.uniform(0, LONGEST_PAUSE_S))
            aside = root / "aside" / f"{number}-{file}.csv"
            aside.write_text(ROWS)
            target = root / "in" / str(number) / f"{file}.csv"
            taken.append(moved_in(aside, target, lambda: published(sink)))
        return taken[FIRST:]

    with ThreadPoolExecutor(connectors) as pool:
        return sorted(ms for some in pool.map(each, range(connectors)) for ms in some)


def moved_in(aside: Path, target: Path, published: Callable[[], int]) -> float:
    """Move a file to where it is read; return how many ms it took until more was published."""
    before = published()
    begun = time.perf_counter()
    aside.rename(target)
    wait_until(lambda: published() > before, "a file is published", 0.003)
    return 1000 * (time.perf_counter() - begun)


def create(node: BenchNode, name: str, root: Path, number: int, tasks: int) -> None:
    """Create a connector from one folder of a layout into another."""
    paths = {"source.path": f"{root}/in/{number}", "sink.path": f"{root}/out/{number}"}
    formats = {"source.format": "csv", "source.schema": SCHEMA, "sink.format": "parquet"}
    kind = {"connector.class": "SparkPipeline", "tasks.max": str(tasks)}
    node.create(name, {**kind, **formats, **paths})


def lay_out(root: Path, connectors: int) -> None:
    """Make the folders."""
    (root / "aside").mkdir(parents=True)
    for number in range(connectors):
        (root / "in" / str(number)).mkdir(parents=True)


def count_in(folder: Path) -> int:
    """Count the commits in the log of a stream's sink."""
    with suppress(FileNotFoundError), os.scandir(folder) as found:
        return sum(not each.name.startswith(".") for each in found)
    return 0


if __name__ == "__main__":
    main()
