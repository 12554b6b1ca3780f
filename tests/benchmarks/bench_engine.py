"""How long the embedded engine takes to start, and to run a small job.

`python tests/benchmarks/bench_engine.py` prints JSON lines, one per measure. The peer is the
session that stock PySpark starts, as a new user would write it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from fairlead.runtime.pipeline.engines.embedded.attach import warm_up
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.processes.java import find_java

CORES = 2
JOBS = 30


def main() -> None:
    """Measure ours and, in a process of its own, stock PySpark; tell both."""
    if sys.argv[1:] == ["stock"]:
        print(json.dumps(stock()))
        return
    peer = subprocess.run([sys.executable, __file__, "stock"], capture_output=True, check=True)
    theirs: dict[str, float] = json.loads(peer.stdout.splitlines()[-1])
    load = f"{os.getloadavg()[0]:.1f}"
    conditions = f"local[{CORES}] of {os.cpu_count()}, Java {find_java().version}, load {load}"
    for name, value in embedded().items():
        told = {
            "name": f"engine_{name}",
            "value": round(value, 4),
            "unit": "cpu-s" if name.startswith("cpu") else "s",
            "peer": "SparkSession.builder.getOrCreate()",
            "peer_value": round(theirs[name], 4) if name in theirs else None,
            "ratio": round(value / theirs[name], 3) if name in theirs else None,
            "conditions": conditions,
        }
        print(json.dumps(told), flush=True)


def embedded() -> dict[str, float]:
    """Open, warm, work, lose the JVM, come back, close; seconds of each."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Embedded(Path(folder), cores=CORES)
        measured = {"open_returns": seconds(engine.open)}
        measured["to_warm"] = measured["open_returns"] + seconds(lambda: warm(engine))
        measured["cpu_to_warm"] = jvm_seconds()
        measured["small_job"] = small_job(lambda: engine.run("bench", count))
        measured["csv_to_parquet"] = small_job(lambda: engine.run("bench", batch(folder)))
        measured["first_python_stage"] = seconds(lambda: engine.run("bench", in_python))
        measured["kill"] = seconds(engine.kill)
        measured["to_warm_again"] = seconds(engine.open) + seconds(lambda: warm(engine))
        measured["close"] = seconds(lambda: engine.close(30))
    return measured


def stock() -> dict[str, float]:
    """Do the same with a session as it comes."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        spark = SparkSession.builder.master(f"local[{CORES}]").getOrCreate()
        (Path(folder) / "warm").mkdir()
        warm_up(spark, Path(folder) / "warm")
        measured = {"to_warm": time.perf_counter() - began}
        measured["cpu_to_warm"] = jvm_seconds()
        measured["small_job"] = small_job(lambda: count(spark))
        measured["csv_to_parquet"] = small_job(lambda: batch(folder)(spark))
        measured["first_python_stage"] = seconds(lambda: in_python(spark))
        measured["close"] = seconds(spark.stop)
    return measured


def jvm_seconds() -> float:
    """Return the processor time of the JVMs that live now; tells more on a busy machine."""
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return sum(spent.user + spent.system for spent in times)


def warm(engine: Embedded) -> None:
    """Wait until jobs run."""
    if not engine.wait_warm(120):
        raise SystemExit(engine.detail)


def count(spark: SparkSession) -> int:
    """Do about as little as a job can."""
    return spark.range(1000).count()


def in_python(spark: SparkSession) -> object:
    """Start the first Python worker."""
    return spark.sparkContext.parallelize([1], 1).map(lambda number: number).collect()


def batch(folder: str) -> Callable[[SparkSession], None]:
    """Make the job of a small batch: a thousand rows of csv to parquet."""
    rows = Path(folder) / "rows.csv"
    rows.write_text("".join(f"{number},name-{number % 7}\n" for number in range(1000)))

    def job(spark: SparkSession) -> None:
        read = spark.read.csv(str(rows), schema="id bigint, name string")
        read.write.mode("overwrite").parquet(f"{folder}/rows.parquet")

    return job


def seconds(step: Callable[[], object]) -> float:
    """Time one step."""
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def small_job(job: Callable[[], object]) -> float:
    """Return the median of some runs."""
    return statistics.median(seconds(job) for _ in range(JOBS))


if __name__ == "__main__":
    main()
