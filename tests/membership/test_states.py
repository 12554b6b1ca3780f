"""The table of states: all of its ways, and nothing besides."""

import itertools
from pathlib import Path

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker import states
from fairlead.actors.worker.states import (
    CLASSIC_TRANSITIONS,
    SENDING,
    STORY_LENGTH,
    TRANSITIONS,
    IllegalTransitionError,
    Machine,
    State,
)
from fairlead_tests.membership.driver import SESSION_MS, MemberDriver, seated

ILLEGAL = [
    (here, there)
    for here, there in itertools.product(State, State)
    if there is not here and there not in TRANSITIONS[here]
]


def way_to(state: State) -> list[State]:
    """A way from the beginning to a state."""
    ways = [[State.UNSUBSCRIBED]]
    while ways[0][-1] is not state:
        way = ways.pop(0)
        ways += [
            [*way, there] for there in sorted(TRANSITIONS[way[-1]], key=str) if there not in way
        ]
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
    assert set(State) - SENDING == {State.UNSUBSCRIBED, State.FENCED, State.FATAL}


def fenced(driver: MemberDriver) -> MemberDriver:
    driver.answer(error=Error.UNKNOWN_MEMBER_ID)
    return driver


def refused(driver: MemberDriver) -> MemberDriver:
    driver.answer(error=Error.INVALID_REQUEST)
    return driver


def left(driver: MemberDriver) -> MemberDriver:
    driver.leave()
    return driver


def joining() -> MemberDriver:
    driver = MemberDriver()
    driver.join()
    return driver


def revoking() -> MemberDriver:
    driver = seated()
    driver.answer("A")
    return driver


def acknowledging() -> MemberDriver:
    driver = joining()
    driver.answer("A A-0")
    return driver


def gone() -> MemberDriver:
    driver = left(seated())
    driver.stopped("A A-0")
    driver.answer(epoch=-1)
    return driver


def unread() -> MemberDriver:
    """Its join was answered, and the answer lay unread for longer than the session."""
    driver = joining()
    driver.now_ms += SESSION_MS
    driver.answer("A", epoch=4)
    return driver


def turned() -> MemberDriver:
    """It was given something else to do before what it does was answered for."""
    driver = acknowledging()
    driver.answer("A")
    return driver


def gone_while_fenced() -> MemberDriver:
    driver = left(fenced(seated()))
    driver.stopped("A A-0")
    return driver


def leaving() -> MemberDriver:
    return left(seated())


LIVES = [gone, unread, turned, gone_while_fenced]
BEGINNINGS = [joining, revoking, acknowledging, seated, leaving]
ENDS = [fenced, refused, left]


def test_every_way_of_the_table_is_walked_by_some_life_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walked = set[tuple[State, State]]()
    go = Machine.go

    def noted(machine: Machine, state: State, why: str) -> None:
        here = machine.state
        go(machine, state, why)
        if state is not here:
            walked.add((here, state))

    monkeypatch.setattr(Machine, "go", noted)
    for live in LIVES:
        live()
    for begin, end in itertools.product(BEGINNINGS, ENDS):
        end(begin())
    assert walked == {(here, there) for here, ends in TRANSITIONS.items() for there in ends}


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading of STATES.md, without its head."""
    path = Path(states.__file__).with_name("STATES.md")
    _, _, text = path.read_text(encoding="utf-8").partition(f"## {heading}\n")
    rows = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_the_documented_ways_are_those_of_the_table() -> None:
    documented = dict[State, frozenset[State]]()
    for name, ends, *_ in table("Ways"):
        documented[State[name]] = frozenset(State[each] for each in ends.split(", ") if each != "-")
    assert documented == TRANSITIONS


def test_the_documented_ways_of_a_classic_member_are_those_of_its_table() -> None:
    documented = dict[State, frozenset[State]]()
    for name, ends, *_ in table("Ways of a classic member"):
        documented[State[name]] = frozenset(State[each] for each in ends.split(", ") if each != "-")
    assert documented == CLASSIC_TRANSITIONS


def test_the_documented_heartbeats_are_those_of_who_speaks() -> None:
    speaking = {State[name] for name, _, heartbeat, *_ in table("Ways") if heartbeat != "none"}
    assert speaking == SENDING


def test_every_state_of_the_proposal_is_documented() -> None:
    names = [row[0] for row in table("The proposal's words")]
    assert names == [
        *["UNJOINED", "PREPARE", "ASSIGN", "COMPLETE", "STABLE"],
        *["NEW", "JOINING", "JOINED", "ASSIGNING", "TERMINATING", "TERMINATED"],
        *["UNSUBSCRIBE", "JOINING", "STABLE", "RECONCILE_ASSIGNMENT", "ACK_ASSIGNMENT"],
        *["UNSUBSCRIBING", "FENCED", "FATAL"],
    ]
