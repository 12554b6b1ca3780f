"""Whatever happens to the processes of a node, each row of the input is in the output once."""

import os
import random
import statistics
import time
from pathlib import Path

import pytest

from fairlead.runtime.demo.output import Format
from fairlead.runtime.demo.verdict import Check, judge
from fairlead.runtime.pipeline.connectors.files.staging import STAGING
from fairlead_tests.chaos.crew import Crew, crew
from fairlead_tests.chaos.faults import CSV, JSON, Pipelines, RandomFaults
from fairlead_tests.chaos.lookout import Lookout

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(400)]

SEED = 20130101


def run_faults(folder: Path, seed: int, events: list[str], seconds: float = 0) -> RandomFaults:
    """Run two pipelines through these events, and more of them until time is up."""
    dice = random.Random(seed)
    pipelines = Pipelines(folder, seed)
    outputs = [pipelines.output(name) for name in (CSV, JSON)]
    with crew(folder / "node") as node:
        lookout = Lookout(*outputs)
        try:
            faults = _inject_all(node, pipelines, dice, events, seconds)
        finally:
            lookout.stop()
            for feed in pipelines.feeds.values():
                feed.stop()
        node.look()
    assert (lookout.broken, lookout.changed()) == ([], [])
    assert [_wrong(pipelines, CSV, "parquet"), _wrong(pipelines, JSON, "csv")] == [[], []]
    assert [list((output / STAGING).iterdir()) for output in outputs] == [[], []]
    print(_told(faults, pipelines, seed, len(lookout.seen)))
    return faults


def _inject_all(
    node: Crew, pipelines: Pipelines, dice: random.Random, events: list[str], seconds: float
) -> RandomFaults:
    faults = RandomFaults(node, pipelines, dice)
    node.up(workers=2)
    deadline = time.monotonic() + seconds
    for name, feed in pipelines.feeds.items():
        feed.start()
        node.put(name, pipelines.configs[name])
    node.eventually(lambda: node.is_running(CSV, JSON), "everything runs")
    while events or time.monotonic() < deadline:
        faults.inject(events.pop(0) if events else dice.choice(list(faults.events)))
    for name, feed in pipelines.feeds.items():
        feed.stop()
        node.reads_all(name, feed.files)
    return faults


def _wrong(pipelines: Pipelines, name: str, form: Format) -> list[Check]:
    verdict = judge(pipelines.feeds[name].expected(), pipelines.output(name), form)
    return [check for check in verdict.checks if not check.ok]


def _told(faults: RandomFaults, pipelines: Pipelines, seed: int, files: int) -> str:
    rows = {name: len(feed.rows) for name, feed in pipelines.feeds.items()}
    moves = faults.crew.moves
    known = [each.downtime_ms for each in moves if each.downtime_ms is not None] or [0]
    fenced = sum(each.reason.startswith("fenced") for each in faults.crew.statuses)
    lines = [
        f"seed {seed}: {faults.happened.total()} events {dict(faults.happened)}",
        *faults.story,
        f"rows {rows} in {files} files; fenced {fenced}; {len(moves)} moves, downtime of",
        f"{len(known)} known: median {statistics.median(known):.0f} ms, most {max(known)} ms",
    ]
    return "\n".join(lines)


def test_no_row_is_lost_or_doubled_whatever_happens_to_the_processes(tmp_path: Path) -> None:
    events = ["join", "kill JVM", "kill group", "freeze", "leave", "kill worker"]
    events += ["tasks.max", "config"]
    random.Random(SEED).shuffle(events)
    faults = run_faults(tmp_path / "faults", SEED, list(events))
    assert faults.happened.total() == len(events)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_the_same_for_as_long_as_one_likes(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    run_faults(tmp_path / "faults", seed, [], float(os.environ.get("CHAOS_SECONDS", "600")))
