"""A loop at any depth of the stack calls without mapping memory for each call."""

import resource
from collections.abc import Callable

import pytest

from fairlead.actors.transport.processes import call_with_room

CALLS = 200
DEPTHS = range(150)


def nest(depth: int, function: Callable[[], None]) -> None:
    if depth:
        nest(depth - 1, function)
    else:
        function()


def call_often() -> None:
    for _ in range(CALLS):
        nest(2, int)  # type: ignore[arg-type]


def faults_at(depth: int) -> int:
    """Return how many pages are touched anew while a loop runs at a depth."""
    nest(depth, call_often)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    nest(depth, call_often)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_there_is_room_for_the_frames_of_all_calls_within() -> None:
    faults: list[int] = []
    call_with_room(lambda: faults.extend(map(faults_at, DEPTHS)))
    assert max(faults) < CALLS // 2


def test_what_a_call_raises_goes_through() -> None:
    def fail() -> None:
        raise KeyError(7)

    with pytest.raises(KeyError, match="7"):
        call_with_room(fail)
