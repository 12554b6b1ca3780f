"""Workers' ends in a simulation: seen and reported at once, late, twice, and of who lives."""

from dataclasses import replace

import pytest

from fairlead.events.model import Why
from fairlead.events.records import GroupMetadata
from fairlead.runtime.simulation.floor import Floor
from fairlead.runtime.simulation.plan import Kind as Befalls
from fairlead.runtime.simulation.plan import Plan, Size, Traits, Trouble, draw
from fairlead.runtime.simulation.play import play
from fairlead.runtime.simulation.troubles import schedule
from fairlead.runtime.simulation.world import World

CRASH = Trouble(0, 20_000, Befalls.CRASH, 0, 100, 0)
CALM = Plan(0, Size(workers=2), Traits(max_delay_ms=0), (CRASH,))


def departures(plan: Plan) -> list[tuple[Why, int]]:
    """Why members went within two sessions of the crash, and how long after it."""
    world = World(plan)
    schedule(world)
    found = list[tuple[Why, int]]()
    for _ in range(800):
        world.clock.run(world.clock.now_ms + 50)
        bump = world.books.durable.bump
        if isinstance(bump, GroupMetadata) and bump.cause.why in {
            Why.SESSION_EXPIRED,
            Why.PROCESS_ENDED,
        }:
            found.append((bump.cause.why, world.clock.now_ms - CRASH.at_ms))
            break
    world.books.close()
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


def mistaken(seed: int) -> Plan:
    """The plan of a seed in which workers that live are reported to have ended."""
    plan = draw(seed, Size(steps=60))
    return replace(plan, traits=replace(plan.traits, seen=1.0, mistakes=True))


def test_a_wrong_report_breaks_no_rule() -> None:
    assert [play(mistaken(seed)).violation for seed in range(20)] == [""] * 20


def test_a_wrong_report_reaches_what_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    def count_all(_: Floor, name: str) -> None:
        del name

    monkeypatch.setattr(Floor, "disown", count_all)
    found = {play(mistaken(seed)).violation[:2] for seed in range(20)}
    assert "1:" in found, "whoever is reported wrongly may run what others have been given"
