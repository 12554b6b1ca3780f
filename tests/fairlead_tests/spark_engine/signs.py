"""Python code for executors whose run can be observed and ended."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from fairlead_tests.actor_system import runs as is_at_work


def until_told(signs: Path, name: str) -> Callable[[SparkSession], int]:
    """A job whose one Python task writes a file when it runs, and waits for `NAME.end`."""

    def task(numbers: Iterable[int]) -> Iterable[int]:
        (signs / f"{name}.tmp").write_text(str(os.getpid()))
        (signs / f"{name}.tmp").rename(signs / f"{name}.pid")
        while not (signs / f"{name}.end").exists():
            time.sleep(0.01)
        return numbers

    return lambda spark: spark.sparkContext.parallelize([1], 1).mapPartitions(task).count()


def runs(signs: Path, name: str) -> psutil.Process:
    """Wait until that task runs, and return its process."""
    pid = signs / f"{name}.pid"
    while not pid.exists():
        time.sleep(0.01)
    return psutil.Process(int(pid.read_text()))


def gone(pids: Iterable[int]) -> bool:
    """Wait until none of these processes lives."""
    left = list[psutil.Process]()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            left.append(psutil.Process(pid))
    psutil.wait_procs(left, timeout=60)
    return not any(map(is_at_work, left))
