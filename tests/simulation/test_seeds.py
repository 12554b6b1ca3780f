"""Whatever befalls a group, no rule is ever broken, and once it is over the group is at rest.

`SIMULATION_SEEDS=1000-2000` in the environment plays others; `fairlead simulate` tells more.
"""

import os

import pytest

from fairlead.events import record_parts
from fairlead.runtime.simulation.campaign import CampaignResult, again, play, search
from fairlead.runtime.simulation.faults import schedule_faults
from fairlead.runtime.simulation.schedule import Crew, Size, draw
from fairlead.runtime.simulation.world import World

FIRST, LAST = map(int, os.environ.get("SIMULATION_SEEDS", "0-5").split("-"))
BATCH = 10

LARGE = Size(steps=150, workers=12, connectors=6)
SINGLE = Size(steps=60, workers=1, connectors=1)


def told(findings: CampaignResult) -> str:
    """Return the story of the seed that broke a rule, nothing if none did."""
    last = findings.last
    if last is None or not last.violation:
        return ""
    return "\n".join([*last.story, again(last.schedule)])


@pytest.mark.parametrize("first", range(FIRST, LAST, BATCH))
def test_no_seed_breaks_a_rule(first: int) -> None:
    found = search(range(first, min(first + BATCH, LAST)), Size())
    assert told(found) == ""
    assert found.seeds == min(BATCH, LAST - first)


BROKEN_ONCE = {51232: "the group's new process asks for a target before its worker hears of it"}
"""Seeds that have broken a rule, and what it took."""


@pytest.mark.parametrize("seed", BROKEN_ONCE)
def test_what_broke_a_rule_once_breaks_none_again(seed: int) -> None:
    assert told(search([seed], Size())) == ""


@pytest.mark.parametrize("crew", [Crew.CLASSIC, Crew.MIXED])
def test_no_seed_of_a_classic_or_mixed_crew_breaks_a_rule(crew: Crew) -> None:
    assert told(search(range(2), Size(crew=crew))) == ""


def test_no_seed_of_several_hosts_breaks_a_rule() -> None:
    assert told(search(range(3), Size(crew=Crew.HOSTS))) == ""


@pytest.mark.soak
@pytest.mark.parametrize("size", [Size(), LARGE, SINGLE], ids=["usual", "large", "single"])
def test_no_seed_of_many_breaks_a_rule(size: Size) -> None:
    assert told(search(range(100), size)) == ""


@pytest.mark.soak
@pytest.mark.parametrize("crew", [Crew.CLASSIC, Crew.MIXED, Crew.HOSTS])
def test_no_seed_of_many_crews_breaks_a_rule(crew: Crew) -> None:
    assert told(search(range(1_000, 1_500), Size(crew=crew))) == ""


CREWS_BROKEN_ONCE = {
    (Crew.CLASSIC, 60): "a JoinGroup is lost, the beats are not, and the round ends",
    (Crew.CLASSIC, 828): "a leader that forgot what it had assigned leaves deleted work to all",
    (Crew.MIXED, 47): "a static process of the other protocol converts the group",
    (Crew.MIXED, 72): "an answer to the process before has the number of a call of this one",
    (Crew.MIXED, 76): "a group is converted twice before a worker hears of the first time",
    (Crew.MIXED, 92): "a round begins while an eager worker stops what it is to give up",
    (Crew.MIXED, 100): "the last seat is taken over from the one that was to compute",
}
"""Seeds of crews that have broken a rule, and what it took."""


@pytest.mark.parametrize(("crew", "seed"), CREWS_BROKEN_ONCE)
def test_what_broke_a_rule_of_crews_once_breaks_none_again(crew: Crew, seed: int) -> None:
    assert told(search([seed], Size(crew=crew))) == ""


def test_mixed_crews_are_converted_both_ways() -> None:
    world = World(draw(1, Size(crew=Crew.MIXED)))
    schedule_faults(world)
    world.clock.run(world.schedule.end_ms)
    assert world.durable_state.classic_invariants.conversions >= 2


def test_a_large_group_breaks_no_rule_either() -> None:
    assert told(search([0], LARGE)) == ""


def test_a_single_worker_breaks_no_rule_either() -> None:
    assert told(search(range(4), SINGLE)) == ""


def test_a_group_whose_facts_lie_in_parts_breaks_no_rule_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_parts, "LEAST_PER_PART", 1)
    assert told(search(range(2), Size())) == ""
    assert told(search([7], Size(steps=40), on_disk=True)) == ""


@pytest.mark.soak
def test_a_quiet_night_writes_no_more_than_the_first_target_asks_for() -> None:
    hours = Size(steps=1, workers=10, connectors=4, pace_ms=1_800_000)
    outcome = play(draw(0, hours).with_only([]))
    assert outcome.violation == ""
    assert outcome.cluster_ms > 1_800_000
    assert outcome.records < 150


def test_a_log_on_disk_leads_to_the_same_as_one_in_memory() -> None:
    schedule = draw(7, Size(steps=40))
    assert play(schedule, on_disk=True) == play(schedule)
