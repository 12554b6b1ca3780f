"""A crew of four with Spark tasks is rolled from classic to connect and back while data arrives.

No row is lost or doubled, no epoch and no token goes back, and the history tells each conversion.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairlead_tests.chaos.crew import PATIENCE_S, crew
from fairlead_tests.chaos.line import Line, flowing
from fairlead_tests.chaos.rolling import RollingCrew, random_faults

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(800)]

CALM: Sequence[Sequence[str]] = ([], [])
KILLS = ["kill worker", "kill group", "kill node"]


def rolls(folder: Path, faults: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Roll a crew there and back amid faults; return how often it is told to be converted."""
    restarts = {"task.restart.budget": "1000", "task.restart.backoff.max.ms": "1000"}
    line = Line(folder, "rolled", tasks=4, config=restarts)
    # No worker is the node's own, and classic ones may ask for no shorter session.
    settings = {"engine.kind": "shared", "session.timeout.ms": "8000"}
    with crew(folder / "node", workers=0, settings=settings) as node:
        rolling = RollingCrew(node, line)
        with flowing(node, line):
            rolling.settles("its beginning", PATIENCE_S)
            for protocol, befalls in zip(("connect", "classic"), faults, strict=True):
                rolling.roll(protocol, befalls)
            line.finish(node)
        found, told = rolling.went_back(), rolling.conversions()
        rolling.leave()
    print(f"{len(line.feed.rows)} rows; {dict(rolling.happened)}; conversions {told}")
    assert (line.wrong(), found) == ([], [])
    return told


@pytest.mark.soak
def test_a_crew_rolls_there_and_back_and_each_row_comes_out_once(tmp_path: Path) -> None:
    assert rolls(tmp_path, CALM) == (1, 1)


@pytest.mark.soak
def test_a_crew_rolls_though_a_worker_the_group_and_the_node_are_killed_each_way(
    tmp_path: Path,
) -> None:
    assert min(rolls(tmp_path, [KILLS, KILLS])) >= 1


@pytest.mark.soak
def test_a_crew_rolls_whatever_is_killed_and_whenever(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    assert min(rolls(tmp_path, random_faults(seed))) >= 1
