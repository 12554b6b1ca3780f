"""The logs of a group that has run a million batches: their size, and how soon it is rebuilt.

    python tests/benchmarks/bench_retention.py [--batches 1000000]

The batches are those of 16 tasks and their published marks, in 200 days, with a rebalance and the
statuses of all tasks for every hundred of them. The logs are written, and compacted, by what a
group's process does it with, with the settings that a node has by default. Beside it the same with
a history that is kept for ever, and what `fairlead log compact` makes of that.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from fairlead.actors.shards.hosted_logs import HostedLogs, open_logs
from fairlead.actors.timing import Now
from fairlead.events.commits import (
    Commit,
    CommitId,
    Committed,
    Manifest,
    Offset,
    Part,
    TaskProgress,
)
from fairlead.events.entries.codec import CONTROL, OFFSETS, encode, restore
from fairlead.events.entries.retention import UNLIMITED, Retention
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import shrink_log
from fairlead.events.model import Cause, Resource, RunState, Token, Why
from fairlead.events.records import GroupMetadata, TaskStatus, Tombstone
from fairlead.projections.explain.cache import EpochCache
from fairlead.runtime.config.load import load_config
from fairlead_tests.benchmarks.figures import tell

TASKS = 16
PER_EPOCH = 100
DAYS_MS = 200 * 86_400_000
END_MS = 1_790_000_000_000


def batch(number: int, now_ms: int) -> Iterator[NewEntry]:
    """Yield the entries of a batch: it counts, and the one before it is published."""
    task, of_task = number % TASKS, number // TASKS
    commit_id = CommitId("flights", task, Token(1, 1), of_task)
    file = {"file": f"part-{task}.csv"}
    parts = (Part(f"part-{of_task:08}-{task}.parquet", 10_240, 842),)
    manifest = Manifest("/data/flights", f".staging/{task}/{of_task}", 842, 10_240, 1, parts)
    yield encode(Offset("flights", file, {"row": 842 * of_task}))
    yield encode(Committed(Commit(commit_id, (), manifest, 842), now_ms))
    total = 842 * of_task
    yield encode(TaskProgress(commit_id, of_task, total, total, 10_240 * of_task, now_ms))
    if of_task:
        former = ("flights", task, 1, 1, of_task - 1)
        yield encode(Tombstone(Committed, former))


def rebalance(epoch: int, now_ms: int) -> Iterator[NewEntry]:
    """Yield the entries of an epoch: its rise, and the statuses of all tasks."""
    yield encode(GroupMetadata(epoch, Cause(Why.MEMBER_JOINED, f"h:8083/w{epoch % 8}"), now_ms))
    for task in range(TASKS):
        at = Resource("flights", task), RunState.RUNNING, f"h:8083/w{task % 8}"
        yield encode(TaskStatus(*at, Token(epoch, 1), now_ms))


def live(folder: Path, batches: int, retention: Retention) -> None:
    """Write the logs of a group that ran so many batches, and compact as its process does."""
    logs = HostedLogs(open_logs(folder, "connect", (CONTROL, OFFSETS), had_logs=False), retention)
    for first in range(0, batches, PER_EPOCH):
        at_ms = END_MS - DAYS_MS + DAYS_MS * first // batches
        now = Now(at_ms, at_ms)
        rows = range(first, min(batches, first + PER_EPOCH))
        logs.append_offsets([entry for each in rows for entry in batch(each, at_ms)], now)
        logs.append([*rebalance(1 + first // PER_EPOCH, at_ms)], now)
        if first % (100 * PER_EPOCH) == 0:
            while logs.compact(now):
                pass
    logs.close()


def size_of(folder: Path) -> float:
    """Return how many megabytes the logs take on the disk."""
    files = (each.stat() for each in folder.rglob("*") if each.is_file())
    return sum(each.st_blocks for each in files) * 512 / 1e6


def rebuild_seconds(folder: Path) -> float:
    """Return how long it takes to own the logs and to rebuild the group."""
    began = time.perf_counter()
    logs = HostedLogs(open_logs(folder, "connect", (CONTROL, OFFSETS), had_logs=True))
    restore("connect", *logs.control.load())
    took = time.perf_counter() - began
    logs.close()
    return took


def history_seconds(folder: Path) -> float:
    """Return how long the first look at the history takes."""
    began = time.perf_counter()
    with LogReader.open(folder / "control") as log:
        EpochCache(log).history()
    return time.perf_counter() - began


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1_000_000)
    batches = parser.parse_args().batches
    kept = load_config(None, {}, ()).retention()
    with tempfile.TemporaryDirectory() as scratch:
        bounded, whole = Path(scratch) / "bounded", Path(scratch) / "whole"
        live(bounded, batches, kept)
        live(whole, batches, UNLIMITED)
        report = partial(tell, peer="kept for ever", conditions=f"{batches} batches")
        report("logs on disk", size_of(bounded), "MB", peer_value=size_of(whole))
        for name, measure in (
            ("rebuild the group", rebuild_seconds),
            ("read the history", history_seconds),
        ):
            report(name, measure(bounded), "s", peer_value=measure(whole))
        for each in ("control", "offsets"):
            shrink_log(bounded / each)
            shrink_log(whole / each)
        report("logs, made smaller", size_of(bounded), "MB", peer_value=size_of(whole))


if __name__ == "__main__":
    main()
