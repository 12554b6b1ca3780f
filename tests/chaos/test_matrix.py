"""Exactly once is proved, not said: each source with each sink, through the same faults.

One node runs all pairs at once, and in the tests of each change some. What each sink holds is asked
of the files, the database and the broker themselves, and held against what the sources hold. For
each kind of sink a mutant runs beside them that goes without its mark: the same question must find
its rows doubled. One of them reads tables without their horizon, too: it must be found to have lost
what committed late, and it is in the tests of each change.
"""

import os
import random
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from fairlead_tests.chaos.crew import Crew, crew, quick_to_start
from fairlead_tests.chaos.shared_crew import SharedCrew
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.matrix import schedule
from fairlead_tests.matrix.pairs import HASTY, handovers
from fairlead_tests.matrix.run import Run, running, with_points
from fairlead_tests.postgres_server import NoServer

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

SEED = 20250523
IN_EACH_RUN = ("files-to-postgres", "postgres-to-kafka", "log-to-files", "kafka-to-files", HASTY)
"""Each source, each sink, and the mutant of both; all pairs and all mutants are a soak's."""
FEW = ("freeze at", "kill database", "kill broker")
"""A worker that is killed is in the demo of each run."""
PATIENCE_S = 240.0
SESSION_MS = "10000"
"""Long enough for a machine that has two JVMs, a broker and a database to start again at once."""
HANDOVERS = int(os.environ.get("CHAOS_HANDOVERS", "20"))
"""How often at least a task of each pair is taken over in a soak."""
ROUND = 12
"""How many steps are drawn, and told, at once."""


def publish_twice(run: Run) -> None:
    """Have a batch of each pair be in place, and its task not come to tell so.

    `verify` waits for mutants: one that loses rows may come to no batch for long.
    """
    for each in run.pairs:
        run.faults.ask(each.name, "published", "cut")
    for each in run.sound:
        run.faults.wait_taken(each.name, "published")


def move_all(run: Run) -> None:
    """Have each task move to the other worker, and some back."""
    for worker in ("w1", "w2"):
        run.faults.inject(schedule.Step("move", worker=worker))


def verify(run: Run) -> None:
    """Hold each sink against its source."""
    for each in run.mutants:
        run.faults.wait_taken(each.name, "published")
    run.finish()
    counted = handovers(run.node)
    for each in run.sound:
        print(f"{each.name}: {counted[each.name]} hand-overs, {each.sink.tally(each.name)}")
    found = {each.name: each.wrong() for each in run.mutants}
    print("\n".join(found.values()))
    assert [wrong for each in run.sound if (wrong := each.wrong())] == []
    expected = [(each.name, flaw) for each in run.mutants for flaw in each.flaws]
    assert [each for each in expected if f" rows {each[1]} " not in found[each[0]]] == []


@pytest.mark.timeout(800)
def test_each_pair_has_each_row_once_and_a_sink_without_its_mark_has_not(
    crews: SharedCrew,
) -> None:
    try:
        with (
            crews.lend() as node,
            node.configured({"session.timeout.ms": SESSION_MS}),
            running(node, SEED, tasks=1, pause_s=5.0, only=IN_EACH_RUN) as run,
        ):
            publish_twice(run)
            move_all(run)
            for step in schedule.draw(SEED, [each.name for each in run.sound], FEW):
                run.faults.inject(step)
            verify(run)
            assert least_handovers(run) > 0
    except (NoServer, NoPeer) as reason:
        pytest.skip(f"a server cannot be had: {reason}")


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_the_same_through_every_fault_until_each_pair_was_taken_over_often_enough(
    tmp_path: Path,
) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    seconds = float(os.environ.get("CHAOS_SECONDS", "600"))
    only = [each for each in os.environ.get("CHAOS_PAIRS", "").split(",") if each]
    with (
        alone(tmp_path) as node,
        running(node, seed, tasks=2, pause_s=1.5, has_disks=True, only=only) as run,
    ):
        publish_twice(run)
        until, turn = time.monotonic() + seconds, 0
        while time.monotonic() < until or least_handovers(run) < HANDOVERS:
            steps = schedule.draw(f"{seed} {turn}", [each.name for each in run.sound], count=ROUND)
            print(f"seed {seed}, round {turn}:", *steps, sep="\n  ", flush=True)
            for step in steps:
                run.faults.inject(step)
            turn += 1
        print(dict(run.faults.happened))
        verify(run)


def alone(folder: Path) -> AbstractContextManager[Crew]:
    """Give a node of the test's own."""
    environ = with_points(quick_to_start(os.environ), folder / "points")
    settings = {"session.timeout.ms": SESSION_MS, "fence.margin.ms": "2000"}
    return crew(folder / "node", patience_s=PATIENCE_S, environ=environ, settings=settings)


def least_handovers(run: Run) -> int:
    counted = handovers(run.node)
    return min(counted[each.name] for each in run.sound)
