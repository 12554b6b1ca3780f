"""Whatever happens to the processes of a node, its disks and itself, each row comes once."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from fairlead.runtime.demo.output import Format
from fairlead.runtime.demo.verdict import judge
from fairlead.runtime.pipeline.connectors.files.staging import STAGING
from fairlead_tests.chaos.crew import crew
from fairlead_tests.chaos.faults import CSV, JSON, Pipelines
from fairlead_tests.chaos.harsh_faults import PATIENCE_S, Clock, Disk, HarshFaults
from fairlead_tests.chaos.lookout import Lookout

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(0)]

FORMATS: dict[str, Format] = {CSV: "parquet", JSON: "csv"}


def run(folder: Path, disk: Disk, pipelines: Pipelines, dice: random.Random, seconds: float) -> int:
    """Run two pipelines until time is up, and return how many events there were."""
    clock = Clock(folder)
    with crew(folder / "node", patience_s=PATIENCE_S, environ=clock.environ()) as node:
        lookout = Lookout(*map(disk.folder, FORMATS))
        faults = HarshFaults(node, pipelines, dice, disk, clock)
        try:
            node.up(workers=2)
            for name, feed in pipelines.feeds.items():
                feed.start()
                node.put(name, pipelines.configs[name])
            node.eventually(lambda: node.is_running(CSV, JSON), "everything runs")
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                faults.inject(faults.draw())
            for name, feed in pipelines.feeds.items():
                feed.stop()
                node.reads_all(name, feed.files)
        finally:
            print("\n".join(faults.story), f"{dict(faults.happened)}", sep="\n")
            lookout.stop()
            for feed in pipelines.feeds.values():
                feed.stop()
    assert (lookout.broken, lookout.changed()) == ([], [])
    return faults.happened.total()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts disks")
def test_each_row_comes_once_whatever_happens_to_processes_disks_and_node(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    pipelines = Pipelines(tmp_path, seed)
    try:
        disk = Disk(tmp_path, {name: pipelines.output(name) for name in FORMATS})
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no disk could be mounted: {error}")
    try:
        seconds = float(os.environ.get("CHAOS_SECONDS", "600"))
        events = run(tmp_path, disk, pipelines, random.Random(seed), seconds)
        for name, form in FORMATS.items():
            verdict = judge(pipelines.feeds[name].expected(), disk.folder(name), form)
            assert [check for check in verdict.checks if not check.ok] == []
            assert list((disk.folder(name) / STAGING).iterdir()) == []
    finally:
        disk.close()
    rows = {name: len(feed.rows) for name, feed in pipelines.feeds.items()}
    print(f"seed {seed}: {events} events, rows {rows}")
