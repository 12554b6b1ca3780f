"""Which connectors have a plugin host of their own, after which deaths."""

from fairlead.runtime.pipeline.plugins.running.isolation import SHARED, WINDOW_S, Isolation

ALL = frozenset({"a", "b", "c"})


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def hosts_of(isolation: Isolation) -> dict[str, str]:
    return {each: isolation.host_of(each) for each in sorted(ALL)}


TOGETHER = dict.fromkeys(sorted(ALL), SHARED)
APART = {each: each for each in sorted(ALL)}


def test_connectors_share_a_host_unless_the_node_wants_it_otherwise() -> None:
    assert hosts_of(Isolation()) == TOGETHER
    assert hosts_of(Isolation(always=True)) == APART


def test_a_connector_that_has_ended_its_host_twice_is_alone_until_that_is_long_ago() -> None:
    clock = Clock()
    isolation = Isolation(clock=clock)
    isolation.add_death(SHARED, ALL, "b")
    assert hosts_of(isolation) == TOGETHER
    clock.now += WINDOW_S - 1
    isolation.add_death(SHARED, ALL, "b")
    assert hosts_of(isolation) == {**TOGETHER, "b": "b"}
    clock.now += WINDOW_S - 1
    isolation.add_death("b", {"b"}, None)
    assert hosts_of(isolation) == {**TOGETHER, "b": "b"}, "it dies on, in its own"
    clock.now += WINDOW_S
    assert hosts_of(isolation) == TOGETHER


def test_two_deaths_long_after_each_other_are_none_too_many() -> None:
    clock = Clock()
    isolation = Isolation(clock=clock)
    isolation.add_death(SHARED, ALL, "b")
    clock.now += WINDOW_S
    isolation.add_death(SHARED, ALL, "b")
    assert hosts_of(isolation) == TOGETHER


def test_after_deaths_of_nobodys_each_is_alone_until_the_next_one_names_the_culprit() -> None:
    clock = Clock()
    isolation = Isolation(clock=clock)
    isolation.add_death(SHARED, ALL, None)
    assert hosts_of(isolation) == TOGETHER
    isolation.add_death(SHARED, ALL, None)
    assert hosts_of(isolation) == APART
    isolation.add_death("c", {"c"}, None)
    assert hosts_of(isolation) == {**TOGETHER, "c": "c"}
    isolation.add_death(SHARED, {"a", "b"}, None)
    assert hosts_of(isolation) == {**TOGETHER, "c": "c"}, "one more death counts anew"


def test_nobody_is_alone_for_ever_for_deaths_from_outside() -> None:
    clock = Clock()
    isolation = Isolation(clock=clock)
    isolation.add_death(SHARED, ALL, None)
    isolation.add_death(SHARED, ALL, None)
    clock.now += WINDOW_S
    assert hosts_of(isolation) == TOGETHER


def test_the_only_connector_in_a_host_is_its_culprit() -> None:
    isolation = Isolation(clock=Clock())
    isolation.add_death(SHARED, {"a"}, None)
    isolation.add_death(SHARED, {"a"}, None)
    assert hosts_of(isolation) == {**TOGETHER, "a": "a"}
