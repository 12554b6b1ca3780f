"""Switch a safety rule off, and the simulator finds out within the stated number of seeds."""

import os
import subprocess
import sys

import pytest

from fairlead.runtime.simulation.campaign import play
from fairlead.runtime.simulation.schedule import Size, draw
from fairlead_tests import TESTS
from fairlead_tests.simulation.rules import MUTATIONS, Mutation
from fairlead_tests.simulation.switched_off import RULE_OFF

CHEAP = 60
"""Up to so many seeds a mutation is looked for in every run of the tests."""

OPEN = [each for each in MUTATIONS if not each.masked]
"""The rules that nothing else makes good."""

SEEN_SOON = [each for each in OPEN if each.seeds <= CHEAP or each.shown_by]
"""Those that every run of the tests looks for."""

MASKED = [each for each in MUTATIONS if each.masked]
"""Those that no simulation misses: others make them good, or they matter next to never."""


def is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Tell whether any of the mutation's seeds breaks a rule."""
    mutation.switch_off(monkeypatch)
    size = Size(only=mutation.only, crew=mutation.crew)
    seeds = (mutation.shown_by, *range(mutation.seeds))
    return any(play(draw(seed, size)).violation for seed in seeds)


@pytest.mark.parametrize("mutation", SEEN_SOON, ids=lambda each: each.name)
def test_a_rule_that_is_off_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_found(mutation, monkeypatch), mutation.rule


@pytest.mark.soak
@pytest.mark.parametrize(
    "mutation", [each for each in OPEN if each not in SEEN_SOON], ids=lambda each: each.name
)
def test_a_rule_that_shows_seldom_is_found_in_time(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_found(mutation, monkeypatch), mutation.rule


@pytest.mark.parametrize("mutation", MASKED, ids=lambda each: each.name)
def test_a_rule_that_no_simulation_misses_is_held_by_a_test(mutation: Mutation) -> None:
    file, _, name = mutation.held_by.partition("::")
    assert f"def {name}(" in (TESTS / file).read_text()


@pytest.mark.soak
@pytest.mark.parametrize("mutation", MASKED, ids=lambda each: each.name)
def test_the_test_that_holds_a_rule_fails_without_it(mutation: Mutation) -> None:
    told = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "fairlead_tests.simulation.switched_off", str(TESTS / mutation.held_by)),
        ],
        env={**os.environ, RULE_OFF: mutation.name, "PYTHONPATH": str(TESTS)},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert " failed" in told.stdout.splitlines()[-1], told.stdout + told.stderr
