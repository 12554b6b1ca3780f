"""What the eager assignor of Connect promises."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.assignors.classic.loads import deal_eagerly
from fairlead.actors.assignors.classic.protocol import (
    MODES,
    offer_protocols,
)
from fairlead.events.model import Resources
from fairlead_tests.assignors.configured import resources_of
from fairlead_tests.classic.elections import elected

configured = st.dictionaries(st.sampled_from("ABCDE"), st.integers(0, 5)).map(resources_of)
workers = st.lists(st.sampled_from(["W1", "W10", "W2", "W3"]), unique=True)


@given(configured, workers.filter(bool))
def test_everything_is_dealt_once_and_all_get_within_one_of_each_other(
    configured: Resources, workers: list[str]
) -> None:
    made = deal_eagerly(configured, workers)
    assert Counter(each for load in made.values() for each in load) == Counter(configured)
    sizes = [len(load) for load in made.values()]
    assert made.keys() == set(workers)
    assert max(sizes) - min(sizes) <= 1


@given(configured, workers, st.randoms(use_true_random=False))
def test_the_order_of_the_workers_does_not_matter(
    configured: Resources, workers: list[str], dice: random.Random
) -> None:
    in_any_order = dice.sample(workers, len(workers))
    assert deal_eagerly(configured, in_any_order) == deal_eagerly(configured, workers)


def test_without_workers_nobody_gets_anything() -> None:
    assert deal_eagerly(resources_of({"A": 1}), []) == {}


@given(st.lists(st.sampled_from(sorted(MODES)), min_size=1))
def test_a_group_speaks_the_newest_protocol_that_all_of_its_members_offer(modes: list[str]) -> None:
    oldest = min(modes, key=["eager", "compatible", "sessioned"].index)
    assert elected(offer_protocols(mode) for mode in modes) == MODES[oldest]


def test_of_protocols_with_as_many_votes_the_first_by_name_is_elected() -> None:
    assert elected([["b", "a"], ["a", "b"]]) == "a"


def test_without_members_there_is_no_protocol() -> None:
    assert elected([]) is None
