"""Workers that share one JVM: whatever happens to them, it or its owner, each row comes once."""

import os
import random
import signal
from pathlib import Path

import pytest

from fairlead_tests.chaos.crew import GROUP, crew
from fairlead_tests.chaos.faults import RandomFaults, csv_and_json
from fairlead_tests.chaos.line import flowing

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

SETTINGS = {"engine.kind": "shared", "spark.master": "local[2]"}


@pytest.mark.soak  # each run sees what becomes of the processes: spark_engine/test_shared.py
@pytest.mark.timeout(400)
def test_no_row_is_lost_or_doubled_by_workers_that_share_a_jvm(tmp_path: Path) -> None:
    run_faults(tmp_path, 7, ["kill worker", "kill JVM", "kill owner", "freeze"])


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_the_same_for_as_long_as_one_likes(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    run_faults(tmp_path, seed, [], float(os.environ.get("CHAOS_SECONDS", "600")))


def run_faults(folder: Path, seed: int, events: list[str], seconds: float = 0) -> None:
    """Run two lines through these events, and more of them until time is up."""
    lines = csv_and_json(folder, seed)
    with crew(folder / "node", settings=SETTINGS) as node, flowing(node, *lines):

        def kill_owner() -> str:
            """The process that owns the JVM is killed, and the JVM with it."""
            jvm = node.jvm("w1")
            owner = node.hit(f"engine {GROUP}", signal.SIGKILL)
            node.eventually(lambda: node.jvm("w1") != jvm, "there is another JVM")
            return str(owner)

        faults = RandomFaults(node, lines, random.Random(seed))
        faults.events = {**faults.events, "kill owner": kill_owner}
        node.runs(*(each.name for each in lines))
        faults.inject_all(events, seconds)
        for each in lines:
            each.finish(node)
        print(f"seed {seed}: {faults.told()}")
    assert [each.wrong() for each in lines] == [[], []]
