"""Whatever happens to the processes of a node, its disks and itself, each row comes once."""

import os
import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairlead_tests.chaos.crew import crew
from fairlead_tests.chaos.faults import csv_and_json
from fairlead_tests.chaos.harsh_faults import PATIENCE_S, Clock, Disk, HarshFaults
from fairlead_tests.chaos.line import Line, flowing

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(0)]


def run(
    folder: Path, disk: Disk, lines: Sequence[Line], dice: random.Random, seconds: float
) -> int:
    """Run two lines until time is up, and return how many events there were."""
    clock = Clock(folder)
    node_of_test = crew(folder / "node", patience_s=PATIENCE_S, environ=clock.environ())
    with node_of_test as node, flowing(node, *lines):
        faults = HarshFaults(node, lines, dice, disk, clock)
        try:
            node.runs(*(each.name for each in lines))
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                faults.inject(faults.draw())
            for each in lines:
                each.finish(node)
        finally:
            print("\n".join(faults.story), f"{dict(faults.happened)}", sep="\n")
    return faults.happened.total()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts disks")
def test_each_row_comes_once_whatever_happens_to_processes_disks_and_node(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    lines = csv_and_json(tmp_path, seed)
    try:
        disk = Disk(tmp_path, {each.name: each.output for each in lines})
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no disk could be mounted: {error}")
    for each in lines:
        each.output = disk.folder(each.name)  # what is to be seen there, whatever is mounted
    try:
        seconds = float(os.environ.get("CHAOS_SECONDS", "600"))
        events = run(tmp_path, disk, lines, random.Random(seed), seconds)
        assert [each.wrong() for each in lines] == [[], []]
    finally:
        disk.close()
    rows = {each.name: len(each.feed.rows) for each in lines}
    print(f"seed {seed}: {events} events, rows {rows}")
