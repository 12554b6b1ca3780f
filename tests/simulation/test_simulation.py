"""A whole group in foul weather: whatever the seed, all invariants hold, and it comes to rest.

`SEEDS` may be set in the environment for a longer run: `SEEDS=1000-2000`.
"""

import os

import pytest
from simulation.world import World

FIRST, LAST = (int(number) for number in os.environ.get("SEEDS", "0-300").split("-"))
BATCH = 50


@pytest.mark.parametrize("first", range(FIRST, LAST, BATCH))
def test_a_group_in_foul_weather_is_safe_and_comes_to_rest(first: int) -> None:
    for seed in range(first, min(first + BATCH, LAST)):
        play(seed)


def play(seed: int) -> None:
    """Play one seed; a failure tells the seed and the end of its story."""
    world = World(seed)
    try:
        world.storm()
        world.rest()
    except Exception as error:
        story = "\n".join(world.shell.story[-60:])
        error.add_note(f"seed {seed}, at {world.clock.now_ms} ms, after:\n{story}")
        raise
