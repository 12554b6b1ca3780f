"""One JVM for all workers, or one each: whatever happens to any process, each row comes once."""

import os
import random
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead_tests.chaos.crew import GROUP, crew
from fairlead_tests.chaos.faults import RandomFaults, csv_and_json
from fairlead_tests.chaos.line import flowing

# Each run sees workers that share a JVM: test_crew.py.
pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(0)]

SHARED = {"engine.kind": "shared", "spark.master": "local[2]"}
EMBEDDED = {"engine.kind": "embedded", "spark.master": "local[1]"}
EVENTS = ("kill worker", "kill JVM", "freeze")


@pytest.mark.parametrize(
    ("settings", "events"),
    [(SHARED, (*EVENTS, "kill owner")), (EMBEDDED, EVENTS)],
    ids=["shared", "embedded"],
)
def test_no_row_is_lost_or_doubled_wherever_jvms_are(
    tmp_path: Path, settings: Mapping[str, str], events: tuple[str, ...]
) -> None:
    run_faults(tmp_path, 7, settings, list(events))


@pytest.mark.parametrize("settings", [SHARED, EMBEDDED], ids=["shared", "embedded"])
def test_the_same_for_as_long_as_one_likes(tmp_path: Path, settings: Mapping[str, str]) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    run_faults(tmp_path, seed, settings, [], float(os.environ.get("CHAOS_SECONDS", "600")))


def run_faults(
    folder: Path, seed: int, settings: Mapping[str, str], events: list[str], seconds: float = 0
) -> None:
    """Run two lines through these events, and more of them until time is up."""
    lines = csv_and_json(folder, seed)
    with crew(folder / "node", settings=settings) as node, flowing(node, *lines):

        def kill_owner() -> str:
            """The process that owns the JVM is killed, and the JVM with it."""
            jvm = node.jvm("w1")
            owner = node.hit(f"engine {GROUP}", signal.SIGKILL)
            node.eventually(lambda: node.jvm("w1") != jvm, "there is another JVM")
            return str(owner)

        faults = RandomFaults(node, lines, random.Random(seed))
        if settings is SHARED:
            faults.events = {**faults.events, "kill owner": kill_owner}
        node.runs(*(each.name for each in lines))
        faults.inject_all(events, seconds)
        for each in lines:
            each.finish(node)
        print(f"seed {seed}: {faults.told()}")
    assert [each.wrong() for each in lines] == [[], []]
