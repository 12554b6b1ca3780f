"""A seed is a story: the same everywhere, and cut down to what matters when it ends badly."""

import os
import subprocess
import sys

import pytest
from simulation.member_mutations import never_fence

from fairlead.runtime.simulation.campaign import again, replay, search
from fairlead.runtime.simulation.plan import Size, draw
from fairlead.runtime.simulation.play import play

TOLD = """
from fairlead.runtime.simulation.plan import Size, draw
from fairlead.runtime.simulation.play import play
for seed in range(3):
    print("\\n".join(play(draw(seed, Size()), is_told=True).story))
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
    plan = draw(3, Size())
    silent, told = play(plan), play(plan, is_told=True)
    assert (silent.cluster_ms, silent.steps, silent.records) == (
        told.cluster_ms,
        told.steps,
        told.records,
    )


def test_leaving_a_trouble_out_leaves_the_others_as_they_were() -> None:
    plan = draw(5, Size())
    kept = plan.keeping({3, 50})
    assert kept.troubles == (plan.troubles[3], plan.troubles[50])
    assert (kept.traits, kept.size, kept.seed) == (plan.traits, plan.size, plan.seed)


def test_fewer_workers_meet_the_same_troubles() -> None:
    assert draw(5, Size(workers=2)).troubles == draw(5, Size(workers=9)).troubles


def test_a_broken_rule_is_told_by_the_shortest_story_that_replays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never_fence(monkeypatch)
    found = search(range(20), Size()).last
    assert found is not None
    assert found.violation.startswith("1: ")
    plan = found.plan
    assert len(plan.troubles) <= 5

    numbers = [trouble.number for trouble in plan.troubles]
    assert again(plan) == (
        f"fairlead simulate --seed {plan.seed} --steps 120 --workers {plan.size.workers}"
        f" --connectors {plan.size.connectors} --pace 800"
        f" --keep {','.join(map(str, numbers))}"
    )
    assert replay(plan.seed, plan.size, numbers).last == found
    for number in numbers:
        without = play(plan.keeping(set(numbers) - {number}))
        assert not without.violation.startswith("1: ")
