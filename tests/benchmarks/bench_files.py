"""How fast files become parquet: a gigabyte of csv, backlogs of smaller files, and JSON lines.

`python tests/benchmarks/bench_files.py` prints JSON lines; `--gigabytes 0` leaves the gigabyte out.
Each is copied by Arrow where it may, and by Spark alone (`engine.lane=spark`): in time, in CPU time
of all processes, and in memory. Measured is from the request that creates a connector, on a node
that is warm, to the moment at which all rows are published; each batch is flushed to disk and
committed. The peers, plain Spark, DuckDB and Polars, do the same job in the same run, promise
nothing about a crash, and are not timed while they start. The survey of a file, which comes before,
is measured on one core.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark.sql.types import IntegerType, StringType, StructField, StructType, TimestampType

from fairlead.runtime.demo.stage import SCHEMA
from fairlead.runtime.pipeline.formats.csv.grammar import PlainForm
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.formats.spark.odd_texts import csv_edges, odd_in_csv
from fairlead.runtime.pipeline.stores.files.copies import Copies
from fairlead.runtime.pipeline.stores.files.source.text import prove_csv, survey_csv
from fairlead_tests import TESTS
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.benchmarks.landing import FLIGHTS, Published, land
from fairlead_tests.benchmarks.spark_node import BenchNode, started, wait_until

COPIES_OF_A_GIGABYTE = 33
PEERS = ("spark", "duckdb", "polars")
LANES = ("auto", "spark")
TYPES = {"INT": IntegerType(), "STRING": StringType(), "TIMESTAMP": TimestampType()}
JSON_ROWS = 1_000_000
JSON = {"source.format": "json", "source.schema": "id BIGINT, name STRING, amount DOUBLE, at DATE"}


class Copied(NamedTuple):
    """What a copy took until all of its rows were published."""

    seconds: float
    cpu_s: float
    """Of all processes of the node."""
    peak_mib: float
    """The most memory of them, shared pages once."""


def main() -> None:
    """Measure all."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--gigabytes", type=int, default=1)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        survey(root)
        backlog(root, "84 KB", copies=4, files=365)
        backlog(root, "250 KB", copies=33, files=122)
        backlog(root, "1.9 MB", copies=8, files=16)
        json_lines(root)
        if given.gigabytes:
            gigabytes(root, given.gigabytes)


def survey(root: Path) -> None:
    """Prove a file on one core, beside the scan of files that are not proved."""
    land(root / "landing", 1, 1)
    (file,) = (root / "landing").iterdir()
    fields = [each.split(" ") for each in SCHEMA.split(", ")]
    schema = StructType([StructField(name, TYPES[kind]) for name, kind in fields])
    style = CsvStyle(nulls=("NA",))
    form = PlainForm(schema, style, {}, "UTC", is_inferred=False)
    odd = odd_in_csv(schema, csv_edges(",", '"', trims=False), finds_codes=False)

    def proof() -> None:
        assert prove_csv(file, form, ()) is not None

    def scan() -> None:
        survey_csv(file, style, Copies(), None, odd=odd)

    size = file.stat().st_size
    proved, scanned = (size / cpu_seconds_of(step) / 1e6 for step in (proof, scan))
    conditions = f"a csv file of {size >> 20} MB, in the page cache; MB per second of CPU"
    tell("survey", proved, "MB/s", peer="scan", peer_value=scanned, conditions=conditions)
    shutil.rmtree(root / "landing")


def cpu_seconds_of(step: Callable[[], None]) -> float:
    """Return the least CPU time of some runs."""
    taken: list[float] = []
    for _ in range(7):
        begun_s = time.thread_time()
        step()
        taken.append(time.thread_time() - begun_s)
    return min(taken)


def backlog(root: Path, size: str, copies: int, files: int) -> None:
    """Have one task read files of one size, beside plain Spark."""
    landing = root / "landing"
    rows = land(landing, copies, files)
    peer_s = by_peer(root, "spark")
    name = f"backlog_of_{size.lower().replace(' ', '_')}"
    conditions = f"{copies * files} csv files of {size}, {rows} rows, 1 task"
    found = {lane: by_fairlead(root, rows, 1, 1, {"engine.lane": lane}) for lane in LANES}
    rate, peer = rows / found["auto"].seconds, rows / peer_s if peer_s else None
    tell(name, rate, "rows/s", peer="plain Spark", peer_value=peer, conditions=conditions)
    tell_lanes(name, found, conditions)
    shutil.rmtree(landing)


def gigabytes(root: Path, count: int) -> None:
    """Have one task, two tasks and two workers do what the peers do."""
    landing = root / "landing"
    rows = land(landing, count * COPIES_OF_A_GIGABYTE, 1)
    peers = {each: by_peer(root, each) for each in PEERS}
    conditions = f"{count} GB, {rows} rows, files of 31 MB"
    for workers, tasks in ((1, 1), (1, 2), (2, 2)):
        name = f"csv_to_parquet_{workers}_workers_{tasks}_tasks"
        lanes = LANES if workers == tasks == 1 else LANES[:1]
        found = {
            lane: by_fairlead(root, rows, workers, tasks, {"engine.lane": lane}) for lane in lanes
        }
        copied = found["auto"]
        for peer, peer_s in peers.items():
            if peer_s:
                tell(name, copied.seconds, "s", peer=peer, peer_value=peer_s, conditions=conditions)
        tell_lanes(name, found, conditions)


def json_lines(root: Path) -> None:
    """Have one task copy files of JSON, one object a line."""
    landing = root / "landing"
    landing.mkdir()
    line = '{"id": %d, "name": "name-%d", "amount": %d.5, "at": "2024-05-%02d"}\n'
    for file in range(10):
        numbers = range(file * JSON_ROWS // 10, (file + 1) * JSON_ROWS // 10)
        lines = (line % (each, each % 7, each % 1000, 1 + each % 28) for each in numbers)
        (landing / f"{file}.json").write_text("".join(lines))
    found = {
        lane: by_fairlead(root, JSON_ROWS, 1, 1, {**JSON, "engine.lane": lane}) for lane in LANES
    }
    tell_lanes("json_lines", found, f"{JSON_ROWS} rows in 10 files, 1 task")
    shutil.rmtree(landing)


def tell_lanes(name: str, found: Mapping[str, Copied], conditions: str) -> None:
    """Tell what a copy took, beside the same by Spark alone if that was measured."""
    by_spark = found.get("spark")
    units = {"seconds": "s", "cpu_s": "cpu-s", "peak_mib": "MiB"}
    for of, (field, unit) in enumerate(units.items()):
        tell(
            f"{name}_{field}",
            found["auto"][of],
            unit,
            peer="engine.lane=spark",
            peer_value=None if by_spark is None else by_spark[of],
            conditions=conditions,
        )


def by_fairlead(root: Path, rows: int, workers: int, tasks: int, more: Mapping[str, str]) -> Copied:
    """Return what it takes until all rows are published."""
    with (
        tempfile.TemporaryDirectory(dir=root) as folder,
        started(Path(folder), {"workers": str(workers)}) as node,
    ):
        warm(node, Path(folder), workers)
        sink = Path(folder) / "out"
        published, before = Published(sink), node.cost()
        peak_mib, look_at = before.pss_mib, 0.0
        begun = time.perf_counter()

        def are_all_published() -> bool:
            nonlocal peak_mib, look_at
            if time.monotonic() >= look_at:  # a look takes some milliseconds
                look_at = time.monotonic() + 1
                peak_mib = max(peak_mib, node.cost().pss_mib)
            return published.rows() >= rows

        paths = {"source.path": str(root / "landing"), "sink.path": str(sink)}
        node.create("copy", {**FLIGHTS, **paths, **common(tasks), **more})
        wait_until(are_all_published, "all rows are published", 0.01, 900.0)
        seconds, cpu_s = time.perf_counter() - begun, node.cost().cpu_s - before.cpu_s
        assert published.rows() == rows
        return Copied(seconds, cpu_s, peak_mib)


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
