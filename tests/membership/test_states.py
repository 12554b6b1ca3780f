"""The table of states: all of its ways, and nothing besides."""

import itertools

import pytest

from fairlead.actors.worker.states import (
    SPEAKING,
    STORY_LENGTH,
    WAYS,
    IllegalTransitionError,
    Machine,
    State,
)

ILLEGAL = [
    (here, there)
    for here, there in itertools.product(State, State)
    if there is not here and there not in WAYS[here]
]


def way_to(state: State) -> list[State]:
    """A way from the beginning to a state."""
    ways = [[State.UNSUBSCRIBED]]
    while ways[0][-1] is not state:
        way = ways.pop(0)
        ways += [[*way, there] for there in sorted(WAYS[way[-1]], key=str) if there not in way]
    return ways[0][1:]


def machine_at(state: State) -> Machine:
    machine = Machine()
    for step in way_to(state):
        machine.go(step, "on the way")
    return machine


@pytest.mark.parametrize(("here", "there"), ILLEGAL)
def test_where_no_way_leads_the_machine_raises_and_stays(here: State, there: State) -> None:
    machine = machine_at(here)
    with pytest.raises(IllegalTransitionError):
        machine.go(there, "against the rules")
    assert machine.state is here


@pytest.mark.parametrize("state", State)
def test_every_state_is_reached_and_may_be_stayed_in(state: State) -> None:
    machine = machine_at(state)
    machine.go(state, "stays")
    assert machine.state is state


def test_an_illegal_step_is_told_with_the_story_that_led_there() -> None:
    machine = Machine()
    machine.go(State.JOINING, "told to join")
    machine.go(State.STABLE, "nothing to run")
    with pytest.raises(IllegalTransitionError) as told:
        machine.go(State.LEAVING, "by mistake")
    assert str(told.value).splitlines() == [
        "unsubscribed -> joining: told to join",
        "joining -> stable: nothing to run",
        "stable -> leaving: by mistake",
    ]


def test_the_story_is_kept_short() -> None:
    machine = machine_at(State.STABLE)
    for _ in range(STORY_LENGTH):
        machine.go(State.RECONCILING, "there")
        machine.go(State.ACKNOWLEDGING, "and")
        machine.go(State.STABLE, "back")
    with pytest.raises(IllegalTransitionError) as told:
        machine.go(State.UNSUBSCRIBED, "by mistake")
    assert len(str(told.value).splitlines()) == STORY_LENGTH


def test_who_is_fenced_or_gone_does_not_speak() -> None:
    assert set(State) - SPEAKING == {State.UNSUBSCRIBED, State.FENCED, State.FATAL}
