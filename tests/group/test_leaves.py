"""What it costs that many members go, in whatever order: so much for each, however many there are.

Steps are counted, not timed: a step is a call of a function, and the same on every machine.
"""

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from benchmarks.bench_leaves import orders

from fairlead.actors.group.decide import decide
from fairlead.actors.group.state.soft_state import SoftState
from fairlead.actors.messages.commands import Command, ExpireSession
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.evolve import evolve
from fairlead_tests.benchmarks.groups import member_id, settled

FEW, MANY = 60, 240


def says_goodbye(number: int) -> Command:
    """Its last request."""
    return Heartbeat("bench", member_id(number), -1, "i", 1)


def falls_silent(number: int) -> Command:
    """The end of its session, which leaves a loss."""
    return ExpireSession(member_id(number))


def steps(members: int, order: str, goes: Callable[[int], Command]) -> float:
    """Return how many steps it takes for each of so many members that all of them go."""
    group, soft, counted = settled(members), SoftState(), 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal counted
        del frame, arg
        counted += event == "call"

    sys.setprofile(count)
    try:
        for number in orders(members)[order]:
            decision = decide(group, soft, goes(number), 0)
            soft = decision.soft
            for record in decision.records:
                evolve(group, record, group.end)
    finally:
        sys.setprofile(None)
    assert not group.members
    return counted / members


@pytest.mark.parametrize("order", orders(1))
@pytest.mark.parametrize("goes", [says_goodbye, falls_silent])
def test_a_member_that_goes_costs_no_more_in_a_larger_group(
    order: str, goes: Callable[[int], Command]
) -> None:
    assert steps(MANY, order, goes) < 1.2 * steps(FEW, order, goes)
