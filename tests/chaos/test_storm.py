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
from fairlead_tests.chaos.lookout import Lookout
from fairlead_tests.chaos.storm import CSV, JSON, Pipelines, Storm

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(400)]

SEED = 20130101


def weather(folder: Path, seed: int, events: list[str], seconds: float = 0) -> Storm:
    """Run two pipelines through these events, and more of them until time is up."""
    dice = random.Random(seed)
    pipelines = Pipelines(folder, seed)
    outputs = [pipelines.output(name) for name in (CSV, JSON)]
    with crew(folder / "node") as node:
        lookout = Lookout(*outputs)
        try:
            storm = _strike_all(node, pipelines, dice, events, seconds)
        finally:
            lookout.stop()
            for feed in pipelines.feeds.values():
                feed.stop()
        node.look()
    assert (lookout.broken, lookout.changed()) == ([], [])
    assert [_wrong(pipelines, CSV, "parquet"), _wrong(pipelines, JSON, "csv")] == [[], []]
    assert [list((output / STAGING).iterdir()) for output in outputs] == [[], []]
    print(_told(storm, pipelines, seed, len(lookout.seen)))
    return storm


def _strike_all(
    node: Crew, pipelines: Pipelines, dice: random.Random, events: list[str], seconds: float
) -> Storm:
    storm = Storm(node, pipelines, dice)
    node.up(workers=2)
    deadline = time.monotonic() + seconds
    for name, feed in pipelines.feeds.items():
        feed.start()
        node.put(name, pipelines.configs[name])
    node.eventually(lambda: node.is_running(CSV, JSON), "everything runs")
    while events or time.monotonic() < deadline:
        storm.strike(events.pop(0) if events else dice.choice(list(storm.events)))
    for name, feed in pipelines.feeds.items():
        feed.stop()
        node.reads_all(name, feed.files)
    return storm


def _wrong(pipelines: Pipelines, name: str, form: Format) -> list[Check]:
    verdict = judge(pipelines.feeds[name].expected(), pipelines.output(name), form)
    return [check for check in verdict.checks if not check.ok]


def _told(storm: Storm, pipelines: Pipelines, seed: int, files: int) -> str:
    rows = {name: len(feed.rows) for name, feed in pipelines.feeds.items()}
    moves = storm.crew.moves
    known = [each.downtime_ms for each in moves if each.downtime_ms is not None] or [0]
    fenced = sum(each.reason.startswith("fenced") for each in storm.crew.statuses)
    lines = [
        f"seed {seed}: {storm.happened.total()} events {dict(storm.happened)}",
        *storm.story,
        f"rows {rows} in {files} files; fenced {fenced}; {len(moves)} moves, downtime of",
        f"{len(known)} known: median {statistics.median(known):.0f} ms, most {max(known)} ms",
    ]
    return "\n".join(lines)


def test_no_row_is_lost_or_doubled_whatever_happens_to_the_processes(tmp_path: Path) -> None:
    events = ["join", "kill JVM", "kill group", "freeze", "leave", "kill worker"]
    events += ["tasks.max", "config"]
    random.Random(SEED).shuffle(events)
    storm = weather(tmp_path / "storm", SEED, list(events))
    assert storm.happened.total() == len(events)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_the_same_for_as_long_as_one_likes(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    weather(tmp_path / "storm", seed, [], float(os.environ.get("CHAOS_SECONDS", "600")))
