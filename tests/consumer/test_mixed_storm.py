"""Whatever becomes of clients of both protocols in a group, no partition is read by two."""

import pytest

from fairlead.events.model import Resource
from fairlead_tests.consumer.mixed_storm import MixedStorm

STEPS = 300
BROKEN_ONCE = {107: "a static classic member comes back that subscribes to fewer topics"}
"""Seeds that have broken a rule, and what it took."""


@pytest.mark.parametrize("seed", [*range(6), *BROKEN_ONCE])
def test_a_group_of_both_protocols_goes_through_a_storm_and_comes_to_rest(seed: int) -> None:
    storm = MixedStorm(seed)
    for _ in range(STEPS):
        storm.step()
    storm.settle()
    topics = storm.driver.topics
    read = [each.names for each in storm.classics] + [each.names for each in storm.clients.values()]
    names = {name for each in read for name in each} & topics.keys()
    assert sorted(storm.owned_by_name()) == sorted(
        Resource(name, number) for name in names for number in range(topics[name].partitions)
    )
