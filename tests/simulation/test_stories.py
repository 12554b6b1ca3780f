"""A seed is a story: the same everywhere, and cut down to what matters when it ends badly."""

import os
import subprocess
import sys

import pytest

from fairlead.runtime.simulation.campaign import again, play, replay, search
from fairlead.runtime.simulation.environment.kinds import LIFECYCLE_WEIGHTS
from fairlead.runtime.simulation.schedule import Size, draw
from fairlead_tests.simulation.member_mutations import never_fence

TOLD = """
from fairlead.runtime.simulation.schedule import Crew, Size, draw
from fairlead.runtime.simulation.campaign import play
for crew in (Crew.CONNECT, Crew.MIXED):
    print("\\n".join(play(draw(0, Size(steps=40, crew=crew)), is_told=True).story))
"""


def story(hash_seed: str) -> str:
    """Return what a process with this hash seed tells of some seeds."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        [sys.executable, "-c", TOLD], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_the_same_seed_tells_the_same_story_in_every_process() -> None:
    first, second = story("1"), story("2")
    assert first.count("\n") > 300
    assert first == second


def test_a_story_that_is_told_ends_like_one_that_is_not() -> None:
    schedule = draw(3, Size(steps=40))
    silent, told = play(schedule), play(schedule, is_told=True)
    assert (silent.cluster_ms, silent.steps, silent.records) == (
        told.cluster_ms,
        told.steps,
        told.records,
    )


def test_leaving_a_trouble_out_leaves_the_others_as_they_were() -> None:
    schedule = draw(5, Size())
    kept = schedule.with_only({3, 50})
    assert kept.faults == (schedule.faults[3], schedule.faults[50])
    assert (kept.traits, kept.size, kept.seed) == (schedule.traits, schedule.size, schedule.seed)


def test_a_schedule_has_as_many_steps_as_were_asked_for() -> None:
    schedules = [draw(seed, Size(steps=25)) for seed in range(8)]
    assert {len(each.faults) for each in schedules} == {25}
    befalls_connectors = [
        any(each.kind in LIFECYCLE_WEIGHTS for each in s.faults) for s in schedules
    ]
    assert set(befalls_connectors) == {True, False}
    numbers = [sorted(fault.number for fault in each.faults) for each in schedules]
    assert numbers == [[*range(25)]] * 8


def test_fewer_workers_meet_the_same_troubles() -> None:
    assert draw(5, Size(workers=2)).faults == draw(5, Size(workers=9)).faults


def test_a_broken_rule_is_told_by_the_shortest_story_that_replays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never_fence(monkeypatch)
    found = search([25], Size(steps=25)).last
    assert found is not None
    assert found.violation.startswith("1: ")
    schedule = found.schedule
    assert len(schedule.faults) <= 10

    numbers = [fault.number for fault in schedule.faults]
    assert again(schedule) == (
        f"fairlead simulate --seed {schedule.seed} --steps 25 --workers {schedule.size.workers}"
        f" --connectors {schedule.size.connectors} --pace 800"
        f" --keep {','.join(map(str, numbers))}"
    )
    assert replay(schedule.seed, schedule.size, numbers).last == found
    for number in numbers:
        without = play(schedule.with_only(set(numbers) - {number}))
        assert not without.violation.startswith("1: ")
