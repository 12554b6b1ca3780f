"""Switch a safety rule off, and the simulator finds out within the stated number of seeds."""

import pytest
from simulation.rules import MUTATIONS, Mutation

from fairlead.runtime.simulation.plan import Size, draw
from fairlead.runtime.simulation.play import play

CHEAP = 60
"""Up to so many seeds a mutation is looked for in every run of the tests."""


OPEN = [each for each in MUTATIONS if not each.masked]
"""The rules that nothing else makes good."""


def is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Tell whether any of the mutation's seeds breaks a rule."""
    mutation.switch_off(monkeypatch)
    size = Size(only=mutation.only)
    return any(play(draw(seed, size)).violation for seed in range(mutation.seeds))


@pytest.mark.parametrize(
    "mutation", [each for each in OPEN if each.seeds <= CHEAP], ids=lambda each: each.name
)
def test_a_rule_that_is_off_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_found(mutation, monkeypatch), mutation.rule


@pytest.mark.soak
@pytest.mark.parametrize(
    "mutation", [each for each in OPEN if each.seeds > CHEAP], ids=lambda each: each.name
)
def test_a_rule_that_shows_seldom_is_found_in_time(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_found(mutation, monkeypatch), mutation.rule
