"""Workers' ends in a simulation: seen and reported at once, late, twice, and of who lives."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fairlead.events.model import Why
from fairlead.events.records import GroupMetadata
from fairlead.runtime.simulation.campaign import play
from fairlead.runtime.simulation.environment.kinds import Fault as Befalls
from fairlead.runtime.simulation.faults import schedule_faults
from fairlead.runtime.simulation.invariants.running import Exclusivity
from fairlead.runtime.simulation.schedule import ClusterTraits, Schedule, ScheduledFault, Size, draw
from fairlead.runtime.simulation.world import World

CRASH = ScheduledFault(0, 20_000, Befalls.CRASH, 0, 100, 0)
CALM = Schedule(0, Size(workers=2), ClusterTraits(max_delay_ms=0), (CRASH,))


def departures(schedule: Schedule) -> list[tuple[Why, int]]:
    """Why members went within two sessions of the crash, and how long after it."""
    world = World(schedule)
    schedule_faults(world)
    found = list[tuple[Why, int]]()
    for _ in range(800):
        world.clock.run(world.clock.now_ms + 50)
        bump = world.durable_state.group.bump
        if isinstance(bump, GroupMetadata) and bump.cause.why in {
            Why.SESSION_EXPIRED,
            Why.PROCESS_ENDED,
        }:
            found.append((bump.cause.why, world.clock.now_ms - CRASH.at_ms))
            break
    world.durable_state.close()
    return found


def test_an_end_that_is_seen_is_not_waited_for_and_one_that_is_not_costs_a_session() -> None:
    seen = departures(replace(CALM, traits=replace(CALM.traits, seen=1.0)))
    unseen = departures(CALM)
    assert [why for why, _ in seen + unseen] == [Why.PROCESS_ENDED, Why.SESSION_EXPIRED]
    assert seen[0][1] <= 1_000
    assert unseen[0][1] > 5_000


def test_seeds_have_ends_that_are_seen_and_mistakes_in_store() -> None:
    traits = [draw(seed, Size()).traits for seed in range(40)]
    assert {each.seen for each in traits} == {0.0, 0.7, 1.0}
    assert {each.mistakes for each in traits} == {False, True}


def mistaken(seed: int) -> Schedule:
    """The schedule of a seed in which workers that live are reported to have ended."""
    schedule = draw(seed, Size(steps=60))
    return replace(schedule, traits=replace(schedule.traits, seen=1.0, mistakes=True))


TELLING = (2, 8, 10, 17)
"""The seeds in which what is reported wrongly is given to others while it still runs."""


@pytest.mark.parametrize("seeds", [TELLING, pytest.param(range(20), marks=pytest.mark.soak)])
def test_a_wrong_report_breaks_no_rule(seeds: Sequence[int]) -> None:
    assert [play(mistaken(seed)).violation for seed in seeds] == [""] * len(seeds)


def test_a_wrong_report_reaches_what_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    def count_all(_: Exclusivity, name: str) -> None:
        del name

    monkeypatch.setattr(Exclusivity, "disown", count_all)
    broken = [play(mistaken(seed)).violation.startswith("1:") for seed in TELLING]
    assert all(broken), "whoever is reported wrongly may run what others have been given"
