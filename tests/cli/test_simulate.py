"""`fairlead simulate`: what it prints, and how it ends."""

import json

import pytest
from cli.conftest import Run

from fairlead_tests.simulation.member_mutations import never_fence


def test_seeds_that_break_no_rule_end_well(run: Run) -> None:
    ended = run("simulate", "--seeds", "0-2", "--steps", "20", "-o", "json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert (found["seeds"], found["violation"], found["story"]) == (2, None, [])
    assert found["steps"] > found["records"] > 0


@pytest.mark.parametrize("crew", ["classic", "mixed"])
def test_a_crew_may_speak_the_classic_protocol_or_both(run: Run, crew: str) -> None:
    ended = run("simulate", "--crew", crew, "--steps", "20", "-o", "json")
    assert (ended.code, json.loads(ended.out)["violation"]) == (0, None)


def test_a_crew_that_nobody_knows_is_refused(run: Run) -> None:
    ended = run("simulate", "--crew", "jazz")
    assert ended.code != 0
    assert "--crew is one of connect, classic, mixed, hosts, and not 'jazz'" in ended.err


def test_a_person_is_told_what_was_simulated(run: Run) -> None:
    ended = run("simulate", "--seed", "1", "--steps", "0", "--log")
    assert ended.code == 0
    names = [line.partition(":")[0] for line in ended.out.splitlines()]
    assert names == [
        "seeds",
        "cluster time",
        "steps",
        "records",
        "commits",
        "moves",
        "restarts",
        "checks",
        "violation",
    ]


@pytest.mark.soak  # each run tells such a story: tests/simulation/test_stories.py
def test_a_broken_rule_ends_badly_with_its_story(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    never_fence(monkeypatch)
    ended = run("simulate", "--minutes", "1", "--steps", "60")
    assert ended.code == 1
    story, _, _ = ended.out.partition("seeds: ")
    assert story.splitlines()[-1].split()[1:3] == ["VIOLATION", "1:"]
    last = ended.out.splitlines()[-1]
    assert last.startswith("fairlead simulate --seed ")
    again = run(*last.split()[1:])
    assert (again.code, again.out.partition("seeds: ")[0]) == (1, story)


@pytest.mark.parametrize(
    "words", ["--seeds 5-5", "--seeds x", "--keep 1,", "--steps -1", "--workers 0", "--seed x"]
)
def test_a_misuse_is_told_so(words: str, run: Run) -> None:
    ended = run("simulate", *words.split())
    assert ended.code == 2
    assert "Traceback" not in ended.err
